package erasure

import (
	"context"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/value"
)

// Whether a deletion on PostgreSQL waits for a row that another transaction has locked. SQLite's
// transactions run one at a time.
const (
	skipsLocked = "UPDATE SKIP LOCKED" // because the next purge comes
	waits       = "UPDATE"
)

const (
	// purgePause is the least time between two batches, in which other writers can use a SQLite
	// file. It is as long as the batch if that took longer.
	purgePause = 10 * time.Millisecond
)

// deleteWhere deletes the rows that match where, in batches.
func (t Table) deleteWhere(ctx context.Context, db *db.DB, locks, where string, args ...any) error {
	return inBatches(ctx, func() (int64, error) {
		ctx, cancel := context.WithTimeout(ctx, db.Timeout)
		defer cancel()
		return value.Affected(t.deleteBatch(db, db, locks, where, args...).Exec(ctx))
	})
}

// inBatches calls deleteBatch until it deletes nothing. A batch can be small because another
// instance deletes at the same time.
func inBatches(ctx context.Context, deleteBatch func() (int64, error)) error {
	for {
		began := time.Now()
		deleted, err := deleteBatch()
		if err != nil || deleted == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(purgePause, time.Since(began))):
		}
	}
}

// deleteBatch returns the statement that deletes one batch.
func (t Table) deleteBatch(db *db.DB, conn bun.IDB, locks, where string, args ...any) *bun.DeleteQuery {
	key := strings.ReplaceAll(t.Key, " ", ", ")
	batch := conn.NewSelect().TableExpr(t.Name).ColumnExpr(key).Where(where, args...).Limit(value.WriteBatch)
	return conn.NewDelete().TableExpr(t.Name).Where("(?) IN (?)", bun.Safe(key), db.Locked(batch, locks))
}
