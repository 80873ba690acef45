package modelstest

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"portal/models"
	"portal/models/modelstest/postgres"
)

// The PostgreSQL server that all tests of this process share.
var (
	cluster      *postgres.Cluster
	startOnce    sync.Once
	errStart     error
	lastDatabase atomic.Int64
)

// PostgresURL returns the URL of a new PostgreSQL database whose schema is up to date. It is
// dropped at the end of the test.
func PostgresURL(t testing.TB) string {
	t.Helper()
	return createDatabase(t, "migrated")
}

// EmptyPostgresURL is [PostgresURL] without a schema.
func EmptyPostgresURL(t testing.TB) string {
	t.Helper()
	return createDatabase(t, "template0")
}

// OwnCluster starts a PostgreSQL server for one test, which may halt it. See [postgres.Start].
func OwnCluster(t testing.TB, settings ...string) *postgres.Cluster {
	t.Helper()
	c, err := postgres.Start(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func createDatabase(t testing.TB, template string) string {
	t.Helper()
	startOnce.Do(func() {
		if cluster, errStart = postgres.Start(); errStart == nil {
			errStart = createTemplate()
		}
	})
	if errStart != nil {
		t.Fatal(errStart)
	}
	name := fmt.Sprintf("test_%d", lastDatabase.Add(1))
	if err := execOnCluster("CREATE DATABASE " + name + " TEMPLATE " + template); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := execOnCluster("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return cluster.URL(name)
}

// createTemplate creates the migrated database that the databases of tests are copies of.
func createTemplate() error {
	if err := execOnCluster("CREATE DATABASE migrated"); err != nil {
		return err
	}
	store, err := models.Open(context.Background(), cluster.URL("migrated"), models.Options{})
	if err != nil {
		return err
	}
	return store.Close(context.Background())
}

func execOnCluster(statement string) error {
	db, err := sql.Open("pgx", cluster.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec(statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

func stopCluster() error {
	if cluster == nil {
		return nil
	}
	return cluster.Stop()
}
