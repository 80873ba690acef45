package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
)

// spareTime is how long a connection without a caller is kept open for the next caller.
const spareTime = 10 * time.Second

// dial makes a connection.
type dial func(context.Context) (driver.Conn, error)

// connector makes the connections of a pool. An attempt to connect has its own deadline, which is
// longer than the caller's. If the caller gives up first, the attempt continues, and the next
// caller gets its connection.
type connector struct {
	dials   []dial // one for each host
	timeout time.Duration
	open    context.Context //nolint:containedctx // ends the attempts when the pool is closed
	close   context.CancelFunc

	mu        sync.Mutex
	abandoned []*connectAttempt
}

type connectAttempt struct {
	done chan struct{} // closed when the fields below are set
	conn driver.Conn
	err  error
}

func newConnector(dials []dial, timeout time.Duration) *connector {
	c := &connector{dials: dials, timeout: timeout}
	c.open, c.close = context.WithCancel(context.Background())
	return c
}

// Connect implements [driver.Connector].
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	a := c.adopt()
	if a == nil {
		a = c.begin()
	}
	select {
	case <-a.done:
		return a.conn, a.err
	case <-ctx.Done():
		c.abandon(a)
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

func (c *connector) begin() *connectAttempt {
	a := &connectAttempt{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		ctx, cancel := context.WithTimeout(c.open, c.timeout)
		defer cancel()
		a.conn, a.err = race(ctx, c.dials)
	}()
	return a
}

// adopt removes and returns an attempt whose caller has given up, or returns nil.
func (c *connector) adopt() *connectAttempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.abandoned) == 0 {
		return nil
	}
	a := c.abandoned[0]
	c.abandoned = c.abandoned[1:]
	return a
}

// abandon keeps an attempt for the next caller until it fails or spareTime has passed.
func (c *connector) abandon(a *connectAttempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned = append(c.abandoned, a)
	go func() {
		<-a.done
		if a.err == nil {
			select {
			case <-time.After(spareTime):
			case <-c.open.Done():
			}
		}
		if c.remove(a) && a.err == nil {
			_ = a.conn.Close()
		}
	}()
}

// remove removes an abandoned attempt and reports true unless another caller has adopted it.
func (c *connector) remove(a *connectAttempt) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.abandoned, a)
	if i < 0 {
		return false
	}
	c.abandoned = slices.Delete(c.abandoned, i, i+1)
	return true
}

// race starts all dials at once, returns the first connection and cancels the other dials.
func race(ctx context.Context, dials []dial) (driver.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn driver.Conn
		err  error
	}
	results := make(chan result, len(dials))
	for _, connect := range dials {
		go func() {
			conn, err := connect(ctx)
			results <- result{conn, err}
		}()
	}
	var errs []error
	for i := range dials {
		first := <-results
		if first.err != nil {
			errs = append(errs, first.err)
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
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return nil, &openError{strings.Join(texts, "; "), errors.Join(errs...)}
}

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
