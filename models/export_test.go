package models

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"portal/models/database"
	"portal/models/erasure"
)

// PurgeRegularly purges after a delay, as the store does after its start.
func (s *Store) PurgeRegularly(ctx context.Context, delay time.Duration) {
	repeatAfter(ctx, delay, erasure.PurgeInterval, nil, s.maintain, func(error) {})
}

// WarnOfClock logs a wrong clock, as the store does each hour.
func (s *Store) WarnOfClock(ctx context.Context) error { return s.db.WarnOfClock(ctx) }

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
