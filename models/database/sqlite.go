package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"modernc.org/sqlite" // also registers the driver "sqlite"
)

// busyMargin is how much shorter than the time limit of a use of the database SQLite waits for
// another write, so that callers get SQLite's own error.
const busyMargin = 300 * time.Millisecond

// errFileReplaced means that another file has taken the database's path, but the -wal and -shm
// files are still those of the old database. SQLite would mix the two databases.
var errFileReplaced = errors.New("the SQLite file was replaced, but its old -wal and -shm files are still there; delete them")

// sqliteFile makes the connections of a pool to a SQLite file. If another file takes the path, the
// connections to the old one are not used again.
type sqliteFile struct {
	driver.Connector // does not create the file: an empty database would hide a failed restore

	path   string
	create bool // if the file is missing at the first connection

	mu     sync.Mutex
	opened [3]os.FileInfo // the file and its -wal and -shm files, at the last connection
	number uint64         // counts the files that had the path
}

func openSQLite(path string, timeout time.Duration) (*Connections, error) {
	file := func(create bool) (*sqliteFile, error) { return newSQLiteFile(path, create, timeout-busyMargin) }
	portal, err := file(true)
	if err != nil {
		return nil, err
	}
	api, err := file(false)
	if err != nil {
		return nil, err
	}
	return &Connections{
		Portal: sqlitePool(portal, PortalConnections),
		API:    sqlitePool(api, apiConnections),
		Single: func() (*sql.DB, func() uint64, error) {
			single, err := file(false)
			if err != nil {
				return nil, nil, err
			}
			return sqlitePool(single, 1).DB, single.generation, nil
		},
	}, nil
}

func sqlitePool(file *sqliteFile, connections int) *bun.DB {
	pool := sql.OpenDB(file)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return bun.NewDB(pool, sqlitedialect.New())
}

func newSQLiteFile(path string, create bool, busyTimeout time.Duration) (*sqliteFile, error) {
	// Pragmas are per connection, so they are part of the data source name. synchronous=FULL
	// makes a confirmed revocation survive a power failure.
	query := url.Values{"mode": {"rw"}, "_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
		"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)",
	}}
	connector, err := sqlite.NewConnector("file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode())
	return &sqliteFile{Connector: connector, path: path, create: create}, err
}

// Connect implements [driver.Connector].
func (f *sqliteFile) Connect(ctx context.Context) (driver.Conn, error) {
	f.mu.Lock()
	opened, before := f.opened, f.files()
	f.mu.Unlock()
	if opened[0] == nil {
		if err := f.createMissing(); err != nil {
			return nil, err
		}
	} else if !os.SameFile(before[0], opened[0]) && (os.SameFile(before[1], opened[1]) || os.SameFile(before[2], opened[2])) {
		return nil, errFileReplaced
	}
	conn, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	// The first read creates the -wal and -shm files.
	known := conn.(sqliteDriverConn)
	if _, err := known.ExecContext(ctx, "SELECT 1 FROM sqlite_schema", nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	after := f.files()
	if before[0] != nil && !os.SameFile(before[0], after[0]) {
		return nil, errors.Join(driver.ErrBadConn, conn.Close()) // replaced just now
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !os.SameFile(f.opened[0], after[0]) {
		f.number++
	}
	f.opened = after
	return &sqliteConn{sqliteDriverConn: known, path: f.path, file: after[0]}, nil
}

// createMissing creates the file with mode 0600: SQLite lets every user of the machine read a file
// that it creates. An empty file is an empty database. The -wal and -shm files get the same mode.
func (f *sqliteFile) createMissing() error {
	if !f.create {
		return nil
	}
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// generation returns the number of the file that the last connection opened.
func (f *sqliteFile) generation() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.number
}

// files describes the database's files. The entry of a missing file is nil.
func (f *sqliteFile) files() (files [3]os.FileInfo) {
	for i, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(f.path + suffix); err == nil {
			files[i] = info
		}
	}
	return files
}

// sqliteDriverConn has the methods that database/sql calls on a driver's connection.
type sqliteDriverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// sqliteConn is a connection that is not used again once another file has the path.
type sqliteConn struct {
	sqliteDriverConn
	path string
	file os.FileInfo
}

// ResetSession implements [driver.SessionResetter]. The pool calls it before it uses a connection
// again.
func (c *sqliteConn) ResetSession(ctx context.Context) error {
	if now, err := os.Stat(c.path); err != nil || !os.SameFile(now, c.file) {
		return driver.ErrBadConn
	}
	return c.sqliteDriverConn.ResetSession(ctx)
}
