package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"portal/models/database"
)

// openDatabase opens a database without the store.
func openDatabase(databaseURL string) (*bun.DB, error) {
	if path, ok := database.SQLitePath(databaseURL); ok {
		pool, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
		return bun.NewDB(pool, sqlitedialect.New()), err
	}
	pool, err := sql.Open("pgx", databaseURL+"&default_query_exec_mode=simple_protocol")
	return bun.NewDB(pool, pgdialect.New()), err
}

// inTransaction calls write in one transaction, and updates the statistics of the planner after it.
func inTransaction(ctx context.Context, databaseURL string, write func(bun.Tx) error) (err error) {
	db, err := openDatabase(databaseURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, ok := database.SQLitePath(databaseURL); !ok {
			// The trigger that renews the epoch would queue each row in the server's
			// memory.
			if _, err := tx.ExecContext(ctx, "SET LOCAL session_replication_role = replica"); err != nil {
				return err
			}
		}
		return write(tx)
	})
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "ANALYZE")
	return err
}

// insert inserts n rows. The store's own methods would insert them one by one.
func insert[T any](ctx context.Context, tx bun.Tx, n int, row func(i int) T) error {
	const rowsEach = 1000
	rows := make([]T, 0, rowsEach)
	for i := range n {
		rows = append(rows, row(i))
		if len(rows) < rowsEach && i < n-1 {
			continue
		}
		if _, err := tx.NewInsert().Model(&rows).Exec(ctx); err != nil {
			return fmt.Errorf("insert %T: %w", rows, err)
		}
		rows = rows[:0]
	}
	return nil
}
