// Package agents has the voice agents of accounts, and when keys last used them.
package agents

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/keys"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// Agents are the voice agents of accounts.
type Agents struct {
	db   *db.DB
	uses *db.LastSeenBuffer // when keys last used agents
}

// New returns the service, which keeps in uses when keys last used agents.
func New(db *db.DB, uses *db.LastSeenBuffer) *Agents { return &Agents{db: db, uses: uses} }

// Create creates an agent and records the activity. If the same form is submitted again with the
// same name, it returns the agent of the first submission, or [value.ErrAgentRemoved] if that agent
// was removed. The error may also be an [*value.InvalidError] for the field "name",
// [value.ErrAgentIDTaken] or [value.ErrAgentLimit].
func (a *Agents) Create(ctx context.Context, accountID uuid.UUID, n NewAgent, actor record.Actor) (Agent, error) {
	name, err := value.CleanName("name", "Name", n.Name)
	if err != nil {
		return Agent{}, err
	}
	agent := Agent{ID: n.ID, AccountID: accountID, Name: name, CreatedAt: a.db.Now()}
	repeatable := agent.ID == uuid.Nil && n.FormID != uuid.Nil
	switch {
	case repeatable:
		// The id depends on the account, so that a form of another account cannot produce
		// it.
		agent.ID = uuid.NewSHA1(accountID, append(n.FormID[:], name...))
	case agent.ID == uuid.Nil:
		agent.ID = value.NewID()
	}
	return db.InTx(ctx, a.db, "create agent", func(ctx context.Context, tx db.Tx) (Agent, error) {
		if err := tx.LockAccount(ctx, accountID); err != nil {
			return Agent{}, err
		}
		if repeatable {
			made, err := findAgent(ctx, tx, accountID, agent.ID)
			if !errors.Is(err, value.ErrAgentNotFound) {
				return made, err
			}
			_, err = findRemovedAgent(ctx, tx, accountID, agent.ID)
			if !errors.Is(err, value.ErrAgentNotFound) {
				return Agent{}, cmp.Or(err, value.ErrAgentRemoved)
			}
		}
		return agent, insertAgent(ctx, tx, agent, actor)
	})
}

// insertAgent inserts an agent and records the activity, in a transaction that has locked the
// account.
func insertAgent(ctx context.Context, tx db.Tx, agent Agent, actor record.Actor) error {
	result, err := tx.NewInsert().Model(&agent).On("CONFLICT (id) DO NOTHING").Exec(ctx)
	if err := value.UnlessAffected(result, err, value.ErrAgentIDTaken); err != nil {
		return err
	}
	agents, err := tx.NewSelect().Model((*Agent)(nil)).Where("account_id = ?", agent.AccountID).Count(ctx)
	if err == nil && agents > value.MaxAgents {
		err = value.ErrAgentLimit
	}
	if err != nil {
		return err
	}
	return record.Add(ctx, tx, actor, record.Activity{AccountID: agent.AccountID, Action: record.ActionAgentCreated, SubjectID: &agent.ID, Label: agent.Name})
}

// Put creates the agent with this id in the account, or renames it, pauses or resumes it unless
// paused is nil, and records what changes. It is for operators, and reports whether it has created
// the agent. The error may be an [*value.InvalidError] for the field "name",
// [value.ErrAccountNotFound], [value.ErrAgentIDTaken] if the id is another account's, or
// [value.ErrAgentLimit].
func (a *Agents) Put(
	ctx context.Context, accountID, id uuid.UUID, name string, paused *bool, actor record.Actor,
) (agent Agent, created bool, err error) {
	if _, err = people.FindAccount(ctx, a.db, accountID); err != nil {
		return Agent{}, false, err
	}
	if name, err = value.CleanName("name", "Name", name); err != nil {
		return Agent{}, false, err
	}
	err = a.db.InTx(ctx, "put agent", func(ctx context.Context, tx db.Tx) (err error) {
		// While the account is locked, nobody adds or removes its agents.
		if err := tx.LockAccount(ctx, accountID); err != nil {
			return err
		}
		agent, err = findAgent(ctx, tx, accountID, id)
		if created = errors.Is(err, value.ErrAgentNotFound); created {
			agent = Agent{ID: id, AccountID: accountID, Name: name, CreatedAt: tx.Now()}
			err = insertAgent(ctx, tx, agent, actor)
		} else if err == nil {
			agent, err = renameAgent(ctx, tx, agent, name, actor)
		}
		if err == nil && paused != nil {
			agent, err = setAgentPaused(ctx, tx, agent, *paused, actor)
		}
		return err
	})
	if err != nil {
		return Agent{}, false, err
	}
	return agent, created, nil
}

