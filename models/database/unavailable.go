package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrUnavailable means that the database did not answer, so the outcome is unknown. It is wrapped
// together with its cause.
var ErrUnavailable = errors.New("the database does not answer")

// openError is an [ErrUnavailable] that says in our own words, and without a password, why a
// database cannot be opened and what to do.
type openError struct {
	message string
	cause   error
}

func (e *openError) Error() string { return e.message }

func (e *openError) Unwrap() []error { return []error{ErrUnavailable, e.cause} }

// sqliteCauses says in our own words what a result code of SQLite means and what to do.
var sqliteCauses = map[int]string{
	sqlite3.SQLITE_BUSY:     "another program has the SQLite file locked; end it or try again",
	sqlite3.SQLITE_LOCKED:   "another program has the SQLite file locked; end it or try again",
	sqlite3.SQLITE_CANTOPEN: "the SQLite file cannot be opened; check the permissions of the file and its directory, and that their file system is neither read-only nor full",
	sqlite3.SQLITE_CORRUPT:  "the SQLite file is damaged; move it, its -wal and its -shm away, and restore a backup with: portal restore",
	sqlite3.SQLITE_FULL:     "the disk is full; free some space on it",
	sqlite3.SQLITE_IOERR:    "the disk failed to read or write the SQLite file; check the system's log",
	sqlite3.SQLITE_NOTADB:   "the file is not a SQLite database; correct DATABASE_URL",
	sqlite3.SQLITE_PERM:     "the SQLite file cannot be opened; check the permissions of the file and its directory",
	sqlite3.SQLITE_READONLY: "the SQLite file cannot be written; check the permissions of the file and its directory, and that their file system is neither read-only nor full",
}

// explainedError is an error of a database in our own words.
type explainedError struct {
	message string
	causes  []error
}

func (e *explainedError) Error() string { return e.message }

func (e *explainedError) Unwrap() []error { return e.causes }

// Explain returns an error of a database in our own words if an operator can remove its cause, and
// any other error as it is.
func Explain(err error) error {
	if _, explained := errors.AsType[*explainedError](err); explained {
		return err
	}
	if failed, ok := errors.AsType[*sqlite.Error](err); ok {
		if message := sqliteCauses[failed.Code()&0xff]; message != "" {
			return &explainedError{message, []error{ErrUnavailable, err}}
		}
	}
	if failed, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch failed.Code {
		case "42501": // insufficient_privilege
			return &explainedError{failed.Message + "; make the role of DATABASE_URL the owner of the database and of the portal's tables", []error{err}}
		case "3F000": // invalid_schema_name
			return &explainedError{failed.Message + "; create the schema, or correct the search_path of the role or of DATABASE_URL", []error{err}}
		case "53100": // disk_full
			return &explainedError{"the disk of the PostgreSQL server is full; free some space on it", []error{ErrUnavailable, err}}
		}
	}
	return err
}

// IsDamaged reports whether err means that a SQLite file is damaged, cut or no such file.
func IsDamaged(err error) bool {
	failed, ok := errors.AsType[*sqlite.Error](err)
	return ok && (failed.Code()&0xff == sqlite3.SQLITE_CORRUPT || failed.Code()&0xff == sqlite3.SQLITE_NOTADB)
}

// failedToOpen returns an [*openError] as it is, and wraps any other error.
func failedToOpen(err error) error {
	if _, ok := errors.AsType[*openError](err); ok {
		return err
	}
	return Failed("open the database", err)
}

// innermost returns the text of the first cause of err, or of the last one of several.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			all := joined.Unwrap()
			next = all[len(all)-1]
		}
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// Failed wraps err with the name of the operation, and returns nil if err is nil. If err means that
// the database did not answer, the result is also [ErrUnavailable]. Any other error is a bug in
// this program.
func Failed(operation string, err error) error {
	if err == nil {
		return nil
	}
	if _, opened := errors.AsType[*openError](err); !opened {
		err = Explain(err)
	}
	if unavailable(err) && !errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("%s: %w: %w", operation, ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// unavailable reports whether err means that the database did not answer.
func unavailable(err error) bool {
	for _, cause := range []error{
		context.DeadlineExceeded, driver.ErrBadConn, sql.ErrConnDone, pgconn.ErrConnClosed, io.EOF, io.ErrUnexpectedEOF, errFileReplaced,
		sql.ErrTxDone, // rolled back at the deadline, just before COMMIT
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	var netErr net.Error
	var connectErr *pgconn.ConnectError
	if errors.As(err, &netErr) || errors.As(err, &connectErr) || pgconn.SafeToRetry(err) {
		return true
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return unavailablePostgres(refused.Code)
	}
	failed, ok := errors.AsType[*sqlite.Error](err)
	return ok && unavailableSQLite(failed.Code())
}

// unavailablePostgres reports whether a SQLSTATE (PostgreSQL manual, appendix A) means that the
// server cannot answer now.
func unavailablePostgres(code string) bool {
	switch code {
	case "25P03", // idle_in_transaction_session_timeout: this process was frozen
		"25006", // read_only_sql_transaction: a standby, for example during a failover
		"40001", // serialization_failure
		"40P01", // deadlock_detected
		"55P03", // lock_not_available
		"57014": // query_canceled: the server stopped the query at our deadline
		return true
	}
	switch code[:min(2, len(code))] {
	case "08", // connection exception
		"53", // insufficient resources: connections, memory, disk
		"58": // system error, such as an I/O error
		return true
	}
	// Operator intervention, such as a shutdown or a start.
	return len(code) >= 3 && code[:3] == "57P"
}

// IsSQLiteBusy reports whether err means that another connection holds a lock.
func IsSQLiteBusy(err error) bool {
	failed, ok := errors.AsType[*sqlite.Error](err)
	return ok && failed.Code()&0xff == sqlite3.SQLITE_BUSY
}

// unavailableSQLite reports whether a result code (sqlite.org/rescode.html) means that SQLite
// cannot answer now.
func unavailableSQLite(code int) bool {
	switch code & 0xff { // the primary result code
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT,
		sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL,
		sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PERM:
		return true
	}
	return false
}
