package models_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"portal/migrations"
	"portal/models"
	"portal/models/database"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/secret"
	"portal/models/value"
	"portal/models/webhooks"
)

var writtenVersion = flag.String("write", "", "write the databases of this version, such as 1.2.0, to migrations/testdata")

const (
	// releases has the databases of the releases, named after version and dialect. Until a
	// version is released, its databases may lack its newest migrations.
	releases = "../migrations/testdata"
	// releasedEmail and releasedKey are those of the customer in each database.
	releasedEmail = "ada@example.com"
	releasedKey   = "nas_OUwLrhPaaOv2CiGmFlN7aUpkT3QIm70UxMbA"
)

// everything is the configuration with which a store uses all of the schema.
func everything(t *testing.T) models.Options {
	t.Helper()
	return models.Options{
		Mail: true, LiveKit: modelstest.LiveKit(t).Portal(), Webhooks: &webhooks.Guard{},
		Keyring: modelstest.Value(secret.NewKeyring(strings.Repeat("secret", 8), ""))(t),
	}
}

// A database of each release gets the newest schema, serves what it has, and works like a new one.
// With -write, the test first writes those of a version, as make release does.
func TestReleasedDatabasesAreUpgraded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, fresh *fixture) {
		dialect := map[bool]string{true: "postgres", false: "sqlite"}[fresh.Postgres()]
		if *writtenVersion != "" {
			must(t, os.WriteFile(filepath.Join(releases, *writtenVersion+"-"+dialect+".sql"), fresh.dump(t), 0o644))
		}
		files := modelstest.Value(filepath.Glob(filepath.Join(releases, "*-"+dialect+".sql")))(t)
		if len(files) == 0 {
			t.Fatal("there is no database of a release")
		}
		for _, file := range files {
			url := modelstest.EmptySQLiteURL(t)
			if fresh.Postgres() {
				url = modelstest.EmptyPostgresURL(t)
			} else {
				path, _ := database.SQLitePath(url)
				must(t, database.CreateSQLite(path))
			}
			modelstest.Exec(t, url, string(modelstest.Value(os.ReadFile(file))(t)))
			f := newFixture(t, url, everything(t))
			if got, want := f.schema(t), fresh.schema(t); !slices.Equal(got, want) {
				t.Errorf("%s becomes another schema: %q, want %q", file, difference(got, want), difference(want, got))
			}
			f.serves(t)
			f.useEverything(t, f.Store)
		}
	})
}

// Later versions add tables and columns, and an instance of this one works beside them.
func TestThisVersionWorksOnANewerSchema(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		for _, table := range f.tables(t) {
			f.Exec(t, "ALTER TABLE "+table+" ADD COLUMN of_a_later_version text")
		}
		f.Exec(t, "CREATE TABLE of_a_later_version (id integer)")
		f.Exec(t, "INSERT INTO applied_migrations (file) VALUES ('20990101000000_later.sql')")
		f.Store = f.Open(t, everything(t))
		f.useEverything(t, f.Store)
	})
}

// serves checks that the customer of a release signs in, and that the key works.
func (f *fixture) serves(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	user := modelstest.Value(f.SignIn.VerifyPassword(ctx, releasedEmail, password, people.Client{Address: "203.0.113.9"}))(t)
	caller := modelstest.Value(f.API.Authenticate(ctx, releasedKey, keys.Source{}))(t)
	active := modelstest.Value(f.Keys.Active(ctx, user.AccountID))(t)
	if caller.AccountID != user.AccountID || !slices.ContainsFunc(active, func(key keys.Key) bool { return key.ID == caller.KeyID }) {
		t.Errorf("the key is of the account %s, and the user of %s has %+v", caller.AccountID, user.AccountID, active)
	}
	for _, err := range []error{
		errOf(f.Usage.OfAccount(ctx, user.AccountID, keys.Days(90))), errOf(f.Agents.List(ctx, user.AccountID, value.Page{Limit: 10})),
		errOf(f.Webhooks.List(ctx, user.AccountID)), errOf(f.People.List(ctx, user.AccountID, value.Page{Limit: 10})),
		f.Erasures.Purge(ctx), f.Accounts.SetDisabled(ctx, user.AccountID, true, modelstest.Customer{}.Actor),
	} {
		checkError(t, "a method", err, nil)
	}
}

