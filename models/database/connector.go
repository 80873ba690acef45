package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
)

// spareTime is how long a connection without a caller is kept open for the next caller.
const spareTime = 10 * time.Second

type dial func(context.Context) (driver.Conn, error)

// connector makes the connections of a pool. An attempt to connect has its own deadline, which is
// longer than the caller's. If the caller gives up first, the attempt continues, and the next
// caller gets its connection.
type connector struct {
	dials   []dial // one for each host
	timeout time.Duration
	open    context.Context //nolint:containedctx // ends the attempts when the pool is closed
	close   context.CancelFunc

	abandoned chan chan connected // offers attempts whose callers have given up
}

// connected is the result of an attempt to connect.
type connected struct {
	conn driver.Conn
	err  error
}

func newConnector(dials []dial, timeout time.Duration) *connector {
	c := &connector{dials: dials, timeout: timeout, abandoned: make(chan chan connected)}
	c.open, c.close = context.WithCancel(context.Background())
	return c
}

// Connect implements [driver.Connector].
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	var attempt chan connected
	select {
	case attempt = <-c.abandoned:
	default:
		attempt = c.begin()
	}
	select {
	case result := <-attempt:
		return result.conn, result.err
	case <-ctx.Done():
		go c.offer(attempt)
		return nil, ctx.Err()
	}
}

// Driver implements [driver.Connector].
func (c *connector) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

// Close ends all attempts.
func (c *connector) Close() error {
	c.close()
	return nil
}

func (c *connector) begin() chan connected {
	attempt := make(chan connected, 1)
	go func() {
		ctx, cancel := context.WithTimeout(c.open, c.timeout)
		defer cancel()
		conn, err := race(ctx, c.dials)
		attempt <- connected{conn, err}
	}()
	return attempt
}

// offer offers an attempt to the next caller until it fails or spareTime has passed.
func (c *connector) offer(attempt chan connected) {
	var result connected
	select {
	case c.abandoned <- attempt:
		return
	case result = <-attempt:
	}
	if result.err != nil {
		return
	}
	attempt <- result // for the next caller
	select {
	case c.abandoned <- attempt:
	case <-time.After(spareTime):
		_ = result.conn.Close()
	case <-c.open.Done():
		_ = result.conn.Close()
	}
}

// race starts all dials at once, returns the first connection and cancels the other dials.
func race(ctx context.Context, dials []dial) (driver.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan connected, len(dials))
	for _, connect := range dials {
		go func() {
			conn, err := connect(ctx)
			results <- connected{conn, err}
		}()
	}
	var errs []error
	var texts []string
	for i := range dials {
		first := <-results
		if first.err != nil {
			errs, texts = append(errs, first.err), append(texts, first.err.Error())
			continue
		}
		go func() {
			for range len(dials) - i - 1 {
				if late := <-results; late.err == nil {
					_ = late.conn.Close()
				}
			}
		}()
		return first.conn, nil
	}
	return nil, &openError{strings.Join(texts, "; "), errors.Join(errs...)}
}

// pooledConn is a connection whose reads and starts of transactions fail with [driver.ErrBadConn]
// if the server has closed it, for example at a failover. The pool repeats them on other
// connections, the last time on a new one. Outside a transaction, a write is only repeated if it
// was certainly not sent, which pgx finds out.
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
