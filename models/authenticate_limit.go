//go:build limit

package models

import (
	"context"

	"github.com/google/uuid"
)

// The build tag "limit" makes the benchmark's upper bound: the same program in
// which every well-formed key is good, with no question asked. Nothing that is
// shipped is built with it, and no flag or environment can turn it on.
var limit = Principal{AccountID: uuid.UUID{1}, KeyID: uuid.UUID{2}}

// Authenticate checks and hashes the key, and accepts it.
func (s *Store) Authenticate(_ context.Context, key string) (Principal, error) {
	if err := checkKeySecret(key); err != nil {
		return Principal{}, err
	}
	principal := limit
	principal.epoch[0] = hashKey(key)[0] // so that the hash is not optimised away
	return principal, nil
}

// CheckAgent accepts every agent.
func (s *Store) CheckAgent(context.Context, Principal, uuid.UUID) error { return nil }