// Rename renames one of the account's agents and records the activity, unless it has the name. The
// error may be an [*value.InvalidError] for the field "name" or [value.ErrAgentNotFound].
func (a *Agents) Rename(ctx context.Context, accountID, id uuid.UUID, name string, actor record.Actor) (Agent, error) {
	name, err := value.CleanName("name", "Name", name)
	if err != nil {
		return Agent{}, err
	}
	return db.InTx(ctx, a.db, "rename agent", func(ctx context.Context, tx db.Tx) (Agent, error) {
		if err := tx.LockAccount(ctx, accountID); err != nil {
			return Agent{}, err
		}
		agent, err := findAgent(ctx, tx, accountID, id)
		if err != nil {
			return Agent{}, err
		}
		return renameAgent(ctx, tx, agent, name, actor)
	})
}

func renameAgent(ctx context.Context, tx db.Tx, agent Agent, name string, actor record.Actor) (Agent, error) {
	if agent.Name == name {
		return agent, nil
	}
	former := agent.Name
	agent.Name = name
	if err := tx.Update(ctx, &agent, "name"); err != nil {
		return Agent{}, err
	}
	return agent, record.Add(ctx, tx, actor, record.Activity{
		AccountID: agent.AccountID, Action: record.ActionAgentRenamed, SubjectID: &agent.ID, Label: name, FormerLabel: former,
	})
}

// List returns a page of the account's agents, by name. If the account never had the agent that the
// page follows, the error is [value.ErrAgentNotFound].
func (a *Agents) List(ctx context.Context, accountID uuid.UUID, page value.Page) (value.List[Agent], error) {
	return listAgents(ctx, a.db, accountID, page, nil)
}

// ReachedBy is [Agents.List] for the principal's account, with the agents that the key reaches.
func (a *Agents) ReachedBy(ctx context.Context, p keys.Principal, page value.Page) (value.List[Agent], error) {
	return listAgents(ctx, a.db.API, p.AccountID, page, p.AllowedAgents())
}

// listAgents returns a page of the account's agents, or of those of them that are in only, unless
// it is nil.
func listAgents(ctx context.Context, db bun.IDB, accountID uuid.UUID, page value.Page, only []uuid.UUID) (value.List[Agent], error) {
	agents := []Agent{}
	query := db.NewSelect().Model(&agents).Where("account_id = ?", accountID).
		OrderExpr("lower(name), name, id").Limit(int64(page.Limit) + 1)
	if only != nil {
		// A list in SQL is not empty.
		query = query.Where("id IN (?)", bun.List(append([]uuid.UUID{uuid.Nil}, only...)))
	}
	if page.After != uuid.Nil {
		last, err := findAgent(ctx, db, accountID, page.After)
		if errors.Is(err, value.ErrAgentNotFound) {
			last, err = findRemovedAgent(ctx, db, accountID, page.After)
		}
		if err != nil {
			return value.List[Agent]{}, err
		}
		query = query.Where("(lower(name), name, id) > (lower(?), ?, ?)", last.Name, last.Name, last.ID)
	}
	if err := query.Scan(ctx); err != nil {
		return value.List[Agent]{}, value.Failed("list agents", err)
	}
	return value.Cut(agents, page), nil
}

// Find returns one of the account's agents, or [value.ErrAgentNotFound].
func (a *Agents) Find(ctx context.Context, accountID, id uuid.UUID) (Agent, error) {
	return findAgent(ctx, a.db, accountID, id)
}

func findAgent(ctx context.Context, db bun.IDB, accountID, id uuid.UUID) (Agent, error) {
	var agent Agent
	err := db.NewSelect().Model(&agent).Where("account_id = ? AND id = ?", accountID, id).Scan(ctx)
	return agent, value.NotFound("find agent", err, value.ErrAgentNotFound)
}

