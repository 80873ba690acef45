package modelstest

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// To create and drop a database takes PostgreSQL a quarter of a second of CPU, for hundreds of
// files. So a test that leaves the schema as it was leaves its database to later tests, also to
// those of other processes. These tables are in the database "postgres".
const createPool = `
CREATE TABLE unused_databases (name text PRIMARY KEY);
CREATE TABLE template (fingerprint text, reset text)`

// fingerprint changes with the schema and with what the planner knows about tables, which it takes
// for ten pages as long as they are smaller and not analyzed.
const fingerprint = `SELECT concat_ws(' ',
	(SELECT concat(count(*), '/', max(xmin::text::bigint), '/', sum(relpages)) FROM pg_class),
	(SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_attribute),
	(SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_constraint),
	(SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_proc),
	(SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_trigger),
	(SELECT count(*) FROM pg_namespace), (SELECT count(*) FROM pg_extension), (SELECT count(*) FROM pg_statistic),
	(SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 10 * 8192))`

// preparePool makes the migrated database the template of the pool.
func preparePool(ctx context.Context, migrated *sql.DB) error {
	rows, err := migrated.QueryContext(ctx, "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	// Without triggers and foreign keys the order of the tables does not matter.
	reset := "SET session_replication_role = replica"
	for rows.Next() {
		var table, seed string
		if err := rows.Scan(&table); err != nil {
			return err
		}
		if err := migrated.QueryRowContext(ctx, "SELECT coalesce(json_agg(t)::text, '') FROM "+table+" AS t").Scan(&seed); err != nil {
			return err
		}
		reset += "; DELETE FROM " + table
		if seed != "" {
			reset += fmt.Sprintf("; INSERT INTO %s SELECT * FROM json_populate_recordset(NULL::%[1]s, '%s')", table, strings.ReplaceAll(seed, "'", "''"))
		}
	}
	var found string
	if err := cmp.Or(rows.Err(), migrated.QueryRowContext(ctx, fingerprint).Scan(&found)); err != nil {
		return err
	}
	_, err = admin.ExecContext(ctx, "INSERT INTO template VALUES ($1, $2)", found, reset)
	return err
}

// takeDatabase returns the name of a migrated database that no other test uses.
func takeDatabase(t testing.TB) string {
	t.Helper()
	var name string
	err := admin.QueryRow(`DELETE FROM unused_databases WHERE name =
		(SELECT name FROM unused_databases LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING name`).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		return createDatabase(t, "migrated", "")
	}
	Must(t, err)
	return name
}

// leaveDatabase leaves a database to later tests, or drops it if the test has changed more than
// rows.
func leaveDatabase(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	same, err := resetDatabase(ctx, name)
	if err != nil || !same {
		return cmp.Or(dropDatabase(name), err)
	}
	_, err = admin.ExecContext(ctx, "INSERT INTO unused_databases VALUES ($1)", name)
	return err
}

func resetDatabase(ctx context.Context, name string) (same bool, err error) {
	// A connection that a test has closed takes a moment to end.
	for open := 1; open > 0; time.Sleep(time.Millisecond) {
		if err := admin.QueryRowContext(ctx, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1", name).Scan(&open); err != nil {
			return false, err
		}
	}
	var want, reset string
	var altered bool
	err = admin.QueryRowContext(ctx, `SELECT fingerprint, reset, EXISTS
		(SELECT FROM pg_db_role_setting JOIN pg_database AS d ON d.oid = setdatabase WHERE datname = $1) FROM template`, name).
		Scan(&want, &reset, &altered)
	if err != nil || altered {
		return false, err
	}
	db, err := sql.Open("pgx", fmt.Sprintf(serverURL, name)+"&default_query_exec_mode=simple_protocol")
	if err != nil {
		return false, err
	}
	defer func() { _ = db.Close() }()
	var found string
	if err := db.QueryRowContext(ctx, fingerprint).Scan(&found); err != nil || found != want {
		return false, err
	}
	_, err = db.ExecContext(ctx, reset)
	return true, err
}
