package models

import (
	"context"
	"crypto/ed25519"

	"github.com/uptrace/bun"
)

// Purge is what the store does each hour.
func (s *Store) Purge(ctx context.Context) error { return s.purge(ctx) }

// SigningKeys are those of widget tokens, the one that signs first.
func (k Keyring) SigningKeys() []ed25519.PrivateKey { return k.signingKeys() }

// Watched is the store, whose every statement the hook sees.
func (s *Store) Watched(hook bun.QueryHook) *Store {
	return &Store{
		db: s.db.WithQueryHook(hook), now: s.now, logger: s.logger,
		authenticator: s.authenticator, passwords: s.passwords, usage: s.usage,
		lastSeen: s.lastSeen, sessionIdle: s.sessionIdle, sessionMax: s.sessionMax,
	}
}

// HashEmail is how emails are looked up.
func HashEmail(email string) []byte { return hashEmail(email) }
