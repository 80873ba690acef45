// Package modelstest gives tests real databases: SQLite files, and databases on
// a private PostgreSQL cluster that one test process starts when it first needs
// it. It has no stand-in for either: where PostgreSQL is missing, tests fail and
// say how to get it.
package modelstest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"portal/models"
)

// Databases runs a test over SQLite and over PostgreSQL, each time with a fresh
// database whose schema is up to date and which holds nothing.
func Databases(t *testing.T, run func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { run(t, SQLiteURL(t)) })
	t.Run("postgres", func(t *testing.T) { run(t, PostgresURL(t)) })
}

// SQLiteURL returns the URL of a SQLite database that does not exist yet, in a
// directory of its own.
func SQLiteURL(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "portal.db")
}

// PostgresURL returns the URL of a fresh PostgreSQL database whose schema is up
// to date. It goes with the test.
func PostgresURL(t testing.TB) string {
	t.Helper()
	return postgresURL(t, "TEMPLATE migrated")
}

// EmptyPostgresURL is [PostgresURL] without a schema.
func EmptyPostgresURL(t testing.TB) string {
	t.Helper()
	return postgresURL(t, "TEMPLATE template0")
}

// Open opens a store on the database, and closes it with the test.
func Open(t testing.TB, url string, options models.Options) *models.Store {
	t.Helper()
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

// Main runs a package's tests and then stops what they have started; call it
// from TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if err := stopCluster(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
