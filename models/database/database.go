// Package database opens and migrates the portal's database, and says which errors mean that it
// does not answer. It knows neither customers nor statements.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/schema"
)

// Timeout is the usual time limit of each use of the database, which leaves 0.2 s of the 2 s in
// which every request gets a response.
const Timeout = 1800 * time.Millisecond

// PortalConnections and apiConnections limit the pools of one instance, which open connections when
// they need them. Two more connections authenticate and write usage. PostgreSQL's default is 100
// connections for all instances.
const (
	PortalConnections = 8
	apiConnections    = 3
)

// Connections holds the connections of one instance.
type Connections struct {
	Portal *bun.DB // for the portal, the commands and the background writes
	API    *bun.DB // for the API's reads, so that nothing else can take all connections

	// Single returns a pool of one connection. With PostgreSQL, it writes usage.
	Single func() *sql.DB
	// Dial returns functions that open one PostgreSQL connection that reads for API requests,
	// and that end the attempts to do so. With SQLite, Dial is nil.
	Dial func() (dial func(context.Context) (*pgx.Conn, error), stop func() error)
}

// Open prepares the connections to a database without connecting, and returns the error of
// [CheckURL]. SQLite waits for a lock for slightly less than timeout.
func Open(databaseURL string, timeout time.Duration) (*Connections, error) {
	if err := CheckURL(databaseURL); err != nil {
		return nil, err
	}
	if path, ok := SQLitePath(databaseURL); ok {
		return openSQLite(path, timeout)
	}
	return openPostgres(databaseURL)
}

// Close closes the pools.
func (c *Connections) Close() error { return errors.Join(c.API.Close(), c.Portal.Close()) }

// IsPostgres reports whether the database is PostgreSQL.
func (c *Connections) IsPostgres() bool { return c.Portal.Dialect().Name() == dialect.PG }

// storable is a dialect for texts that no database stores. Their readers refuse them or clean them.
// If one does not, bun would write an error into the statement.
type storable struct{ schema.Dialect }

// AppendString appends a text with the replacement character in place of zero bytes.
func (d storable) AppendString(b []byte, text string) []byte {
	return d.Dialect.AppendString(b, strings.ReplaceAll(text, "\x00", "\ufffd"))
}

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
	if strings.HasPrefix(path, "//") { // as in sqlite:////var/lib/portal.db
		path = "/" + strings.TrimLeft(path, "/")
	}
	return path, true
}

// Name returns how to name the database of a valid URL to operators: the absolute path of a SQLite
// file, or the name of a PostgreSQL database.
func Name(databaseURL string) string {
	if path, ok := SQLitePath(databaseURL); ok {
		return absolute(path)
	}
	config, err := postgresConfig(databaseURL)
	if err != nil {
		return "the database"
	}
	return "database " + postgresName(config)
}

// CheckURL returns an error if [Open] cannot use the URL, without connecting.
func CheckURL(databaseURL string) error {
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
	_, err := postgresConfig(databaseURL)
	return err
}
