package modelstest

import (
	"fmt"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func TestADatabaseIsLeftToLaterTestsAsItWas(t *testing.T) {
	t.Parallel()
	findServer(t)
	for statement, kept := range map[string]bool{
		"UPDATE auth_epoch SET value = random_epoch()":                                          true,
		"DELETE FROM applied_migrations":                                                        true,
		"INSERT INTO accounts (id, name, created_at) VALUES (gen_random_uuid(), 'Acme', now())": true,
		"ALTER TABLE accounts ADD COLUMN color text":                                            false,
		"DROP INDEX users_account":                                                              false,
		"DROP TABLE auth_epoch":                                                                 false,
		"CREATE SCHEMA other":                                                                   false,
		"ANALYZE auth_epoch":                                                                    false,
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = other', current_database()); END $$":               false,
		"INSERT INTO accounts (id, name, created_at) SELECT gen_random_uuid(), 'Acme', now() FROM generate_series(1, 2000)": false,
	} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			name := createDatabase(t, "migrated", "")
			t.Cleanup(func() { Must(t, dropDatabase(name)) })
			url := fmt.Sprintf(serverURL, name)
			before := rowsOf(t, url)
			Exec(t, url, statement)
			if same := Value(resetDatabase(t.Context(), name))(t); same != kept {
				t.Errorf("the database is left to later tests: %t, want %t", same, kept)
			}
			if !kept {
				return
			}
			if after := rowsOf(t, url); after != before {
				t.Errorf("later tests find the rows %s, want %s", after, before)
			}
		})
	}
}

// rowsOf returns some rows of a migrated database.
func rowsOf(t *testing.T, url string) (rows string) {
	t.Helper()
	Must(t, OpenDatabase(t, url).QueryRowContext(t.Context(), `SELECT concat_ws(' ', (SELECT json_agg(e) FROM auth_epoch AS e),
		(SELECT json_agg(m) FROM applied_migrations AS m), (SELECT count(*) FROM accounts))`).Scan(&rows))
	return rows
}
