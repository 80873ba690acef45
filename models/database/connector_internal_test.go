package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// plainConn is a connection that is either open or closed.
type plainConn struct {
	driver.Conn
	closed chan struct{}
}

func newPlainConn() *plainConn { return &plainConn{closed: make(chan struct{})} }

func (c *plainConn) Close() error {
	close(c.closed)
	return nil
}

// after returns a dial that takes some time.
func after(wait time.Duration, conn driver.Conn, err error) dial {
	return func(ctx context.Context) (driver.Conn, error) {
		select {
		case <-time.After(wait):
			return conn, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func connectWithin(c *connector, limit time.Duration) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return c.Connect(ctx)
}

// abandoned returns a connector whose first caller has given up after 2 of the 3 seconds that the
// attempt takes.
func abandoned(t *testing.T, conn driver.Conn, err error) *connector {
	t.Helper()
	c := newConnector([]dial{after(3*time.Second, conn, err)}, 5*time.Second)
	t.Cleanup(func() { _ = c.Close() })
	if _, err := connectWithin(c, 2*time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("first caller: %v", err)
	}
	synctest.Wait()
	return c
}

func TestConnectionOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := newPlainConn()
		c := abandoned(t, slow, nil)
		started := time.Now()
		if conn, err := connectWithin(c, 2*time.Second); err != nil || conn != driver.Conn(slow) || time.Since(started) != time.Second {
			t.Errorf("second caller: %v, %v after %s", conn, err, time.Since(started))
		}
	})
}

func TestUnusedConnectionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := newPlainConn()
		c := abandoned(t, slow, nil)
		started := time.Now()
		<-slow.closed
		if kept := time.Since(started); kept != time.Second+spareTime {
			t.Errorf("closed after %s", kept)
		}
		select {
		case <-c.abandoned:
			t.Error("the closed connection is still offered")
		default:
		}
	})
}

func TestFailedAttemptIsNotReused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("refused")
		c := abandoned(t, nil, failure)
		time.Sleep(10 * time.Second)
		started := time.Now()
		if _, err := connectWithin(c, 4*time.Second); !errors.Is(err, failure) || time.Since(started) != 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(started))
		}
	})
}

func TestFirstHostToAnswerWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		winner, late := newPlainConn(), newPlainConn()
		stubborn := func(context.Context) (driver.Conn, error) {
			time.Sleep(2 * time.Second)
			return late, nil
		}
		silent := after(time.Hour, nil, nil)
		c := newConnector([]dial{silent, after(0, nil, errors.New("refused")), stubborn, after(time.Second, winner, nil)}, time.Minute)
		defer func() { _ = c.Close() }()
		if conn, err := connectWithin(c, 90*time.Minute); err != nil || conn != driver.Conn(winner) {
			t.Errorf("%v, %v", conn, err)
		}
		<-late.closed
		c = newConnector([]dial{silent, after(0, nil, errors.New("refused"))}, time.Minute)
		defer func() { _ = c.Close() }()
		started := time.Now()
		if _, err := connectWithin(c, 90*time.Minute); !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != time.Minute {
			t.Errorf("no host answers: %v after %s", err, time.Since(started))
		}
	})
}
