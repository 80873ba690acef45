// Package db is the database as the subjects of package models see it: transactions, the clock, row
// locks and the differences between SQLite and PostgreSQL. The other subjects do not name a
// dialect.
package db

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
	API *bun.DB // for the API's reads; see [database.Connections]

	Clock   func() time.Time
	Timeout time.Duration // of each use of the database
	Logger  *slog.Logger
	Tracer  trace.Tracer // nil: no spans

	Mails        bool           // queue mails about activities
	RolesFrom    string         // see models.Options.RolesFrom
	WebhooksOff  bool           // queue no webhooks
	PastIDs      bool           // see models.Options.PastIDs
	MailsDropped *atomic.Uint64 // because too many waited
}

// Now returns the time with the precision of the database: UTC, in whole microseconds.
func (db *DB) Now() time.Time { return db.Clock().UTC().Truncate(time.Microsecond) }

// InTx calls work in a transaction, which it commits unless work fails or the time limit of the
// database passes. The error begins with the operation, except a [CommittedError].
func (db *DB) InTx(ctx context.Context, operation string, work func(ctx context.Context, tx Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, db.Timeout)
	defer cancel()
	var committed error
	err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		err := work(ctx, Tx{tx, db})
		if IsCommitted(err) {
			committed, err = err, nil
		}
		return err
	})
	if err != nil {
		return value.Failed(operation, err)
	}
	return committed
}

// InBackground calls work in a transaction whose time limit is that of ctx: a background write can
// be larger than those that requests wait for.
func (db *DB) InBackground(ctx context.Context, work func(ctx context.Context, tx Tx) error) error {
	return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { return work(ctx, Tx{tx, db}) })
}

// CommittedError is an outcome of a transaction that is to be committed nevertheless.
type CommittedError struct{ error }

func (e CommittedError) Unwrap() error { return e.error }

// Committed returns err as an outcome that is committed.
func Committed(err error) error { return CommittedError{err} }

// IsCommitted reports whether err is a [CommittedError].
func IsCommitted(err error) bool {
	_, ok := err.(CommittedError) //nolint:errorlint // not of an error that wraps it
	return ok
}

// InTx is [DB.InTx] for work with a result. With an error, except a [CommittedError], it returns
// the zero value.
func InTx[T any](ctx context.Context, db *DB, operation string, work func(ctx context.Context, tx Tx) (T, error)) (T, error) {
	var result, zero T
	err := db.InTx(ctx, operation, func(ctx context.Context, tx Tx) (err error) {
		result, err = work(ctx, tx)
		return err
	})
	if err != nil && !IsCommitted(err) {
		return zero, err
	}
	return result, err
}

// WhereIf returns a function for Apply that adds the condition to the query if it is wanted.
func WhereIf(wanted bool, condition string, args ...any) func(*bun.SelectQuery) *bun.SelectQuery {
	return func(query *bun.SelectQuery) *bun.SelectQuery {
		if wanted {
			query = query.Where(condition, args...)
		}
		return query
	}
}

// Locked lets a query lock the rows that it selects, with a strength such as "SHARE". SQLite needs
// no lock, because its transactions run one at a time.
func (db *DB) Locked(query *bun.SelectQuery, strength string) *bun.SelectQuery {
	if IsPostgres(db) {
		query = query.For(strength)
	}
	return query
}

// OnPrimary lets a query find no rows on a standby, whose rows may be out of date.
func (db *DB) OnPrimary(query *bun.SelectQuery) *bun.SelectQuery {
	if IsPostgres(db) {
		query = query.Where("NOT pg_is_in_recovery()")
	}
	return query
}

// UnixTime returns the expression for the time in a column in seconds.
func (db *DB) UnixTime(column string) schema.QueryWithArgs {
	if IsPostgres(db) {
		return bun.SafeQuery("CAST(date_part('epoch', ?) AS bigint)", bun.Ident(column))
	}
	return bun.SafeQuery("unixepoch(?)", bun.Ident(column))
}

// UnixTimeUp is UnixTime rounded up, so that nothing since then has more seconds.
func (db *DB) UnixTimeUp(column string) schema.QueryWithArgs {
	if IsPostgres(db) {
		return bun.SafeQuery("CAST(ceil(date_part('epoch', ?)) AS bigint)", bun.Ident(column))
	}
	return bun.SafeQuery("CAST(unixepoch(?, 'subsec') + 0.999 AS INTEGER)", bun.Ident(column))
}

// ClockExpr returns the expression for the time of the database; see [Tx.DatabaseNow].
func (db *DB) ClockExpr() schema.QueryWithArgs {
	if IsPostgres(db) {
		return bun.SafeQuery("clock_timestamp()")
	}
	return bun.SafeQuery("?", db.Now())
}

// ClockNow returns the time of the database; see [Tx.DatabaseNow].
func (db *DB) ClockNow(ctx context.Context) (time.Time, error) {
	if !IsPostgres(db) {
		return db.Now(), nil
	}
	return PostgresNow(ctx, db)
}

// Typed returns the text of a value as SQL of a type, which PostgreSQL does not derive for a column
// of a query.
func (db *DB) Typed(kind, value string) string {
	if IsPostgres(db) {
		return "CAST('" + value + "' AS " + kind + ")"
	}
	return "'" + value + "'"
}

