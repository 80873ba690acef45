package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
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

// remove removes an abandoned attempt. It reports false if another caller has adopted it.
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

// race starts all dials at once and returns the first connection. It cancels the others.
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
	return nil, errors.Join(errs...)
}
