package models

import (
	"context"
	"database/sql"
	"time"

	"portal/models/authn"
)

// Stats describe the state of a store, for metrics.
type Stats struct {
	Authentication authn.Stats
	Pool           sql.DBStats // the pool of connections

	PendingKeys int           // keys with usage that is not in the database yet
	FlushLag    time.Duration // age of the oldest such usage
	HashQueue   int           // passwords that wait for their check
}

// Stats returns the state. It does not use the database.
func (s *Store) Stats() Stats {
	pending, since := s.usage.unwritten()
	stats := Stats{
		Authentication: s.authenticator.Stats(), Pool: s.db.Stats(),
		PendingKeys: pending, HashQueue: s.passwords.length(),
	}
	if pending > 0 {
		stats.FlushLag = time.Since(since)
	}
	return stats
}

// CountSessions returns the number of sessions that have not reached their absolute end. The error
// may be [ErrUnavailable].
func (s *Store) CountSessions(ctx context.Context) (int, error) {
	count, err := s.db.NewSelect().Model((*Session)(nil)).Where("expires_at > ?", s.clock()).Count(ctx)
	return int(count), failed("count sessions", err)
}