// DayOf returns the expression for the start of the day (UTC) of the time in a column.
func (db *DB) DayOf(column string) schema.QueryWithArgs {
	if IsPostgres(db) {
		return bun.SafeQuery("date_trunc('day', ?, 'UTC')", bun.Ident(column))
	}
	return bun.SafeQuery("substr(?, 1, 10) || ' 00:00:00+00:00'", bun.Ident(column))
}

// IsPostgres reports whether the database is PostgreSQL.
func IsPostgres(db bun.IDB) bool { return db.Dialect().Name() == dialect.PG }

// errLogInUse means that a statement of another connection still reads SQLite's log.
var errLogInUse = errors.New("the write-ahead log is in use")

// TruncateLog moves SQLite's write-ahead log, which has earlier versions of pages, into the file
// and empties it. It waits a while for the statements of others. With PostgreSQL, it does nothing.
func (db *DB) TruncateLog(ctx context.Context) error {
	if IsPostgres(db) {
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
	DB *DB
}

// Now is [DB.Now].
func (tx Tx) Now() time.Time { return tx.DB.Now() }

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

// Erasing calls work, which may change and delete activities of the account.
func (tx Tx) Erasing(ctx context.Context, accountID uuid.UUID, work func() error) error {
	if _, err := tx.ExecContext(ctx, "INSERT INTO erasing (account_id) VALUES (?)", accountID); err != nil {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM erasing WHERE account_id = ?", accountID)
	return err
}

// DeleteOf deletes the rows of a user, or of the users of a query, from these tables.
func (tx Tx) DeleteOf(ctx context.Context, users any, tables ...string) error {
	for _, table := range tables {
		if _, err := tx.NewDelete().TableExpr(table).Where("user_id IN (?)", users).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// DatabaseNow returns the time of the database, by which keys expire: authentication uses it. A
// SQLite database has the clock of the process.
func (tx Tx) DatabaseNow(ctx context.Context) (time.Time, error) {
	if !IsPostgres(tx) {
		return tx.Now(), nil
	}
	return PostgresNow(ctx, tx)
}

// PostgresNow returns the time of a PostgreSQL server.
func PostgresNow(ctx context.Context, db bun.IDB) (now time.Time, err error) {
	err = db.NewSelect().ColumnExpr("clock_timestamp()").Scan(ctx, &now)
	return now, err
}

// MaxClockSkew is how far the clocks of an instance and the database may be apart.
const MaxClockSkew = database.MaxClockSkew

// WarnOfClock logs a warning if the process's clock differs from that of PostgreSQL. Instances
// refuse the widget tokens of one whose clock is more than a minute ahead.
func (db *DB) WarnOfClock(ctx context.Context) error {
	if !IsPostgres(db) {
		return nil
	}
	before := db.Now()
	now, err := PostgresNow(ctx, db)
	if err != nil {
		return value.Failed("read the time of the database", err)
	}
	if before.Sub(now) > MaxClockSkew || now.Sub(db.Now()) > MaxClockSkew {
		db.Logger.WarnContext(ctx, "the clock of this machine differs from that of the database; synchronize both",
			slog.String("ahead", before.Sub(now).Round(time.Second).String()))
	}
	return nil
}

// The locks below last until the transaction ends. Every transaction takes them in this order:
// subjects of sign-in, account, user, and then keys, links and sessions.

// LockHash lets only one transaction at a time have the lock with this hash, of at least 8 bytes.
func (tx Tx) LockHash(ctx context.Context, hash []byte) error {
	if !IsPostgres(tx) {
		return nil
	}
	key := int64(binary.BigEndian.Uint64(hash)) //nolint:gosec // any 64 bits of the hash will do
	_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(?)", key)
	return err
}

// LockAccountsTable reads the account, so that the transaction uses the table accounts before
// others. A restore locks the tables in this order. Otherwise, it and a transaction that changes a
// key and then records an activity, which refers to the account, would wait for each other until
// the restore releases its locks and tries again.
func (tx Tx) LockAccountsTable(ctx context.Context, accountID uuid.UUID) error {
	if !IsPostgres(tx) {
		return nil
	}
	_, err := tx.NewSelect().Table("accounts").Column("id").Where("id = ?", accountID).Exec(ctx)
	return err
}

// LockAccount locks the account, so that only one transaction at a time adds its keys, or adds and
// removes its agents.
func (tx Tx) LockAccount(ctx context.Context, accountID uuid.UUID) error {
	query := tx.NewSelect().Table("accounts").Column("id").Where("id = ?", accountID)
	_, err := tx.DB.Locked(query, "NO KEY UPDATE").Exec(ctx)
	return err
}

// KeepKeys returns those of the keys that were not deleted, and lets nobody delete them. It is for
// background writes about keys.
func (tx Tx) KeepKeys(ctx context.Context, ids []uuid.UUID) (kept map[uuid.UUID]bool, err error) {
	var found []uuid.UUID
	query := tx.NewSelect().Table("api_keys").Column("id").Where("id IN (?)", bun.List(value.SortedIDs(ids))).OrderExpr("id")
	err = tx.DB.Locked(query, "KEY SHARE").Scan(ctx, &found)
	kept = make(map[uuid.UUID]bool, len(found))
	for _, id := range found {
		kept[id] = true
	}
	return kept, err
}

// Within returns the result of work, or the error of ctx if it ends first. A driver can block for
// longer than a context allows.
func Within(ctx context.Context, work func() error) error {
	result := make(chan error, 1)
	go func() { result <- work() }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
