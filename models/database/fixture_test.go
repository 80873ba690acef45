package database_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models"
	"portal/models/database"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
)

func TestMain(m *testing.M) { modelstest.Main(m) }

var (
	must       = modelstest.Must
	eventually = modelstest.Eventually
)

// noLog discards the log.
var noLog = slog.New(slog.DiscardHandler)

// fixture is a database with its connections, and the database itself for operators' SQL.
type fixture struct {
	*database.Connections
	url string
	db  *bun.DB
}

func newFixture(t *testing.T, url string) *fixture {
	t.Helper()
	return &fixture{Connections: open(t, url), url: url, db: modelstest.OpenDatabase(t, url)}
}

// open returns connections that are closed at the end of the test.
func open(t *testing.T, url string) *database.Connections {
	t.Helper()
	connections := modelstest.Value(database.Open(url, time.Minute))(t)
	t.Cleanup(func() { must(t, connections.Close()) })
	return connections
}

// eachDatabase runs a test on SQLite and on PostgreSQL, with an up-to-date schema.
func eachDatabase(t *testing.T, run func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) { run(t, newFixture(t, url)) })
}

// eachEmptyDatabase is [eachDatabase] without a schema.
func eachEmptyDatabase(t *testing.T, run func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { run(t, newFixture(t, modelstest.EmptySQLiteURL(t))) })
	t.Run("postgres", func(t *testing.T) { run(t, newFixture(t, modelstest.EmptyPostgresURL(t))) })
}

// exec runs a statement as an operator.
func (f *fixture) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := f.db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// value returns the only value of a query.
func value[T any](t *testing.T, f *fixture, query string) (v T) {
	t.Helper()
	if err := f.db.QueryRowContext(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// customer is an account with a key.
type customer struct {
	store   *models.Store
	account people.Account
}

func (f *fixture) customer(t *testing.T) customer {
	t.Helper()
	store := modelstest.Open(t, f.url, models.Options{})
	account, err := store.Accounts.Create(t.Context(), people.NewAccount{Name: "Acme", Email: uuid.NewString() + "@example.com", Password: "correct horse battery"})
	must(t, err)
	return customer{store, account}
}

// revokesAKey generates a key, uses it and revokes it.
func (c customer) revokesAKey(ctx context.Context) error {
	key, secret, err := c.store.Keys.Generate(ctx, c.account.ID, keys.NewKey{Label: "prod", FormID: uuid.New()}, record.Operator())
	if err != nil {
		return err
	}
	if _, err := c.store.API.Authenticate(ctx, secret, keys.Source{}); err != nil {
		return err
	}
	_, err = c.store.Keys.Revoke(ctx, c.account.ID, key.ID, "", record.Operator())
	return err
}

// errOf returns the error of a call and drops its result.
func errOf[T any](_ T, err error) error { return err }
