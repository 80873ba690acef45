package models

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/schema"
	"go.opentelemetry.io/otel/trace"

	"portal/models/database"
	"portal/models/value"
)

// DB is the database with the clock. Services read from it and open transactions. Only DB and [Tx]
// know whether it is SQLite or PostgreSQL.
type DB struct {
	*bun.DB
	api *bun.DB // for the API's reads; see [database.Connections]

	now     func() time.Time
	timeout time.Duration // of each use of the database
	logger  *slog.Logger
	tracer  trace.Tracer // nil: no spans

	mail         bool           // queue mails about activities
	rolesFrom    string         // see [Options.RolesFrom]
	webhooksOff  bool           // queue no webhooks
	pastIDs      bool           // see [Options.PastIDs]
	mailsDropped *atomic.Uint64 // because too many waited
}

// Now returns the time with the precision of the database: UTC, in whole microseconds.
func (db *DB) Now() time.Time { return db.now().UTC().Truncate(time.Microsecond) }

// InTx calls work in a transaction, which it commits unless work fails or the time limit of the
// database passes. The error begins with the operation, except a [committedError].
func (db *DB) InTx(ctx context.Context, operation string, work func(ctx context.Context, tx Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	var committed error
	err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		err := work(ctx, Tx{tx, db})
		if isCommitted(err) {
			committed, err = err, nil
		}
		return err
	})
	if err != nil {
		return value.Failed(operation, err)
	}
	return committed
}

// inBackground calls work in a transaction whose time limit is that of ctx: a background write can
// be larger than those that requests wait for.
func (db *DB) inBackground(ctx context.Context, work func(ctx context.Context, tx Tx) error) error {
	return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { return work(ctx, Tx{tx, db}) })
}

// committedError is an outcome of a transaction that is to be committed nevertheless.
type committedError struct{ error }

func (e committedError) Unwrap() error { return e.error }

// committed returns err as an outcome that is committed.
func committed(err error) error { return committedError{err} }

func isCommitted(err error) bool {
	_, ok := err.(committedError) //nolint:errorlint // not of an error that wraps it
	return ok
}

// inTx is [DB.InTx] for work with a result. With an error, except a [committedError], it returns
// the zero value.
func inTx[T any](ctx context.Context, db *DB, operation string, work func(ctx context.Context, tx Tx) (T, error)) (T, error) {
	var result, zero T
	err := db.InTx(ctx, operation, func(ctx context.Context, tx Tx) (err error) {
		result, err = work(ctx, tx)
		return err
	})
	if err != nil && !isCommitted(err) {
		return zero, err
	}
	return result, err
}

// locked lets a query lock the rows that it selects, with a strength such as "SHARE". SQLite needs
// no lock, because its transactions run one at a time.
func (db *DB) locked(query *bun.SelectQuery, strength string) *bun.SelectQuery {
	if isPostgres(db) {
		query = query.For(strength)
	}
	return query
}

// onPrimary lets a query find no rows on a standby, whose rows may be out of date.
func (db *DB) onPrimary(query *bun.SelectQuery) *bun.SelectQuery {
	if isPostgres(db) {
		query = query.Where("NOT pg_is_in_recovery()")
	}
	return query
}

// unixTime returns the expression for the time in a column in seconds.
func (db *DB) unixTime(column string) schema.QueryWithArgs {
	if isPostgres(db) {
		return bun.SafeQuery("CAST(date_part('epoch', ?) AS bigint)", bun.Ident(column))
	}
	return bun.SafeQuery("unixepoch(?)", bun.Ident(column))
}

// unixTimeUp is unixTime rounded up, so that nothing since then has more seconds.
func (db *DB) unixTimeUp(column string) schema.QueryWithArgs {
	if isPostgres(db) {
		return bun.SafeQuery("CAST(ceil(date_part('epoch', ?)) AS bigint)", bun.Ident(column))
	}
	return bun.SafeQuery("CAST(unixepoch(?, 'subsec') + 0.999 AS INTEGER)", bun.Ident(column))
}

// clock returns the expression for the time of the database; see [Tx.databaseNow].
func (db *DB) clock() schema.QueryWithArgs {
	if isPostgres(db) {
		return bun.SafeQuery("clock_timestamp()")
	}
	return bun.SafeQuery("?", db.Now())
}

// clockNow returns the time of the database; see [Tx.databaseNow].
func (db *DB) clockNow(ctx context.Context) (time.Time, error) {
	if !isPostgres(db) {
		return db.Now(), nil
	}
	return postgresNow(ctx, db)
}

// typed returns the text of a value as SQL of a type, which PostgreSQL does not derive for a column
// of a query.
func (db *DB) typed(kind, value string) string {
	if isPostgres(db) {
		return "CAST('" + value + "' AS " + kind + ")"
	}
	return "'" + value + "'"
}

// dayOf returns the expression for the start of the day (UTC) of the time in a column.
func (db *DB) dayOf(column string) schema.QueryWithArgs {
	if isPostgres(db) {
		return bun.SafeQuery("date_trunc('day', ?, 'UTC')", bun.Ident(column))
	}
	return bun.SafeQuery("substr(?, 1, 10) || ' 00:00:00+00:00'", bun.Ident(column))
}

func isPostgres(db bun.IDB) bool { return db.Dialect().Name() == dialect.PG }