// dump returns the statements that make a database of this version with a customer who has used
// everything: the migrations, and the rows.
func (f *fixture) dump(t *testing.T) []byte {
	t.Helper()
	c, hash := f.Customer(t), sha256.Sum256([]byte(releasedKey))
	f.Briefly(t, everything(t), func(s *models.Store) {
		f.Store = s
		f.use(t, s, c)
		c.User.Email = releasedEmail
		f.Exec(t, "UPDATE users SET email = ?, email_hash = ?, password_hash = ? WHERE id = ?",
			releasedEmail, value.HashEmail(releasedEmail), modelstest.CheapHash(password), c.User.ID)
		f.Passkey(t, f.SignedIn(t, c), c.Actor)
		f.TwoSteps(t, c)
		_, _, err := s.Webhooks.Add(t.Context(), c.ID, "https://example.com/", record.EventGroups, c.Actor)
		must(t, err)
		_, _, err = s.Invitations.Create(t.Context(), c.ID, modelstest.NewEmail(), people.RoleMember, c.Actor)
		must(t, err)
		key, _ := f.Key(t, c)
		f.Exec(t, "UPDATE api_keys SET key_hash = ? WHERE id = ?", hash[:], key.ID)
	})
	folder, begin, quote := migrations.SQLite(), "", "quote(%s)"
	if f.Postgres() {
		// The rows are in no order, and the triggers have done their work.
		folder, begin, quote = migrations.Postgres(), "SET session_replication_role = replica;\n", "COALESCE(quote_literal(%s), 'NULL')"
	}
	var out strings.Builder
	for _, file := range modelstest.Value(fs.Glob(folder, "*.sql"))(t) {
		out.Write(modelstest.Value(fs.ReadFile(folder, file))(t))
	}
	out.WriteString("CREATE TABLE applied_migrations (file varchar(255) PRIMARY KEY);\n" + begin)
	for _, table := range f.tables(t) {
		var columns, rows []string
		query := "SELECT name FROM pragma_table_info(?)"
		if f.Postgres() {
			query = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = ? ORDER BY ordinal_position"
		}
		must(t, f.DB.NewRaw(query, table).Scan(t.Context(), &columns))
		var values []string
		for _, column := range columns {
			values = append(values, fmt.Sprintf(quote, column))
		}
		must(t, f.DB.NewRaw("SELECT "+strings.Join(values, "||', '||")+" FROM "+table).Scan(t.Context(), &rows))
		for _, row := range rows {
			// The migrations and the triggers of SQLite have inserted some.
			fmt.Fprintf(&out, "INSERT INTO %s (%s) VALUES (%s) ON CONFLICT DO NOTHING;\n", table, strings.Join(columns, ", "), row)
		}
	}
	return []byte(out.String())
}

// tables returns the names of all tables.
func (f *fixture) tables(t *testing.T) (names []string) {
	t.Helper()
	query := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
	if f.Postgres() {
		query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
	}
	must(t, f.DB.NewRaw(query).Scan(t.Context(), &names))
	return names
}

// schema returns a line for each part of the schema.
func (f *fixture) schema(t *testing.T) (lines []string) {
	t.Helper()
	query := "SELECT type || ' ' || name || ' ' || COALESCE(sql, '') FROM sqlite_master ORDER BY 1"
	if f.Postgres() {
		query = `SELECT 'column ' || table_name || '.' || column_name || ' ' || ordinal_position || ' ' || data_type || ' ' || is_nullable || ' ' || COALESCE(column_default, '')
				FROM information_schema.columns WHERE table_schema = 'public'
			UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
			UNION ALL SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
			UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
			UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1`
	}
	must(t, f.DB.NewRaw(query).Scan(t.Context(), &lines))
	return lines
}

// difference returns the lines that only the first list has.
func difference(lines, others []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(others, line) })
}
