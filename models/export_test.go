package models

import (
	"context"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"portal/models/database"
	"portal/models/password"
)

// DefaultPasswordMemory is [password.DefaultMemory]. Tests have a constant named password.
const DefaultPasswordMemory = password.DefaultMemory

// Purge deletes expired rows, as the store does each hour.
func (s *Store) Purge(ctx context.Context) error { return s.purge(ctx) }

// PurgeRegularly purges after a delay, as the store does after its start.
func (s *Store) PurgeRegularly(ctx context.Context, delay time.Duration) {
	s.purgeRegularly(ctx, delay)
}

// FlushSightings writes when sessions were last seen and when tokens were last issued.
func (s *Store) FlushSightings(ctx context.Context) error {
	return errors.Join(s.flushLastSeen(ctx), s.flushLastTokens(ctx))
}

// EndCalls works on the queue of calls to end as if LiveKit had ended one call of each entry.
func (s *Store) EndCalls(ctx context.Context) error {
	due, err := s.claimHangUps(ctx)
	if err != nil {
		return err
	}
	if len(due) == 0 {
		return nil
	}
	_, err = s.callSubjects(ctx, due)
	for i := range due {
		due[i].Ended = 1
	}
	return errors.Join(err, s.finishHangUps(ctx, due, false))
}

// Watched returns the store with a hook that sees every statement.
func (s *Store) Watched(hook bun.QueryHook) *Store {
	return &Store{
		signInLimit: defaultSignInLimit, timeout: s.timeout, sealer: s.sealer, mail: s.mail,
		db: s.db.WithQueryHook(hook), api: s.api.WithQueryHook(hook), now: s.now, logger: s.logger,
		authenticator: s.authenticator, passwords: s.passwords, usage: s.usage,
		lastSeen: s.lastSeen, lastTokens: s.lastTokens, sessionIdle: s.sessionIdle, sessionMax: s.sessionMax,
	}
}

// TakeConnections takes all connections of the portal's pool until the returned function is called.
func (s *Store) TakeConnections(ctx context.Context) (release func(), err error) {
	var taken []bun.Conn
	release = func() {
		for _, conn := range taken {
			_ = conn.Close()
		}
	}
	for range database.PortalConnections {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return release, err
		}
		taken = append(taken, conn)
	}
	return release, nil
}

// NewKeySecret returns a random key.
func NewKeySecret() string { return newKeySecret() }

// HashEmail returns the hash by which users are looked up.
func HashEmail(email string) []byte { return hashEmail(email) }

// Reseal encrypts secrets of a previous key with the current one, as the store does each hour.
func (s *Store) Reseal(ctx context.Context) error { return s.resealAuthenticators(ctx) }
