package modelstest

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"portal/migrations"
	"portal/models"
	"portal/models/database"
	"portal/models/modelstest/postgres"
)

// OpenDatabase opens a database without the store, as an operator with an SQL client does, and
// closes it at the end of the test.
func OpenDatabase(t testing.TB, url string) *bun.DB {
	t.Helper()
	var db *bun.DB
	if path, ok := database.SQLitePath(url); ok {
		pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
		Must(t, err)
		db = bun.NewDB(pool, sqlitedialect.New())
	} else {
		config, err := pgx.ParseConfig(url + "&default_query_exec_mode=simple_protocol")
		Must(t, err)
		// Compiling the plan of one statement would take longer than most tests. PgBouncer takes
		// no such parameter.
		noJIT := stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "SET jit = off")
			return err
		})
		db = bun.NewDB(stdlib.OpenDB(*config, noJIT), pgdialect.New())
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Exec runs one statement on a database as an operator.
func Exec(t testing.TB, url, statement string) {
	t.Helper()
	db := OpenDatabase(t, url)
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// MigrateFirst applies only the first migration to an empty database, as the first version did.
func MigrateFirst(t testing.TB, url string) {
	t.Helper()
	files := migrations.Postgres()
	if _, sqlite := database.SQLitePath(url); sqlite {
		files = migrations.SQLite()
	}
	first := Value(fs.Glob(files, "*.sql"))(t)[0]
	Exec(t, url, string(Value(fs.ReadFile(files, first))(t)))
	Exec(t, url, "CREATE TABLE applied_migrations (file varchar(255) PRIMARY KEY)")
	Exec(t, url, "INSERT INTO applied_migrations (file) VALUES ('"+first+"')")
}

// serverVariable is the environment variable with the URL of the PostgreSQL server that several
// test processes share, with %s for the database. Without it each starts its own.
const serverVariable = "TEST_POSTGRES"

// The PostgreSQL server that all tests of this process share.
var (
	cluster      *postgres.Cluster // nil if another process has started it
	serverURL    string            // with %s for the database
	admin        *sql.DB           // on its database "postgres"
	startOnce    sync.Once
	errStart     error
	lastDatabase atomic.Int64
)

// PostgresURL returns the URL of a new PostgreSQL database whose schema is up to date, until the
// end of the test.
func PostgresURL(t testing.TB) string {
	t.Helper()
	return createDatabase(t, "migrated", "")
}

// EmptyPostgresURL is [PostgresURL] without a schema.
func EmptyPostgresURL(t testing.TB) string {
	t.Helper()
	return createDatabase(t, "template0", "")
}

// EncodedPostgresURL is [EmptyPostgresURL] with an encoding other than UTF8.
func EncodedPostgresURL(t testing.TB, encoding string) string {
	t.Helper()
	return createDatabase(t, "template0", " ENCODING '"+encoding+"' LOCALE 'C'")
}

// OwnCluster starts a PostgreSQL server for one test, which may halt it. See [postgres.Start].
func OwnCluster(t testing.TB, settings ...string) *postgres.Cluster {
	t.Helper()
	c, err := postgres.Start(postgres.Memory(), settings...)
	Must(t, err)
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func createDatabase(t testing.TB, template, options string) string {
	t.Helper()
	startOnce.Do(func() { errStart = findServer() })
	Must(t, errStart)
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), lastDatabase.Add(1))
	Must(t, execAsAdmin("CREATE DATABASE "+name+" TEMPLATE "+template+copyStrategy()+options))
	t.Cleanup(func() {
		if err := execAsAdmin("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return fmt.Sprintf(serverURL, name)
}

// findServer opens the server that another process has started, or starts one.
func findServer() (err error) {
	if serverURL = os.Getenv(serverVariable); serverURL == "" {
		_, err = StartServer()
		return err
	}
	admin, err = sql.Open("pgx", fmt.Sprintf(serverURL, "postgres"))
	return err
}

// StartServer starts the PostgreSQL server of this process, and returns the setting of the
// environment that makes other test processes use it. The caller must call [StopServer].
func StartServer() (setting string, err error) {
	// The plans of statements must not depend on when tables are analyzed.
	if cluster, err = postgres.Start(postgres.Memory(), "autovacuum=off", "max_connections=500"); err != nil {
		return "", err
	}
	serverURL = cluster.URL("%s")
	return serverVariable + "=" + serverURL, createTemplate()
}

// createTemplate creates the migrated database that the databases of tests are copies of.
func createTemplate() error {
	var err error
	if admin, err = sql.Open("pgx", fmt.Sprintf(serverURL, "postgres")); err != nil {
		return err
	}
	if err := execAsAdmin("CREATE DATABASE migrated"); err != nil {
		return err
	}
	store, err := models.Open(context.Background(), fmt.Sprintf(serverURL, "migrated"), models.Options{})
	if err != nil {
		return err
	}
	return store.Close(context.Background())
}

// copyStrategy returns the option of CREATE DATABASE that copies the template's files, which takes
// a fifth of the default's time. PostgreSQL has the option since version 15, and before that it
// always copied files.
var copyStrategy = sync.OnceValue(func() string {
	var supported bool
	err := admin.QueryRow("SELECT current_setting('server_version_num')::int >= 150000").Scan(&supported)
	if err != nil || !supported {
		return ""
	}
	return " STRATEGY FILE_COPY"
})

func execAsAdmin(statement string) error {
	if _, err := admin.Exec(statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// StopServer stops the PostgreSQL server if this process has started it.
func StopServer() error {
	if cluster == nil {
		return nil
	}
	_ = admin.Close()
	return cluster.Stop()
}