// errLogInUse means that a statement of another connection still reads SQLite's log.
var errLogInUse = errors.New("the write-ahead log is in use")

// truncateLog moves SQLite's write-ahead log, which has earlier versions of pages, into the file
// and empties it. It waits a while for the statements of others. With PostgreSQL, it does nothing.
func (db *DB) truncateLog(ctx context.Context) error {
	if isPostgres(db) {
		return nil
	}
	var busy, frames, moved int
	err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	if err == nil && busy != 0 {
		err = errLogInUse
	}
	return err
}

// Tx is a transaction of [DB.InTx].
type Tx struct {
	bun.Tx
	db *DB
}

// Now is [DB.Now].
func (tx Tx) Now() time.Time { return tx.db.Now() }

// Insert inserts a row, or the rows of a slice.
func (tx Tx) Insert(ctx context.Context, model any) error {
	_, err := tx.NewInsert().Model(model).Exec(ctx)
	return err
}

// Update writes these columns of the row with the model's primary key.
func (tx Tx) Update(ctx context.Context, model any, columns ...string) error {
	_, err := tx.NewUpdate().Model(model).Column(columns...).WherePK().Exec(ctx)
	return err
}

// Delete deletes the rows of the model's table that match where.
func (tx Tx) Delete(ctx context.Context, model any, where string, args ...any) error {
	_, err := tx.NewDelete().Model(model).Where(where, args...).Exec(ctx)
	return err
}

// erasing calls work, which may change and delete activities of the account.
func (tx Tx) erasing(ctx context.Context, accountID uuid.UUID, work func() error) error {
	if _, err := tx.ExecContext(ctx, "INSERT INTO erasing (account_id) VALUES (?)", accountID); err != nil {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM erasing WHERE account_id = ?", accountID)
	return err
}

// deleteOf deletes the rows of a user, or of the users of a query, from these tables.
func (tx Tx) deleteOf(ctx context.Context, users any, tables ...string) error {
	for _, table := range tables {
		if _, err := tx.NewDelete().TableExpr(table).Where("user_id IN (?)", users).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// databaseNow returns the time of the database, by which keys expire: authentication uses it. A
// SQLite database has the clock of the process.
func (tx Tx) databaseNow(ctx context.Context) (time.Time, error) {
	if !isPostgres(tx) {
		return tx.Now(), nil
	}
	return postgresNow(ctx, tx)
}

func postgresNow(ctx context.Context, db bun.IDB) (now time.Time, err error) {
	err = db.NewSelect().ColumnExpr("clock_timestamp()").Scan(ctx, &now)
	return now, err
}

const maxClockSkew = database.MaxClockSkew

// warnOfClock logs a warning if the process's clock differs from that of PostgreSQL. Instances
// refuse the widget tokens of one whose clock is more than a minute ahead.
func (db *DB) warnOfClock(ctx context.Context) error {
	if !isPostgres(db) {
		return nil
	}
	before := db.Now()
	now, err := postgresNow(ctx, db)
	if err != nil {
		return value.Failed("read the time of the database", err)
	}
	if before.Sub(now) > maxClockSkew || now.Sub(db.Now()) > maxClockSkew {
		db.logger.WarnContext(ctx, "the clock of this machine differs from that of the database; synchronize both",
			slog.String("ahead", before.Sub(now).Round(time.Second).String()))
	}
	return nil
}

// The locks below last until the transaction ends. Every transaction takes them in this order:
// subjects of sign-in, account, user, and then keys, links and sessions.

// lockHash lets only one transaction at a time have the lock with this hash, of at least 8 bytes.
func (tx Tx) lockHash(ctx context.Context, hash []byte) error {
	if !isPostgres(tx) {
		return nil
	}
	key := int64(binary.BigEndian.Uint64(hash)) //nolint:gosec // any 64 bits of the hash will do
	_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(?)", key)
	return err
}

// lockAccountsTable reads the account, so that the transaction uses the table accounts before
// others. A restore locks the tables in this order. A transaction that changes a key and then
// records an activity, which refers to the account, would otherwise deadlock with it.
func (tx Tx) lockAccountsTable(ctx context.Context, accountID uuid.UUID) error {
	if !isPostgres(tx) {
		return nil
	}
	_, err := tx.NewSelect().Table("accounts").Column("id").Where("id = ?", accountID).Exec(ctx)
	return err
}

// lockAccount locks the account, so that only one transaction at a time adds its keys, or adds and
// removes its agents.
func (tx Tx) lockAccount(ctx context.Context, accountID uuid.UUID) error {
	query := tx.NewSelect().Table("accounts").Column("id").Where("id = ?", accountID)
	_, err := tx.db.locked(query, "NO KEY UPDATE").Exec(ctx)
	return err
}

// keepKeys returns those of the keys that were not deleted, and lets nobody delete them. It is for
// background writes about keys.
func (tx Tx) keepKeys(ctx context.Context, ids []uuid.UUID) (kept map[uuid.UUID]bool, err error) {
	var found []uuid.UUID
	query := tx.NewSelect().Table("api_keys").Column("id").Where("id IN (?)", bun.List(value.SortedIDs(ids))).OrderExpr("id")
	err = tx.db.locked(query, "KEY SHARE").Scan(ctx, &found)
	kept = make(map[uuid.UUID]bool, len(found))
	for _, id := range found {
		kept[id] = true
	}
	return kept, err
}
