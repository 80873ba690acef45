// Package modelstest is the test kit of the store: real databases, a clock, a log buffer and
// operators' SQL. Each test process starts one private PostgreSQL server when it first needs it,
// unless the processes of a run share one. Where PostgreSQL is missing, tests fail and say how to
// install it.
package modelstest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"portal/models"
	"portal/models/database"
	"portal/models/modelstest/livekitserver"
	"portal/models/password"
	"portal/models/secret"
)

// Databases runs a test on SQLite and on PostgreSQL, each time with the URL of a new database.
func Databases(t *testing.T, run func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { run(t, SQLiteURL(t)) })
	t.Run("postgres", func(t *testing.T) { run(t, PostgresURL(t)+Patience) })
}

// Patience gives PostgreSQL, at the end of its URL, the time that [Open] gives SQLite: concurrent
// requests wait for each other, and on a busy machine longer than the limits of [database.Open].
// Tests of these limits use [PostgresURL] alone.
const Patience = "&lock_timeout=60s&statement_timeout=60s&idle_in_transaction_session_timeout=60s"

// SQLiteURL returns the URL of a new SQLite database whose schema is up to date, in a directory of
// its own.
func SQLiteURL(t testing.TB) string {
	t.Helper()
	migrated, err := migratedSQLite()
	Must(t, err)
	url := EmptySQLiteURL(t)
	path, _ := database.SQLitePath(url)
	Must(t, os.WriteFile(path, migrated, 0o600))
	return url
}

// EmptySQLiteURL is [SQLiteURL] of a database that does not exist yet.
func EmptySQLiteURL(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "portal.db")
}

// migratedSQLite returns the content of a migrated database. Tests get copies, because migrating
// takes longer than most tests.
var migratedSQLite = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "portal-sqlite-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "portal.db")
	store, err := models.Open(context.Background(), "sqlite:"+path, models.Options{})
	if err != nil {
		return nil, err
	}
	if err := store.Close(context.Background()); err != nil {
		return nil, err
	}
	return os.ReadFile(path) //nolint:gosec // the path of the database above
})

// DefaultPasswordMemory is [password.DefaultMemory], for the tests that measure it.
const DefaultPasswordMemory = password.DefaultMemory

// passwordMemory is the memory in KiB for hashing a password, so little that tests save most of
// their time.
const passwordMemory = 64

// Open opens a store on the database until the end of the test. Unless the options say otherwise,
// hashing a password is cheap, and the database may take a minute, because a busy machine is slow.
func Open(t testing.TB, url string, options models.Options) *models.Store {
	t.Helper()
	options.PasswordMemory = cmp.Or(options.PasswordMemory, passwordMemory)
	options.Timeout = cmp.Or(options.Timeout, time.Minute)
	if options.Keyring.IsZero() {
		keyring, err := secret.NewKeyring(strings.Repeat("a secret of the tests. ", 2), "")
		Must(t, err)
		options.Keyring = keyring
	}
	store, err := models.Open(context.Background(), url, options)
	if err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
	t.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			t.Logf("close the store: %v", err)
		}
	})
	return store
}

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Value returns the value of a call that must succeed: Value(f())(t).
func Value[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Must(t, err)
		return value
	}
}

// Facts fails the test with the subject and the names of the facts that do not hold.
func Facts(t testing.TB, subject any, facts map[string]bool) {
	t.Helper()
	maps.DeleteFunc(facts, func(_ string, holds bool) bool { return holds })
	if len(facts) > 0 {
		t.Errorf("not as expected: %s\n%+v", strings.Join(slices.Sorted(maps.Keys(facts)), ", "), subject)
	}
}

// Eventually waits until the condition holds, and ends the test after a minute. It asks less often
// the longer it takes.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); {
		waited := time.Since(began)
		if waited > time.Minute {
			t.Fatalf("timed out waiting until %s", what)
		}
		time.Sleep(min(5*time.Millisecond+waited/10, 100*time.Millisecond))
	}
}

// bunWarnings counts Bun's warnings, such as those about arguments without a placeholder.
type bunWarnings struct{ n atomic.Int64 }

// Printf implements Bun's logger.
func (w *bunWarnings) Printf(format string, args ...any) {
	w.n.Add(1)
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// Main runs the tests of a package, stops the PostgreSQL and LiveKit servers and exits. The tests
// fail if Bun warns of a query. TestMain calls it.
func Main(m *testing.M) {
	warnings := &bunWarnings{}
	bun.SetLogger(warnings)
	code := m.Run()
	if warnings.n.Load() > 0 {
		code = max(code, 1)
	}
	stopLiveKit()
	if err := StopServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Clock is a clock that stands still until a test moves it. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows now.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d, backwards if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// liveKit is the LiveKit server that all tests of this process share.
var liveKit struct {
	once   sync.Once
	server *livekitserver.Server
	err    error
}

// LiveKit returns a LiveKit server that other tests use too, and starts it at the first call.
func LiveKit(t testing.TB) *livekitserver.Server {
	t.Helper()
	liveKit.once.Do(func() { liveKit.server, liveKit.err = livekitserver.Start(context.Background()) })
	Must(t, liveKit.err)
	return liveKit.server
}

func stopLiveKit() {
	if liveKit.server != nil {
		liveKit.server.Stop()
	}
}
