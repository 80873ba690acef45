package authn_test

import (
	"database/sql"
	"strings"
	"testing"

	"portal/models/authn"
	"portal/models/modelstest"
)

// The statement by ids contains the one by hashes, so this checks both.
func TestKeysAreReadThroughIndexes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		conn, err := modelstest.OpenDatabase(t, f.url).Conn(t.Context())
		must(t, err)
		defer func() { _ = conn.Close() }()
		explain := func(statement string) string {
			t.Helper()
			rows, err := conn.QueryContext(t.Context(), statement)
			must(t, err)
			defer func() { _ = rows.Close() }()
			columns, err := rows.Columns()
			must(t, err)
			var plan strings.Builder
			for rows.Next() {
				values := make([]any, len(columns))
				for i := range values {
					values[i] = new(sql.NullString)
				}
				must(t, rows.Scan(values...))
				plan.WriteString(values[len(values)-1].(*sql.NullString).String + "\n")
			}
			must(t, rows.Err())
			return plan.String()
		}
		var plan string
		var indexed []string
		if strings.HasPrefix(f.url, "sqlite:") {
			plan = explain("EXPLAIN QUERY PLAN " + strings.ReplaceAll(authn.SQLiteIDs, "json_each(?)", `json_each('["x"]')`))
			indexed = []string{"SEARCH k USING", "SEARCH a USING"}
		} else {
			// With these settings PostgreSQL plans for small tables as it does for large ones.
			_, err := conn.ExecContext(t.Context(), `SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
				SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0; `+authn.Planner)
			must(t, err)
			_, err = conn.ExecContext(t.Context(), "PREPARE ids (bytea[], uuid[]) AS "+authn.PostgresIDs)
			must(t, err)
			plan = explain("EXPLAIN EXECUTE ids ('{}', '{}')")
			indexed = []string{"on api_keys k", "on accounts a"}
		}
		for _, part := range indexed {
			if strings.Count(plan, part) != 2 {
				t.Errorf("want %q twice:\n%s", part, plan)
			}
		}
		if strings.Contains(plan, "Gather") {
			t.Errorf("the plan starts worker processes:\n%s", plan)
		}
		if strings.Contains(plan, "Seq Scan on api_keys") || strings.Contains(plan, "Seq Scan on accounts") || strings.Contains(plan, "SCAN k") || strings.Contains(plan, "SCAN a\n") {
			t.Errorf("a whole table is read:\n%s", plan)
		}
	})
}
