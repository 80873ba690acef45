package modelstest

import (
	"database/sql"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"portal/models/database"
)

// OpenDatabase opens a database without the store, as an operator with an SQL client does. The
// database is closed at the end of the test.
func OpenDatabase(t testing.TB, url string) *bun.DB {
	t.Helper()
	var db *bun.DB
	if path, ok := database.SQLitePath(url); ok {
		pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
		if err != nil {
			t.Fatal(err)
		}
		db = bun.NewDB(pool, sqlitedialect.New())
	} else {
		pool, err := sql.Open("pgx", url+"&default_query_exec_mode=simple_protocol")
		if err != nil {
			t.Fatal(err)
		}
		db = bun.NewDB(pool, pgdialect.New())
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
