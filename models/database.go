package models

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"portal/models/authn"
	"portal/models/usage"
)

// The limits of one instance on PostgreSQL, whose default is 100 connections. Two more connections
// authenticate and write usage.
const (
	portalConnections = 8
	apiConnections    = 3
)

// database holds the connections of a store.
type database struct {
	portal *bun.DB // for the portal, the commands and the background writes
	api    *bun.DB // for the API's reads, so that nothing else can take all connections
	// newSource connects the authenticator, which has a connection of its own.
	newSource func(context.Context) (authn.Source, error)
	// newRecorder returns the recorder of usage, which has a connection of its own too.
	newRecorder func(context.Context) (*usage.Recorder, error)
}

func openDatabase(databaseURL string, timeout time.Duration) (*database, error) {
	if path, ok := SQLitePath(databaseURL); ok {
		return openSQLite(path, timeout)
	}
	return openPostgres(databaseURL)
}

func (d *database) close() error { return errors.Join(d.api.Close(), d.portal.Close()) }

// SQLitePath returns the file of a "sqlite:" URL, and whether databaseURL is such a URL.
func SQLitePath(databaseURL string) (path string, ok bool) {
	path, ok = strings.CutPrefix(databaseURL, "sqlite:")
	if !ok {
		return "", false
	}
	// sqlite:///var/lib/portal.db is the absolute path /var/lib/portal.db.
	if rest, found := strings.CutPrefix(path, "//"); found {
		path = rest
	}
	return path, true
}

// CheckDatabaseURL returns an error if [Open] cannot use the URL. It does not connect.
func CheckDatabaseURL(databaseURL string) error {
	if path, ok := SQLitePath(databaseURL); ok {
		if path == "" || strings.Contains(path, ":memory:") {
			return fmt.Errorf("a SQLite URL must name a file, such as sqlite:data/portal.db")
		}
		return nil
	}
	if !strings.HasPrefix(databaseURL, "postgres://") &&
		!strings.HasPrefix(databaseURL, "postgresql://") {
		return fmt.Errorf("a database URL must start with sqlite: or postgres://")
	}
	if _, err := postgresConfig(databaseURL); err != nil {
		// pgx's error repeats the URL, which may contain a password.
		return fmt.Errorf("invalid PostgreSQL URL; use postgres://user:password@host:5432/database")
	}
	return nil
}
