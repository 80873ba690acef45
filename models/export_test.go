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

// WarnOfClock logs a wrong clock, as the store does each hour.
func (s *Store) WarnOfClock(ctx context.Context) error { return s.db.warnOfClock(ctx) }

// FlushSightings writes when sessions were last seen and when tokens were last issued.
func (s *Store) FlushSightings(ctx context.Context) error {
	return errors.Join(s.Sessions.flush(ctx), s.Agents.flush(ctx))
}

// EndCalls works on the queue of calls to end as if LiveKit had ended one call of each entry.
func (s *Store) EndCalls(ctx context.Context) error {
	due, err := s.Calls.claim(ctx)
	if err != nil {
		return err
	}
	if len(due) == 0 {
		return nil
	}
	_, err = s.Calls.subjects(ctx, due)
	for i := range due {
		due[i].Ended = 1
	}
	return errors.Join(err, s.Calls.finish(ctx, due, false))
}

// Watched returns the store with a hook that sees every statement.
func (s *Store) Watched(hook bun.QueryHook) *Store {
	db := *s.db
	db.DB, db.api = db.WithQueryHook(hook), db.api.WithQueryHook(hook)
	watched := newStore(&db, s.usage, s.API.authn, s.SignIn.sealer, Options{
		SessionIdle: s.Sessions.idle, SessionMax: s.Sessions.max, SignInLimit: defaultSignInLimit,
		LiveKit: s.Calls.liveKit,
	})
	watched.SignIn.passwords.hasher = s.SignIn.passwords.hasher
	watched.Sessions.lastSeen, watched.Agents.lastTokens = s.Sessions.lastSeen, s.Agents.lastTokens
	return watched
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

// HashEmail returns the hash by which users are looked up.
func HashEmail(email string) []byte { return hashEmail(email) }

// Reseal encrypts secrets of a previous key with the current one, as the store does each hour.
func (s *Store) Reseal(ctx context.Context) error { return s.Credentials.resealTOTP(ctx) }
