package erasure

import (
	"context"
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

// expiredRows is a kind of rows that the purge deletes.
type expiredRows struct {
	table, key string // key is the columns of the primary key
	where      string
	args       []any
}

// purgeTable deletes in batches until no expired rows are left.
func purgeTable(ctx context.Context, db *db.DB, locks string, old expiredRows) error {
	return inBatches(ctx, func() (int64, error) {
		ctx, cancel := context.WithTimeout(ctx, db.Timeout)
		defer cancel()
		return value.Affected(old.deleteBatch(db, db, locks).Exec(ctx))
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

// deleteBatch deletes one batch.
func (r expiredRows) deleteBatch(db *db.DB, conn bun.IDB, locks string) *bun.DeleteQuery {
	batch := conn.NewSelect().TableExpr(r.table).ColumnExpr(r.key).Where(r.where, r.args...).Limit(value.WriteBatch)
	return conn.NewDelete().TableExpr(r.table).Where("(?) IN (?)", bun.Safe(r.key), db.Locked(batch, locks))
}
