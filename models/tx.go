package models

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"go.opentelemetry.io/otel/trace"
)

// DB is the handle of a database, with the clock. Services use it to read, and to open transactions.
type DB struct {
	*bun.DB
	api *bun.DB // for the API's reads; see [database.Connections]

	now     func() time.Time
	timeout time.Duration // of each use of the database
	logger  *slog.Logger
	tracer  trace.Tracer // nil: no spans

	mail         bool // queue mails about activities
	mailsDropped *atomic.Uint64
}

// Now returns the time with the precision of the database: UTC, in whole microseconds.
func (db *DB) Now() time.Time { return db.now().UTC().Truncate(time.Microsecond) }

// InTx calls work in a transaction, and commits it unless work fails. The operation is part of the
// error.
func (db *DB) InTx(ctx context.Context, operation string, work func(ctx context.Context, tx Tx) error) error {
	err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error { return work(ctx, Tx{tx, db}) })
	return failed(operation, err)
}

// Tx is a transaction.
type Tx struct {
	bun.Tx
	db *DB
}

// Now is [DB.Now].
func (tx Tx) Now() time.Time { return tx.db.Now() }

// lockAccount locks the account's row until the transaction ends, so that only one transaction at a
// time counts and adds its keys. SQLite needs no lock: its transactions run one at a time.
func (tx Tx) lockAccount(ctx context.Context, accountID uuid.UUID) error {
	if tx.db.Dialect().Name() != dialect.PG {
		return nil
	}
	_, err := tx.NewSelect().Model((*Account)(nil)).Column("id").
		Where("id = ?", accountID).For("NO KEY UPDATE").Exec(ctx)
	return err
}

// lockAccountsTable reads the account, so that the transaction uses the table accounts before
// others. A restore locks the tables in this order. A transaction that changes a key and then
// records an activity, which refers to the account, would otherwise deadlock with it.
func (tx Tx) lockAccountsTable(ctx context.Context, accountID uuid.UUID) error {
	if tx.db.Dialect().Name() != dialect.PG {
		return nil
	}
	_, err := tx.NewSelect().Model((*Account)(nil)).Column("id").Where("id = ?", accountID).Exec(ctx)
	return err
}
