package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"portal/models"
)

// closeTimeout bounds the last write to a database that may have gone.
const closeTimeout = 2 * time.Second

// database is where everything is stored.
type database struct {
	url       string
	directory string // of the SQLite file; empty with PostgreSQL
}

func (d database) isPostgres() bool { return d.url != "" && d.directory == "" }

// makeDirectory makes the directory of the SQLite file, for its owner alone: beside the database it holds its secret.
func (d database) makeDirectory() error {
	if d.isPostgres() {
		return nil
	}
	if err := os.MkdirAll(d.directory, 0o700); err != nil {
		return fmt.Errorf("DATABASE_URL: cannot make the database's directory: %w", err)
	}
	return nil
}

// withStore opens the store that DATABASE_URL names, which is all the configuration that an operator's command needs,
// and closes it behind work.
func withStore(ctx context.Context, work func(*models.Store) error) error {
	var c config
	c.fill()
	var check checker
	d := check.database(c.DatabaseURL)
	if err := check.err(); err != nil {
		return err
	}
	if err := d.makeDirectory(); err != nil {
		return err
	}
	store, err := models.Open(ctx, d.url, models.Options{})
	if err != nil {
		return err
	}
	return errors.Join(work(store), closeStore(ctx, store))
}

// closeStore closes the store even if ctx has ended: that is when it is called.
func closeStore(ctx context.Context, store *models.Store) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return store.Close(ctx)
}
