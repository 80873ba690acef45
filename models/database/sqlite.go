package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"modernc.org/sqlite" // also registers the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// busyMargin is how much shorter than the time limit of a use of the database SQLite waits for
// another write, so that callers get SQLite's own error.
const busyMargin = 300 * time.Millisecond

// errFileReplaced means that another file has taken the database's path. Such a file may hold keys
// that were revoked since, and SQLite may mix it with the old database's -wal and -shm files.
var errFileReplaced = errors.New("the SQLite file was replaced; restart the portal, and replace a database only with portal restore")

// errNotCreated is the error of a missing file that cannot be created.
var errNotCreated = errors.New("create the SQLite file")

// sqliteFile makes the connections to a SQLite file. After another file has taken the path, it
// makes none, and no connection is used again.
type sqliteFile struct {
	driver.Connector // does not create the file: an empty database would hide a failed restore

	path string
	turn chan struct{} // taken by the connection that writes

	mu       sync.Mutex
	opened   os.FileInfo // the file of the first connection
	replaced bool
}

func openSQLite(path string, timeout time.Duration) (*Connections, error) {
	// Pragmas are per connection, so they are part of the data source name. synchronous=FULL
	// makes a confirmed revocation survive a power failure, and secure_delete=ON overwrites
	// what is deleted, so that an erasure leaves nothing in free pages.
	connector, err := sqliteConnector(path, timeout-busyMargin, "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)", "secure_delete(ON)")
	if err != nil {
		return nil, err
	}
	file := &sqliteFile{Connector: connector, path: path, turn: make(chan struct{}, 1)}
	return &Connections{
		Portal: sqlitePool(file, PortalConnections),
		API:    sqlitePool(file, apiConnections),
		Single: func() *sql.DB { return sqlitePool(file, 1).DB },
	}, nil
}

// CreateSQLite creates an empty database with mode 0600, unless the file exists: SQLite lets every
// user of the machine read a file that it creates. If root creates it, it gets the owner of its
// directory, as whom the portal may run. The -wal and -shm files get the same mode and owner.
func CreateSQLite(path string) error {
	// An existing file must not be opened: closing it would release SQLite's locks.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator names the file
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(GiveToOwner(file), file.Close())
}

// GiveToOwner gives a new file or directory to the owner of the directory that it is in. Only root
// may do so, and in a container not always.
func GiveToOwner(file *os.File) error {
	info, err := os.Stat(filepath.Dir(file.Name()))
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if err := file.Chown(int(owner.Uid), int(owner.Gid)); !errors.Is(err, syscall.EPERM) {
		return err
	}
	return nil
}

func sqlitePool(file *sqliteFile, connections int) *bun.DB {
	pool := sql.OpenDB(file)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return bun.NewDB(pool, storable{sqlitedialect.New()})
}

func sqliteConnector(path string, busyTimeout time.Duration, pragmas ...string) (driver.Connector, error) {
	pragmas = append(pragmas, fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()))
	query := url.Values{"mode": {"rw"}, "_txlock": {"immediate"}, "_pragma": pragmas}
	if err := addLower(); err != nil {
		return nil, err
	}
	return sqlite.NewConnector("file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode())
}

// addLower registers the function unicode_lower, which lowers all letters. SQLite's LOWER lowers
// only those of ASCII. It is not replaced, because an index of names uses it.
var addLower = sync.OnceValue(func() error {
	return sqlite.RegisterDeterministicScalarFunction("unicode_lower", 1, func(_ *sqlite.FunctionContext, arguments []driver.Value) (driver.Value, error) {
		if text, ok := arguments[0].(string); ok {
			return strings.ToLower(text), nil
		}
		return arguments[0], nil
	})
})

// Connect implements [driver.Connector].
func (f *sqliteFile) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := f.connect(ctx)
	return conn, explainSQLite(f.path, err)
}

