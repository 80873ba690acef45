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
	// maxConnections is the limit of one instance, so that several instances stay below
	// PostgreSQL's default limit of 100.
	maxConnections = 8
	// connectTimeout is the limit for each host of a PostgreSQL URL. If the first host is down,
	// there must be time for the next one.
	connectTimeout = time.Second
	// busyTimeout is how long SQLite waits for another process's write. It is shorter than
	// [Timeout], so that callers get SQLite's own error.
	busyTimeout = 1500 * time.Millisecond
)

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

// CheckDatabaseURL returns an error that says what is wrong if [Open] cannot use the URL. It does
// not connect.
func CheckDatabaseURL(databaseURL string) error {
	if path, ok := SQLitePath(databaseURL); ok {
		if path == "" || strings.Contains(path, ":memory:") {
			return fmt.Errorf("a SQLite URL must name a file, such as sqlite:data/portal.db")
		}
		return nil
	}
	if !strings.HasPrefix(databaseURL, "postgres://") && !strings.HasPrefix(databaseURL, "postgresql://") {
		return fmt.Errorf("a database URL must start with sqlite: or postgres://")
	}
	if _, err := postgresConfig(databaseURL); err != nil {
		// pgx's error repeats the URL, which may contain a password.
		return fmt.Errorf("invalid PostgreSQL URL; use postgres://user:password@host:5432/database")
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
		// Several hosts are a primary and its standbys, and only the primary accepts writes.
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "portal"
	}
	// Bun inlines arguments into the SQL. Preparing each distinct statement would only fill the
	// server's memory.
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	return config, nil
}

func openPostgres(databaseURL string) (*bun.DB, error) {
	config, err := postgresConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("the database URL is not a valid PostgreSQL URL")
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(maxConnections)
	pool.SetMaxIdleConns(maxConnections)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	return bun.NewDB(pool, pgdialect.New()), nil
}

func openSQLite(path string) (*bun.DB, error) {
	// Pragmas are per connection, so they are part of the data source name. synchronous=FULL makes
	// a confirmed revocation survive a power failure.
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
