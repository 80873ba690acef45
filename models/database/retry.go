package database

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"
)

// pooled makes the connections of a PostgreSQL pool.
type pooled struct{ *connector }

// Connect implements [driver.Connector].
func (p pooled) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := p.connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return pooledConn{conn.(*stdlib.Conn)}, nil
}

// pooledConn is a connection whose reads and starts of transactions fail with [driver.ErrBadConn]
// if the server has closed it, for example at a failover. The pool repeats them on other
// connections, the last time on a new one. A write outside a transaction is only repeated if it was
// certainly not sent, which pgx finds out.
type pooledConn struct{ *stdlib.Conn }

// BeginTx implements [driver.ConnBeginTx].
func (c pooledConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.BeginTx(ctx, options)
	return tx, c.repeatable(ctx, err)
}

// QueryContext implements [driver.QueryerContext].
func (c pooledConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	inTransaction := c.Conn.Conn().PgConn().TxStatus() != 'I'
	rows, err := c.Conn.QueryContext(ctx, query, args)
	if inTransaction || !strings.HasPrefix(strings.TrimLeft(query, "( "), "SELECT") {
		return rows, err
	}
	return rows, c.repeatable(ctx, err)
}

// repeatable returns err as [driver.ErrBadConn] if the connection is lost.
func (c pooledConn) repeatable(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || !c.Conn.Conn().IsClosed() {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrBadConn, err)
}
