//go:build !nostore

package models

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun/dialect"

	"portal/models/authn"
)

// Authenticate returns the principal of an API key and counts the request. The result is the
// database's at a moment after the call began: a key is refused as soon as its revocation is
// confirmed.
//
// It returns [ErrKeyMissingPrefix] or [ErrKeyMalformed] without using the database, and otherwise
// [ErrKeyUnknown], [ErrKeyRevoked], [ErrAccountDisabled] or [ErrUnavailable]. It takes at most
// [Timeout].
func (s *Store) Authenticate(ctx context.Context, key string) (Principal, error) {
	if err := checkKeySecret(key); err != nil {
		return Principal{}, err
	}
	started := time.Now()
	found, epoch, err := s.authenticator.Lookup(ctx, hashKey(key))
	if errors.Is(err, authn.ErrKeyUnknown) {
		return Principal{}, ErrKeyUnknown
	}
	if err != nil {
		return Principal{}, failed("authenticate", err)
	}
	if !found.Active {
		s.usage.refused(found.ID, s.clock())
		if !found.Revoked {
			return Principal{}, ErrAccountDisabled
		}
		return Principal{}, ErrKeyRevoked
	}
	s.usage.accepted(found.ID, s.clock())
	return Principal{AccountID: found.AccountID, KeyID: found.ID, epoch: epoch, waited: time.Since(started)}, nil
}

// CheckAgent returns nil if the agent belongs to the principal's account, and otherwise
// [ErrAgentNotFound] or [ErrUnavailable]. The result was true at some moment between the start of
// Authenticate and the end of CheckAgent, which together take at most [Timeout].
func (s *Store) CheckAgent(ctx context.Context, p Principal, agentID uuid.UUID) error {
	agent := authn.Agent{AccountID: p.AccountID, ID: agentID}
	if s.authenticator.HasAgent(p.epoch, agent) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout-p.waited)
	defer cancel()
	var epoch []byte
	var exists bool
	query := s.api.NewSelect().TableExpr("auth_epoch").Column("value").
		ColumnExpr("EXISTS (SELECT 1 FROM agents WHERE account_id = ? AND id = ?)", p.AccountID, agentID)
	if s.api.Dialect().Name() == dialect.PG {
		// The rows of a standby may be out of date.
		query = query.Where("NOT pg_is_in_recovery()")
	}
	err := query.Scan(ctx, &epoch, &exists)
	if errors.Is(err, sql.ErrNoRows) {
		err = authn.ErrNoEpoch
	}
	if err != nil {
		return failed("find agent", err)
	}
	if !exists {
		return ErrAgentNotFound
	}
	s.authenticator.RememberAgent(authn.EpochValue(epoch), agent)
	return nil
}

// AgentsOf returns the agents of the principal's account, ordered by name. The error may be
// [ErrUnavailable].
func (s *Store) AgentsOf(ctx context.Context, p Principal) ([]Agent, error) {
	return listAgents(ctx, s.api, p.AccountID)
}

// Ready returns [ErrUnavailable] unless the database answers authentication.
func (s *Store) Ready(ctx context.Context) error {
	// No key has this hash, so the lookup reads the database.
	_, _, err := s.authenticator.Lookup(ctx, authn.KeyHash{})
	if err != nil && !errors.Is(err, authn.ErrKeyUnknown) {
		return failed("authenticate", err)
	}
	return nil
}