// findRemovedAgent returns the id and the last name of an agent that was removed from the account,
// or [value.ErrAgentNotFound].
func findRemovedAgent(ctx context.Context, db bun.IDB, accountID, id uuid.UUID) (Agent, error) {
	agent := Agent{ID: id, AccountID: accountID}
	err := db.NewSelect().Model((*record.Activity)(nil)).Column("label").
		Where("account_id = ? AND subject_id = ? AND action = ?", accountID, id, record.ActionAgentRemoved).
		OrderExpr("id DESC").Limit(1).Scan(ctx, &agent.Name)
	return agent, value.NotFound("find removed agent", err, value.ErrAgentNotFound)
}

// SetPaused pauses or resumes one of the account's agents and records the activity, unless nothing
// changes. While it is paused, its tokens are refused and its calls end. If there is no such agent,
// the error is [value.ErrAgentNotFound].
func (a *Agents) SetPaused(ctx context.Context, accountID, id uuid.UUID, paused bool, actor record.Actor) (Agent, error) {
	return db.InTx(ctx, a.db, "pause or resume agent", func(ctx context.Context, tx db.Tx) (Agent, error) {
		if err := tx.LockAccount(ctx, accountID); err != nil {
			return Agent{}, err
		}
		agent, err := findAgent(ctx, tx, accountID, id)
		if err != nil {
			return Agent{}, err
		}
		return setAgentPaused(ctx, tx, agent, paused, actor)
	})
}

func setAgentPaused(ctx context.Context, tx db.Tx, agent Agent, paused bool, actor record.Actor) (Agent, error) {
	if paused == (agent.PausedAt != nil) {
		return agent, nil
	}
	action := record.ActionAgentResumed
	agent.PausedAt = nil
	if paused {
		action, agent.PausedAt = record.ActionAgentPaused, new(tx.Now())
	}
	if err := tx.Update(ctx, &agent, "paused_at"); err != nil {
		return Agent{}, err
	}
	return agent, record.Add(ctx, tx, actor, record.Activity{AccountID: agent.AccountID, Action: action, SubjectID: &agent.ID, Label: agent.Name})
}

// Remove deletes one of the account's agents, which also ends its widget tokens, and records the
// activity. If there is no such agent, the error is [value.ErrAgentNotFound].
func (a *Agents) Remove(ctx context.Context, accountID, id uuid.UUID, actor record.Actor) (Agent, error) {
	return db.InTx(ctx, a.db, "remove agent", func(ctx context.Context, tx db.Tx) (agent Agent, err error) {
		if err := tx.LockAccount(ctx, accountID); err != nil {
			return agent, err
		}
		err = tx.NewDelete().Model(&agent).Where("account_id = ? AND id = ?", accountID, id).
			Returning("id, account_id, name, created_at, paused_at").Scan(ctx)
		if err != nil {
			return agent, value.NoRows(err, value.ErrAgentNotFound)
		}
		if err := keys.DropFromKeys(ctx, tx, accountID, id); err != nil {
			return agent, err
		}
		return agent, record.Add(ctx, tx, actor, record.Activity{AccountID: accountID, Action: record.ActionAgentRemoved, SubjectID: &agent.ID, Label: agent.Name})
	})
}

// Used notes in memory that a key of the account used an agent: requested a widget token for it, or
// was authorized for it. The caller must have checked with [keys.API.CheckAgent] that the agent
// exists.
func (a *Agents) Used(accountID, agentID, keyID uuid.UUID) {
	a.uses.Set(db.SeenID{ID: agentID, KeyID: keyID}, db.LastSeen{Owner: accountID, At: a.db.Now()})
}

// UsedBy returns when one of the account's keys last used each of its agents, as far as that was in
// the last 30 days.
func (a *Agents) UsedBy(ctx context.Context, accountID, keyID uuid.UUID) (map[uuid.UUID]time.Time, error) {
	first := keys.SourceDays.Starts(a.db.Now())[0]
	var rows []struct {
		ID        uuid.UUID
		CreatedAt time.Time
		UsedAt    sql.NullTime
	}
	err := a.db.NewSelect().Model((*Agent)(nil)).Column("agent.id", "agent.created_at").ColumnExpr("agent_use.used_at").
		Join("LEFT JOIN api_key_agents AS agent_use ON agent_use.agent_id = agent.id AND agent_use.api_key_id = ?", keyID).
		Where("agent.account_id = ?", accountID).Scan(ctx, &rows)
	used := map[uuid.UUID]time.Time{}
	for _, row := range rows {
		// What was written meanwhile still rests in the memory, unless more was than it keeps.
		at := a.uses.Latest(db.SeenID{ID: row.ID, KeyID: keyID}, row.UsedAt.Time)
		// A removed agent may have had the id before.
		if !at.Before(first) && !at.Before(row.CreatedAt) {
			used[row.ID] = at
		}
	}
	return used, value.Failed("read the agents that an API key used", err)
}

