package database

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun"
)

// poolerProbes is how often checkSessions looks for another session.
const poolerProbes = 5

// errNoSession means that a connection does not stay in one session of the server.
var errNoSession = errors.New("PgBouncer, or another pooler, changes the session of a connection: set pool_mode = session for the portal")

// checkSessions returns an error if a pooler gives each transaction another session, because the
// portal's settings, prepared statements and locks belong to a session.
func (c *Connections) checkSessions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	conn, err := c.Portal.Conn(ctx)
	if err != nil {
		return failedToOpen(err)
	}
	defer func() { _ = conn.Close() }()
	session, err := sessionOf(ctx, conn)
	if err != nil {
		return err
	}
	var direct bool
	if err := conn.Raw(func(driver any) error {
		direct = driver.(pooledConn).Conn.Conn().PgConn().PID() == session
		return nil
	}); err != nil || direct {
		return err
	}
	for range poolerProbes {
		if err := c.probeSessions(ctx, conn, session); err != nil {
			return err
		}
	}
	return nil
}

// probeSessions checks that a transaction on another connection gets another session than conn, and
// that conn keeps its session meanwhile.
func (c *Connections) probeSessions(ctx context.Context, conn bun.Conn, session uint32) error {
	tx, err := c.Portal.BeginTx(ctx, nil)
	// A protocol_violation means that there are no transactions.
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "08P01" {
		return fmt.Errorf("%w: %w", errNoSession, err)
	}
	if err != nil {
		return Failed("begin a transaction", err)
	}
	defer func() { _ = tx.Rollback() }()
	other, err := sessionOf(ctx, tx)
	if err != nil {
		return err
	}
	if other == session {
		return errNoSession
	}
	now, err := sessionOf(ctx, conn)
	if err == nil && now != session {
		err = errNoSession
	}
	return err
}

// sessionOf returns the process id of the server's session.
func sessionOf(ctx context.Context, db bun.IConn) (pid uint32, err error) {
	err = db.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return pid, Failed("read the id of the session", err)
}
