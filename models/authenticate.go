//go:build !limit

package models

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// Authenticate returns whose request it is that bears this key, and counts the
// request. The answer is the database's at a moment after the call began: a key
// whose revocation has returned anywhere is refused.
//
// It returns [ErrKeyMissingPrefix] or [ErrKeyMalformed] without asking the
// database, [ErrKeyUnknown], [ErrKeyRevoked], or [ErrUnavailable], in which
// case nothing is known of the key. It bounds its own time, to [Timeout].
func (s *Store) Authenticate(ctx context.Context, key string) (Principal, error) {
	if err := checkKeySecret(key); err != nil {
		return Principal{}, err
	}
	began := time.Now()
	facts, epoch, err := s.auth.find(ctx, hashKey(key))
	if errors.Is(err, ErrKeyUnknown) {
		return Principal{}, ErrKeyUnknown
	}
	if err != nil {
		return Principal{}, failed("authenticate", err)
	}
	if !facts.active {
		s.usage.refused(facts.KeyID, s.clock())
		return Principal{}, ErrKeyRevoked
	}
	s.usage.accepted(facts.KeyID, s.clock())
	facts.epoch, facts.waited = epoch, time.Since(began)
	return facts.Principal, nil
}

// CheckAgent returns nil if the agent is one of the principal's account, and
// else [ErrAgentNotFound] or [ErrUnavailable]. The answer was true at a moment
// of the request that the principal was authenticated for. It bounds its own
// time, to what authentication has left of [Timeout].
func (s *Store) CheckAgent(ctx context.Context, p Principal, agentID uuid.UUID) error {
	agent := accountAgent{p.AccountID, agentID}
	if s.auth.agentHeld(p.epoch, agent) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout-p.waited)
	defer cancel()
	var epoch []byte
	var exists bool
	err := s.db.NewRaw("SELECT (SELECT value FROM auth_epoch), EXISTS (SELECT 1 FROM agents WHERE account_id = ? AND id = ?)",
		p.AccountID, agentID).Scan(ctx, &epoch, &exists)
	if err == nil && len(epoch) != len(authEpoch{}) {
		err = errNoEpoch
	}
	if err != nil {
		return failed("find agent", err)
	}
	if !exists {
		return ErrAgentNotFound
	}
	s.auth.rememberAgent(authEpoch(epoch), agent)
	return nil
}