// LastUsed returns when a key last used one of the account's agents, as far as that was in the last
// 90 days, otherwise the zero time, or [value.ErrAgentNotFound].
func (a *Agents) LastUsed(ctx context.Context, accountID, agentID uuid.UUID) (time.Time, error) {
	newest := a.uses.Newest(agentID)
	// A removed agent may have had the id before.
	newestStored := a.db.NewSelect().Table("api_key_agents").Column("used_at").
		Where("agent_id = agent.id AND used_at >= agent.created_at").OrderExpr("used_at DESC").Limit(1)
	var createdAt time.Time
	var stored bun.NullTime
	err := a.db.NewSelect().Model((*Agent)(nil)).ColumnExpr("agent.created_at, (?)", newestStored).
		Where("agent.account_id = ? AND agent.id = ?", accountID, agentID).Scan(ctx, &createdAt, &stored)
	if err != nil {
		return time.Time{}, value.NotFound("read when an agent was last used", err, value.ErrAgentNotFound)
	}
	if newest.Before(createdAt) {
		return stored.Time, nil
	}
	return db.Later(stored.Time, newest), nil
}

// agentUse is when a key last used an agent.
type agentUse struct {
	bun.BaseModel `bun:"table:api_key_agents"`

	APIKeyID uuid.UUID
	AgentID  uuid.UUID
	UsedAt   time.Time
}

// usesRest is how long a use is stored until a newer one of the agent by the same key is written.
// Other instances show it within a minute, so usesRest plus the interval of the flushes and the
// duration of one must stay below that.
const usesRest = 58 * time.Second

// NewUses returns a memory for [New].
func NewUses() *db.LastSeenBuffer { return db.NewLastSeenBuffer(usesRest) }

// Flush writes the uses that were not written in the last minute. It writes nothing for keys that
// were deleted and agents that were removed after their last use.
func (a *Agents) Flush(ctx context.Context) error {
	return value.Failed("write when agents were last used", a.uses.Flush(ctx, a.db.Now(), func(ctx context.Context, seen []db.LastSeenRow) error {
		return a.db.InBackground(ctx, func(ctx context.Context, tx db.Tx) error { return writeAgentUses(ctx, tx, seen) })
	}))
}

// FlushAll is [Agents.Flush] for all uses in memory, at a stop.
func (a *Agents) FlushAll(ctx context.Context) error {
	a.uses.Wake()
	return a.Flush(ctx)
}

func writeAgentUses(ctx context.Context, tx db.Tx, seen []db.LastSeenRow) error {
	var agents, keys, left []uuid.UUID
	for _, one := range seen {
		agents, keys = append(agents, one.ID), append(keys, one.KeyID)
	}
	agents = slices.Compact(agents) // a batch is sorted by agent
	if err := tx.NewSelect().Model((*Agent)(nil)).Column("id").Where("id IN (?)", bun.List(agents)).Scan(ctx, &left); err != nil {
		return err
	}
	exists, err := tx.KeepKeys(ctx, keys)
	if err != nil {
		return err
	}
	for _, id := range left {
		exists[id] = true
	}
	var uses []agentUse
	for _, one := range seen {
		if exists[one.ID] && exists[one.KeyID] {
			uses = append(uses, agentUse{APIKeyID: one.KeyID, AgentID: one.ID, UsedAt: one.At})
		}
	}
	if len(uses) == 0 {
		return nil
	}
	_, err = tx.NewInsert().Model(&uses).On("CONFLICT (api_key_id, agent_id) DO UPDATE").
		Set("used_at = excluded.used_at").
		Where("agent_use.used_at < excluded.used_at").Exec(ctx)
	return err
}
