package models

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// Agent is a voice agent of an account.
type Agent struct {
	bun.BaseModel `bun:"table:agents"`

	ID        uuid.UUID `bun:",pk"`
	AccountID uuid.UUID
	Name      string
	CreatedAt time.Time
}

// NewAgent is the input of [Store.CreateAgent].
type NewAgent struct {
	ID     uuid.UUID // zero to generate one
	Name   string    // 1 to 100 characters
	FormID uuid.UUID // of the rendered form, random; zero if none. Ignored if ID is set
}

// CreateAgent creates an agent and records the activity. If the same form is submitted again with
// the same name, it returns the agent of the first submission, or [ErrAgentRemoved] if that agent
// was removed. The error may also be an [*InvalidError] for the field "name", [ErrAgentIDTaken] or
// [ErrUnavailable].
func (s *Store) CreateAgent(ctx context.Context, accountID uuid.UUID, n NewAgent, actor Actor) (Agent, error) {
	name, err := cleanName("name", "Name", n.Name)
	if err != nil {
		return Agent{}, err
	}
	agent := Agent{ID: n.ID, AccountID: accountID, Name: name, CreatedAt: s.clock()}
	repeatable := agent.ID == uuid.Nil && n.FormID != uuid.Nil
	switch {
	case repeatable:
		// The id depends on the account, so that a form of another account cannot produce it.
		agent.ID = uuid.NewSHA1(accountID, append(n.FormID[:], name...))
	case agent.ID == uuid.Nil:
		agent.ID = newID()
	}
	err = s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		result, err := tx.NewInsert().Model(&agent).On("CONFLICT (id) DO NOTHING").Exec(ctx)
		if err := unlessAffected(result, err, ErrAgentIDTaken); err != nil {
			return err
		}
		if removed, err := s.agentRemoved(ctx, tx, agent.ID, repeatable); err != nil || removed {
			return cmp.Or(err, ErrAgentRemoved)
		}
		return s.record(ctx, tx, accountID, actor, ActionAgentCreated, agent.ID, agent.Name)
	})
	if errors.Is(err, ErrAgentIDTaken) {
		if repeatable {
			return s.Agent(ctx, accountID, agent.ID)
		}
		return Agent{}, ErrAgentIDTaken
	}
	if err != nil {
		return Agent{}, failed("create agent", err)
	}
	return agent, nil
}

// agentRemoved reports whether the agent of a form was removed after the form had created it.
func (s *Store) agentRemoved(ctx context.Context, tx bun.Tx, id uuid.UUID, ofForm bool) (bool, error) {
	if !ofForm {
		return false, nil
	}
	return tx.NewSelect().Model((*Activity)(nil)).
		Where("subject_id = ? AND action = ?", id, ActionAgentRemoved).Exists(ctx)
}

// Agents returns the account's agents by name. The error may be [ErrUnavailable].
func (s *Store) Agents(ctx context.Context, accountID uuid.UUID) ([]Agent, error) {
	return listAgents(ctx, s.db, accountID)
}

func listAgents(ctx context.Context, db *bun.DB, accountID uuid.UUID) ([]Agent, error) {
	agents := []Agent{}
	err := db.NewSelect().Model(&agents).Where("account_id = ?", accountID).
		OrderExpr("lower(name), name, id").Scan(ctx)
	if err != nil {
		return nil, failed("list agents", err)
	}
	return agents, nil
}

// Agent returns one of the account's agents. The error may be [ErrAgentNotFound] or
// [ErrUnavailable].
func (s *Store) Agent(ctx context.Context, accountID, id uuid.UUID) (Agent, error) {
	var agent Agent
	err := s.db.NewSelect().Model(&agent).Where("account_id = ? AND id = ?", accountID, id).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return Agent{}, ErrAgentNotFound
	}
	if err != nil {
		return Agent{}, failed("find agent", err)
	}
	return agent, nil
}

// RemoveAgent deletes one of the account's agents, which also ends its widget tokens, and records
// the activity. It returns the deleted agent. The error may be [ErrAgentNotFound] or
// [ErrUnavailable].
func (s *Store) RemoveAgent(ctx context.Context, accountID, id uuid.UUID, actor Actor) (Agent, error) {
	var agent Agent
	err := s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		err := tx.NewDelete().Model(&agent).Where("account_id = ? AND id = ?", accountID, id).
			Returning("id, account_id, name, created_at").Scan(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.NewDelete().Model((*lastToken)(nil)).Where("agent_id = ?", id).Exec(ctx); err != nil {
			return err
		}
		return s.record(ctx, tx, accountID, actor, ActionAgentRemoved, agent.ID, agent.Name)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return Agent{}, ErrAgentNotFound
	}
	if err != nil {
		return Agent{}, failed("remove agent", err)
	}
	return agent, nil
}
