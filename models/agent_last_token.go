package models

import (
	"bytes"
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
// checked with [Store.CheckAgent] that the agent exists, which bounds the memory.
func (s *Store) TokenIssued(agentID uuid.UUID) {
	s.lastTokens.set(agentID, lastSeen{at: s.clock()})
}

// LastToken returns when a widget token was last issued for one of the account's agents, or the
// zero time if none is on record. The error may be [ErrAgentNotFound] or [ErrUnavailable].
func (s *Store) LastToken(ctx context.Context, accountID, agentID uuid.UUID) (time.Time, error) {
	// The memory is read first: a flush in between moves the time to the database.
	pending := s.lastTokens.latest(agentID, time.Time{})
	var stored sql.NullTime
	err := s.db.NewSelect().Model((*Agent)(nil)).ColumnExpr("last_token.issued_at").
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

// flushLastTokens locks the rows in the order of their ids, so that the flushes of two instances
// cannot deadlock.
func (s *Store) flushLastTokens(ctx context.Context) error {
	pending := s.lastTokens.snapshot()
	agentIDs := slices.SortedFunc(maps.Keys(pending), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	rows := make([]lastToken, len(agentIDs))
	for i, id := range agentIDs {
		rows[i] = lastToken{AgentID: id, IssuedAt: pending[id].at}
	}
	return failed("write when tokens were last issued", inChunks(rows, func(rows []lastToken) error {
		_, err := s.db.NewInsert().Model(&rows).On("CONFLICT (agent_id) DO UPDATE").
			Set("issued_at = excluded.issued_at").
			Where("last_token.issued_at < excluded.issued_at").Exec(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			s.lastTokens.remove(row.AgentID, pending[row.AgentID])
		}
		return nil
	}))
}