// explainSQLite returns the error of opening the file as an [*openError].
func explainSQLite(path string, err error) error {
	if err == nil || errors.Is(err, errFileReplaced) || errors.Is(err, context.Canceled) {
		return err
	}
	path = absolute(path)
	info, statErr := os.Stat(path)
	var code int
	if known, ok := errors.AsType[*sqlite.Error](err); ok {
		code = known.Code() & 0xff
	}
	cause := innermost(err)
	if explained, ok := errors.AsType[*explainedError](Explain(err)); ok {
		cause = explained.message
	}
	message := fmt.Sprintf("the database %s cannot be opened: %s", path, cause)
	switch {
	case errors.Is(err, errNotCreated) && errors.Is(err, syscall.ENOSPC):
		message = fmt.Sprintf("the database %s cannot be created: %s", path, sqliteCauses[sqlite3.SQLITE_FULL])
	case errors.Is(err, errNotCreated):
		message = fmt.Sprintf("the database %s cannot be created: %s: its directory must exist and be writable", path, cause)
	case errors.Is(err, os.ErrNotExist):
		message = fmt.Sprintf("there is no database at %s", path)
	case statErr == nil && info.IsDir():
		message = path + " is a directory: DATABASE_URL must name a file"
	case code == sqlite3.SQLITE_NOTADB:
		message = path + " is not a SQLite database: correct DATABASE_URL"
	case errors.Is(err, os.ErrPermission):
		message += ": check the permissions of the file and its directory"
	}
	return &openError{message, err}
}

// absolute returns the absolute path, or path if there is none.
func absolute(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		return absolute
	}
	return path
}

func (f *sqliteFile) connect(ctx context.Context) (driver.Conn, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	conn, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	// The first read creates the -wal and -shm files.
	known := conn.(sqliteDriverConn)
	_, err = known.ExecContext(ctx, "SELECT 1 FROM sqlite_schema", nil)
	if err == nil {
		err = f.check() // the driver may have opened another file
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &sqliteConn{sqliteDriverConn: known, file: f}, nil
}

// check returns an error unless the path names the file of the first connection. Before the first
// connection, check creates a missing file.
func (f *sqliteFile) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opened == nil {
		if err := CreateSQLite(f.path); err != nil {
			return fmt.Errorf("%w: %w", errNotCreated, err)
		}
	}
	now, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if f.opened == nil {
		f.opened = now
	}
	f.replaced = f.replaced || !os.SameFile(f.opened, now)
	if f.replaced {
		return errFileReplaced
	}
	return nil
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

// sqliteConn is a connection that is not used again after another file has taken the path.
//
// The connections of this process write in the order in which they have asked to. SQLite lets only
// one connection write at a time, and lets the others try again now and then, so that one that has
// bad luck would fail while the others write a lot.
type sqliteConn struct {
	sqliteDriverConn
	file *sqliteFile

	writes bool // the connection is in a transaction, so it is its turn
}

// BeginTx implements [driver.ConnBeginTx].
func (c *sqliteConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if err := c.take(ctx); err != nil {
		return nil, err
	}
	tx, err := c.sqliteDriverConn.BeginTx(ctx, options)
	if err != nil {
		c.give()
		return nil, err
	}
	return sqliteTx{tx, c}, nil
}

// ExecContext implements [driver.ExecerContext].
func (c *sqliteConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !c.writes {
		if err := c.take(ctx); err != nil {
			return nil, err
		}
		defer c.give()
	}
	return c.sqliteDriverConn.ExecContext(ctx, query, args)
}

// take waits until it is the connection's turn to write.
func (c *sqliteConn) take(ctx context.Context) error {
	select {
	case c.file.turn <- struct{}{}:
		c.writes = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *sqliteConn) give() {
	if c.writes {
		c.writes = false
		<-c.file.turn
	}
}

// sqliteTx is a transaction, at whose end others may write.
type sqliteTx struct {
	driver.Tx
	conn *sqliteConn
}

// Commit implements [driver.Tx].
func (t sqliteTx) Commit() error {
	defer t.conn.give()
	return t.Tx.Commit()
}

// Rollback implements [driver.Tx].
func (t sqliteTx) Rollback() error {
	defer t.conn.give()
	return t.Tx.Rollback()
}

// ResetSession implements [driver.SessionResetter]. The pool calls it before it uses a connection
// again. After [driver.ErrBadConn], the pool makes another connection, whose error says more.
func (c *sqliteConn) ResetSession(ctx context.Context) error {
	if err := c.file.check(); err != nil {
		return driver.ErrBadConn
	}
	return c.sqliteDriverConn.ResetSession(ctx)
}
