package database_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"portal/models/database"
	"portal/models/modelstest"
)

func TestInspectSaysWhatADatabaseIs(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		found := modelstest.Value(database.Inspect(t.Context(), f.url))(t)
		want := database.Facts{Server: found.Server, Encoding: "UTF-8", Schema: modelstest.Value(database.Version(t.Context(), f.url))(t)}
		if f.IsPostgres() {
			want.Encoding, want.Role, want.SchemaName, want.NewTables = "UTF8", "portal", "public", true
			want.Major = found.Major
		}
		if found.ClockAhead.Abs() > time.Minute || found.Major < database.OldestPostgres && f.IsPostgres() {
			t.Errorf("%+v", found)
		}
		found.ClockAhead = 0
		if !reflect.DeepEqual(found, want) || strings.Contains(found.Server, "(") {
			t.Errorf("got  %+v\nwant %+v", found, want)
		}
		f.exec(t, "INSERT INTO applied_migrations (file) VALUES ('20991231000001_later.sql')")
		if found := modelstest.Value(database.Inspect(t.Context(), f.url))(t); !found.Newer || found.Pending != 0 || found.Schema != "20991231000001" {
			t.Errorf("a newer schema: %+v", found)
		}
		f.exec(t, "DELETE FROM applied_migrations WHERE file NOT LIKE '%_initial.sql'")
		if found := modelstest.Value(database.Inspect(t.Context(), f.url))(t); found.Newer || found.Pending == 0 {
			t.Errorf("an older schema: %+v", found)
		}
	})
}

func TestInspectReadsTheRightsOfTheRole(t *testing.T) {
	t.Parallel()
	role := fmt.Sprintf("guest_%d", rand.Uint32()) // the tests share a server
	inspect := func(url string, statements ...string) database.Facts {
		t.Helper()
		for _, statement := range statements {
			modelstest.Exec(t, url, strings.ReplaceAll(statement, "guest", role))
		}
		return modelstest.Value(database.Inspect(t.Context(), strings.Replace(url, "portal@", role+"@", 1)))(t)
	}
	url := modelstest.PostgresURL(t)
	none := inspect(url, "CREATE ROLE guest LOGIN")
	if none.Schema != "" || len(none.Denied) < 30 || none.NewTables {
		t.Errorf("without rights: %+v", none)
	}
	if none.SchemaName != "public" || none.Role != role {
		t.Errorf("the schema %q of the role %q", none.SchemaName, none.Role)
	}
	some := inspect(url, "GRANT SELECT ON applied_migrations TO guest", "GRANT ALL ON accounts TO guest", "GRANT SELECT, INSERT, UPDATE ON users TO guest")
	if len(some.Denied) < 30 || !slices.Contains(some.Denied, "users") || slices.Contains(some.Denied, "accounts") || !slices.Contains(some.NotOwned, "accounts") {
		t.Errorf("with some rights: %+v", some)
	}
	all := inspect(url, "GRANT ALL ON ALL TABLES IN SCHEMA public TO guest", "GRANT CREATE ON SCHEMA public TO guest", "ALTER TABLE accounts OWNER TO guest")
	if len(all.Denied) > 0 || !all.NewTables || slices.Contains(all.NotOwned, "accounts") || !slices.Contains(all.NotOwned, "users") {
		t.Errorf("with all rights: %+v", all)
	}
	if elsewhere := inspect(url, "ALTER ROLE guest SET search_path = nowhere"); elsewhere.SchemaName != "" || elsewhere.Schema != "" {
		t.Errorf("with another search_path: %+v", elsewhere)
	}
}

func TestInspectChangesNothing(t *testing.T) {
	eachEmptyDatabase(t, func(t *testing.T, f *fixture) {
		f.exec(t, "CREATE TABLE notes (note text)")
		found := modelstest.Value(database.Inspect(t.Context(), f.url))(t)
		if found.Schema != "" || found.Pending == 0 || found.Newer {
			t.Errorf("%+v", found)
		}
		if version, err := database.Version(t.Context(), f.url); version != "" || err != nil {
			t.Errorf("the schema is %q, %v", version, err)
		}
	})
	t.Run("no file", func(t *testing.T) {
		dir := t.TempDir()
		_, err := database.Inspect(t.Context(), "sqlite:"+filepath.Join(dir, "data", "portal.db"))
		if left := modelstest.Value(os.ReadDir(dir))(t); !errors.Is(err, fs.ErrNotExist) || len(left) != 0 {
			t.Errorf("%v, left %v", err, left)
		}
	})
}
