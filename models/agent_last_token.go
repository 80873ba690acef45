package models

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

type lastToken struct {
	bun.BaseModel `bun:"table:agent_last_tokens"`

	AgentID  uuid.UUID
	IssuedAt time.Time
}

// TokenIssued notes in memory that a widget token was issued for an agent. The caller must have
// checked with [API.CheckAgent] that the agent exists, which bounds the memory.
func (a *Agents) TokenIssued(agentID uuid.UUID) {
	a.lastTokens.set(agentID, lastSeen{at: a.db.Now()})
}

// LastToken returns when a widget token was last issued for one of the account's agents, or the
// zero time if none is on record. The error may be [ErrAgentNotFound] or [ErrUnavailable].
func (a *Agents) LastToken(ctx context.Context, accountID, agentID uuid.UUID) (time.Time, error) {
	// The memory is read first: a flush in between moves the time to the database.
	pending := a.lastTokens.latest(agentID, time.Time{})
	var stored sql.NullTime
	err := a.db.NewSelect().Model((*Agent)(nil)).ColumnExpr("last_token.issued_at").
		Join("LEFT JOIN agent_last_tokens AS last_token ON last_token.agent_id = agent.id").
		Where("agent.account_id = ? AND agent.id = ?", accountID, agentID).Scan(ctx, &stored)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, ErrAgentNotFound
	}
	if err != nil {
		return time.Time{}, failed("find an agent's last token", err)
	}
	if pending.After(stored.Time) {
		return pending, nil
	}
	return stored.Time, nil
}

// flush writes nothing for agents that were removed after their last token.
func (a *Agents) flush(ctx context.Context) error {
	return failed("write when tokens were last issued", a.lastTokens.flush(func(seen []sighting) error {
		times, left := map[uuid.UUID]time.Time{}, []uuid.UUID{}
		for _, one := range seen {
			times[one.ID] = one.At
		}
		ids := slices.Collect(maps.Keys(times))
		err := a.db.NewSelect().Model((*Agent)(nil)).Column("id").Where("id IN (?)", bun.List(ids)).OrderExpr("id").Scan(ctx, &left)
		if err != nil || len(left) == 0 {
			return err
		}
		rows := make([]lastToken, len(left))
		for i, id := range left {
			rows[i] = lastToken{AgentID: id, IssuedAt: times[id]}
		}
		_, err = a.db.NewInsert().Model(&rows).On("CONFLICT (agent_id) DO UPDATE").
			Set("issued_at = excluded.issued_at").
			Where("last_token.issued_at < excluded.issued_at").Exec(ctx)
		return err
	}))
}
