package models

import (
	"context"
	"crypto/ed25519"
)

// Purge is what the store does each hour.
func (s *Store) Purge(ctx context.Context) error { return s.purge(ctx) }

// SigningKeys are those of widget tokens, the one that signs first.
func (k Keyring) SigningKeys() []ed25519.PrivateKey { return k.signingKeys() }
