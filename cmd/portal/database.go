package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"portal/models"
)

// closeTimeout is the time limit of the last write to the database.
const closeTimeout = 3 * time.Second

// dataSource is the parsed DATABASE_URL.
type dataSource struct {
	url       string
	directory string // of the SQLite file; empty with PostgreSQL
}

func (d dataSource) isPostgres() bool { return d.url != "" && d.directory == "" }

// makeDirectory creates the directory of the SQLite file. Only its owner may read it, because it
// contains the secret too.
func (d dataSource) makeDirectory() error {
	if d.isPostgres() {
		return nil
	}
	if err := os.MkdirAll(d.directory, 0o700); err != nil {
		return fmt.Errorf("DATABASE_URL: create the directory of the database: %w", err)
	}
	return nil
}

func databaseFromEnvironment() (dataSource, error) {
	var c config
	c.fill()
	var check checker
	d := check.database(c.DatabaseURL)
	return d, check.err()
}

// withStore opens the store of DATABASE_URL, calls work and closes the store. Operators' commands
// need no other configuration.
func withStore(ctx context.Context, work func(*models.Store) error) error {
	return withStoreOptions(ctx, models.Options{}, work)
}

// withStoreOptions is [withStore] with options. The store logs warnings to standard error, for
// example when a migration waits for a table. If the environment configures emails, the store
// queues those about the command's changes; an instance sends them.
func withStoreOptions(ctx context.Context, options models.Options, work func(*models.Store) error) error {
	d, err := databaseFromEnvironment()
	if err != nil {
		return err
	}
	if err := d.makeDirectory(); err != nil {
		return err
	}
	options.Mail = os.Getenv("PORTAL_SMTP_URL") != ""
	options.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	store, err := models.Open(ctx, d.url, options)
	if err != nil {
		return err
	}
	return errors.Join(work(store), closeStore(ctx, store))
}

// closeStore closes the store even if ctx has ended.
func closeStore(ctx context.Context, store *models.Store) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return store.Close(ctx)
}

type migrateCommand struct{}

// Run only opens the store, which updates the schema.
func (migrateCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(*models.Store) error { return nil })
}
