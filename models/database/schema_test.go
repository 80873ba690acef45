package database_test

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"portal/models/modelstest"
)

// The queries return one row for each part of the schema. SQLite does not store the names of
// constraints, so its query builds the names that PostgreSQL gives them.
const (
	sqliteSchema = `
		WITH tables AS (SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'),
		unique_columns AS (
			SELECT t.name AS tbl, i.name, group_concat(c.name, '_') AS columns
			FROM tables AS t JOIN pragma_index_list(t.name) AS i JOIN pragma_index_info(i.name) AS c WHERE i.origin = 'u' GROUP BY 1, 2)
		SELECT 'column ' || t.name || '.' || c.name || ' ' || (c.cid + 1) || CASE WHEN c."notnull" = 1 OR c.pk > 0 THEN ' not null' ELSE '' END
			FROM tables AS t JOIN pragma_table_info(t.name) AS c
		UNION ALL SELECT 'index ' || tbl_name || '.' || name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL
		UNION ALL SELECT 'trigger ' || tbl_name || '.' || name FROM sqlite_master WHERE type = 'trigger'
		UNION ALL SELECT DISTINCT 'constraint ' || t.name || '.' || t.name || '_pkey' FROM tables AS t JOIN pragma_table_info(t.name) AS c WHERE c.pk > 0
		UNION ALL SELECT 'constraint ' || t.name || '.' || t.name || '_' || f."from" || '_fkey' FROM tables AS t JOIN pragma_foreign_key_list(t.name) AS f
		UNION ALL SELECT 'constraint ' || tbl || '.' || tbl || '_' || columns || '_key' FROM unique_columns`
	postgresSchema = `
		WITH tables AS (SELECT oid, relname FROM pg_class
			WHERE relnamespace = 'public'::regnamespace AND relkind = 'r')
		SELECT 'column ' || relname || '.' || attname || ' ' || attnum || CASE WHEN attnotnull THEN ' not null' ELSE '' END
			FROM tables JOIN pg_attribute ON attrelid = oid WHERE attnum > 0
		UNION ALL SELECT 'index ' || t.relname || '.' || c.relname FROM tables AS t JOIN pg_index ON indrelid = t.oid JOIN pg_class AS c ON c.oid = indexrelid
			WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u'))
		UNION ALL SELECT 'trigger ' || relname || '.' || tgname FROM tables AS t JOIN pg_trigger ON tgrelid = t.oid WHERE NOT tgisinternal
		UNION ALL SELECT 'constraint ' || relname || '.' || conname FROM tables AS t JOIN pg_constraint ON conrelid = t.oid WHERE contype IN ('p', 'u', 'f', 'c')`
)

// One store serves both databases, so both have the same tables, columns in the same order,
// indexes, constraints and triggers, and the same columns are NOT NULL.
func TestBothDatabasesHaveOneSchema(t *testing.T) {
	schemas := map[bool]map[string]bool{}
	modelstest.Databases(t, func(t *testing.T, url string) {
		f := newFixture(t, url)
		query := map[bool]string{true: postgresSchema, false: sqliteSchema}[f.IsPostgres()]
		var parts []string
		must(t, f.db.NewRaw(query).Scan(t.Context(), &parts))
		if !f.IsPostgres() {
			parts = append(parts, f.checks(t)...)
		}
		schemas[f.IsPostgres()] = map[string]bool{}
		for _, part := range parts {
			schemas[f.IsPostgres()][part] = true
		}
	})
	kinds := map[string]int{}
	for part := range schemas[true] {
		kind, _, _ := strings.Cut(part, " ")
		kinds[kind]++
	}
	if kinds["column"] < 100 || kinds["index"] < 40 || kinds["constraint"] < 50 || kinds["trigger"] < 13 {
		t.Errorf("the query of PostgreSQL misses parts of the schema: %v", kinds)
	}
	// Only PostgreSQL has TRUNCATE, and only SQLite has INSERT OR REPLACE.
	for _, table := range []string{"accounts", "agents", "api_keys"} {
		schemas[false]["trigger "+table+"."+table+"_truncate_renews_epoch"] = true
	}
	schemas[false]["trigger activities.activities_no_truncate"] = true
	schemas[true]["trigger activities.activities_no_replace"] = true
	for _, part := range slices.Sorted(maps.Keys(schemas[true])) {
		if !schemas[false][part] {
			t.Errorf("only PostgreSQL has the %s", part)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(schemas[false])) {
		if !schemas[true][part] {
			t.Errorf("only SQLite has the %s", part)
		}
	}
}

// checks returns the CHECK constraints of a SQLite database, with the names that PostgreSQL gives
// them.
func (f *fixture) checks(t *testing.T) (found []string) {
	t.Helper()
	var tables []struct{ Name, SQL string }
	must(t, f.db.NewRaw("SELECT name, sql FROM sqlite_master WHERE type = 'table'").Scan(t.Context(), &tables))
	for _, table := range tables {
		for _, check := range regexp.MustCompile(`(?m)^ +(?:CONSTRAINT (\w+)|(\w+)) .*?CHECK \(`).FindAllStringSubmatch(table.SQL, -1) {
			name := cmp.Or(check[1], table.Name+"_"+check[2]+"_check")
			found = append(found, "constraint "+table.Name+"."+name)
		}
	}
	return found
}

// A statement could replace a row by its rowid without firing the triggers. That of daily usage
// matters to new days only.
func TestSQLiteTablesWithTriggersHaveNoRowID(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.SQLiteURL(t))
	var watched []string
	err := f.db.NewRaw("SELECT DISTINCT tbl_name FROM sqlite_master WHERE type = 'trigger' AND tbl_name <> 'api_key_daily_usage'").Scan(t.Context(), &watched)
	if err != nil || len(watched) != 7 {
		t.Fatalf("triggers on %s, %v", watched, err)
	}
	for _, table := range watched {
		if _, err := f.db.ExecContext(t.Context(), "SELECT rowid FROM "+table); err == nil || !strings.Contains(err.Error(), "no such column") {
			t.Errorf("%s: %v", table, err)
		}
	}
}
