package models

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// Principal is who makes an API request.
type Principal struct {
	AccountID uuid.UUID
	KeyID     uuid.UUID
}

// Authenticate returns whose request it is that bears this key, and counts the
// request. The answer is the database's at a moment after the call began: a key
// whose revocation has returned anywhere is refused.
//
// It returns [ErrKeyMissingPrefix] or [ErrKeyMalformed] without asking the
// database, [ErrKeyUnknown], [ErrKeyRevoked], or [ErrUnavailable], in which
// case nothing is known of the key.
func (s *Store) Authenticate(ctx context.Context, key string) (Principal, error) {
	if err := checkKeySecret(key); err != nil {
		return Principal{}, err
	}
	found, err := s.auth.find(ctx, hashKey(key))
	if errors.Is(err, sql.ErrNoRows) {
		return Principal{}, ErrKeyUnknown
	}
	if err != nil {
		return Principal{}, failed("authenticate", err)
	}
	if !found.active {
		s.usage.refused(found.KeyID, s.clock())
		return Principal{}, ErrKeyRevoked
	}
	s.usage.accepted(found.KeyID, s.clock())
	return found.Principal, nil
}

// authenticator asks the database who a key belongs to, with one statement.
type authenticator struct {
	db *bun.DB
}

type keyFacts struct {
	Principal
	active bool
}

func newAuthenticator(_ context.Context, db *bun.DB) (*authenticator, error) {
	return &authenticator{db}, nil
}

func (a *authenticator) close() error { return nil }

// find returns what is known of the key with this hash, or [sql.ErrNoRows].
func (a *authenticator) find(ctx context.Context, hash keyHash) (keyFacts, error) {
	var facts keyFacts
	err := a.db.NewSelect().TableExpr("api_keys AS k").
		Join("JOIN accounts AS a ON a.id = k.account_id").
		ColumnExpr("k.id, k.account_id, k.revoked_at IS NULL AND a.disabled_at IS NULL").
		Where("k.key_hash = ?", hash[:]).
		Scan(ctx, &facts.KeyID, &facts.AccountID, &facts.active)
	return facts, err
}
