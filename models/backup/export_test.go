package backup

import (
	"context"
	"time"
)

// RestoreWithin restores a backup of PostgreSQL as [Restore] does, with another wait for locks.
func RestoreWithin(ctx context.Context, databaseURL, file string, wait time.Duration) error {
	r := restoring{keys: RevokeAllKeys, compared: true, now: time.Now().UTC(), wait: wait}
	_, err := r.restorePostgres(ctx, databaseURL, file)
	return err
}
