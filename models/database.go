package models

import (
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

const (
	// maxConnections bounds one instance's connections, so that many instances
	// fit under PostgreSQL's default of 100.
	maxConnections = 8
	// connectTimeout bounds each host of a PostgreSQL URL that names several:
	// a dead first one must leave time for the next.
	connectTimeout = time.Second
	// busyTimeout is how long SQLite waits for another process's write; below
	// the callers' deadline, so that what they get is the true reason.
	busyTimeout = 1500 * time.Millisecond
)

// SQLitePath returns the file that a "sqlite:" URL names, and whether it is one.
func SQLitePath(databaseURL string) (path string, ok bool) {
	path, ok = strings.CutPrefix(databaseURL, "sqlite:")
	if !ok {
		return "", false
	}
	// sqlite:///var/lib/portal.db is read as the absolute path it looks like.
	if rest, found := strings.CutPrefix(path, "//"); found {
		path = rest
	}
	return path, true
}

// CheckDatabaseURL returns an error that says what to do unless the URL is one
// that [Open] can use. It does not connect.
func CheckDatabaseURL(databaseURL string) error {
	if path, ok := SQLitePath(databaseURL); ok {
		if path == "" || strings.Contains(path, ":memory:") {
			return fmt.Errorf("a SQLite URL names a file, as in sqlite:data/portal.db")
		}
		return nil
	}
	if !strings.HasPrefix(databaseURL, "postgres://") && !strings.HasPrefix(databaseURL, "postgresql://") {
		return fmt.Errorf("a database URL starts with sqlite: or postgres://")
	}
	if _, err := postgresConfig(databaseURL); err != nil {
		// pgx's text repeats the URL, which may hold a password.
		return fmt.Errorf("not a PostgreSQL URL, as in postgres://user:password@host:5432/database")
	}
	return nil
}

func postgresConfig(databaseURL string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTimeout {
		config.ConnectTimeout = connectTimeout
	}
	if len(config.Fallbacks) > 0 && config.ValidateConnect == nil {
		// Several hosts are one primary and its standbys.
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "portal"
	}
	// Bun writes its arguments into the SQL: preparing each text would only
	// fill the server's memory.
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return config, nil
}

func openPostgres(databaseURL string) (*bun.DB, error) {
	config, err := postgresConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("the database URL is not one that PostgreSQL knows")
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(maxConnections)
	pool.SetMaxIdleConns(maxConnections)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	return bun.NewDB(pool, pgdialect.New()), nil
}

func openSQLite(path string) (*bun.DB, error) {
	// Pragmas are per connection, so they stand in the name of the database.
	// synchronous=FULL: a confirmed revocation survives a loss of power.
	query := url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
		"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)",
	}}
	pool, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+query.Encode())
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(maxConnections)
	pool.SetMaxIdleConns(maxConnections)
	return bun.NewDB(pool, sqlitedialect.New()), nil
}
