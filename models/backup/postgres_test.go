package backup_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portal/models"
	"portal/models/backup"
	"portal/models/database"
	"portal/models/modelstest"
	"portal/models/modelstest/postgres"
	"portal/models/value"
)

// neighbors are what a database of the portal can hold beside it: the statements of the server's
// administrator and of the portal's own role, which is no superuser, and the end of the URL.
var neighbors = map[string]struct{ administrator, role, url string }{
	"other objects": {administrator: `
		CREATE EXTENSION pg_stat_statements;
		CREATE SCHEMA monitoring;
		CREATE TABLE monitoring.samples (id int);
		CREATE PUBLICATION everything FOR ALL TABLES;
		CREATE TABLE public.ledger (id serial)`, role: `
		CREATE TYPE mood AS ENUM ('good', 'bad');
		CREATE FUNCTION "next Mood"(mood) RETURNS mood LANGUAGE sql AS $$ SELECT 'bad'::mood $$;
		CREATE TABLE orders (id serial PRIMARY KEY, "Mood" mood NOT NULL DEFAULT 'good');
		CREATE TABLE "users of ""orders""" (id int REFERENCES orders);
		CREATE INDEX orders_mood ON orders ("Mood");
		CREATE VIEW good_orders AS SELECT id FROM orders;
		CREATE SCHEMA sales;
		CREATE TABLE sales.accounts (id int PRIMARY KEY)`},
	"a search path in the URL":      {role: "CREATE SCHEMA portal", url: "&search_path=portal"},
	"a search path of the database": {role: "CREATE SCHEMA portal; DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = portal', current_database()); END $$"},
}

// ownDatabase returns the URLs of an empty database for the server's administrator and for the role
// that owns it.
func ownDatabase(t *testing.T) (administrator, owner string) {
	t.Helper()
	administrator = modelstest.EmptyPostgresURL(t)
	modelstest.Exec(t, administrator, `DO $$ BEGIN
		EXECUTE format('CREATE ROLE %I LOGIN', 'owner_of_' || current_database());
		EXECUTE format('ALTER DATABASE %I OWNER TO %I', current_database(), 'owner_of_' || current_database());
	END $$`)
	return administrator, regexp.MustCompile(`portal@(.+)/(\w+)`).ReplaceAllString(administrator, "owner_of_$2@$1/$2")
}

// pgDump runs pg_dump and returns its output.
func pgDump(t *testing.T, url string, args ...string) string {
	t.Helper()
	program := filepath.Join(modelstest.Value(postgres.FindPrograms())(t), "pg_dump")
	output := modelstest.Value(exec.CommandContext(t.Context(), program, append(args, "--dbname="+url)...).Output())(t)
	return string(output)
}

// definitions returns the definitions of all objects of a database.
func definitions(t *testing.T, url string) string {
	t.Helper()
	// The key of these lines is random.
	return regexp.MustCompile(`(?m)^\\(un)?restrict .*$`).ReplaceAllString(pgDump(t, url, "--schema-only"), "")
}

func TestRestoreInASharedDatabase(t *testing.T) {
	t.Parallel()
	for name, neighbor := range neighbors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			administrator, owner := ownDatabase(t)
			for url, statements := range map[string]string{administrator: neighbor.administrator, owner: neighbor.role} {
				if statements != "" {
					modelstest.Exec(t, url, statements)
				}
			}
			d := deploy(t, owner+neighbor.url)
			_, kept := d.generate(t, "kept")
			id, revoked := d.generate(t, "revoked")
			file := d.backUp(t)
			// The portal's role cannot read everything of each of them.
			whole := filepath.Join(t.TempDir(), "whole")
			pgDump(t, administrator, "--format=custom", "--file="+whole)
			d.revoke(t, id)
			before := definitions(t, administrator)
			for _, file := range []string{file, whole} {
				d.restore(t, file, backup.KeepUnrevokedKeys, 1)
				d.answers(t, "kept", kept, nil)
				d.answers(t, "revoked", revoked, value.ErrKeyRevoked)
				if after := definitions(t, administrator); after != before {
					t.Errorf("the objects are\n%s\nwant\n%s", after, before)
				}
			}
			// A lost database.
			_, d.url = ownDatabase(t)
			d.url += neighbor.url
			if strings.Contains(neighbor.role, "SET search_path") {
				modelstest.Exec(t, d.url, neighbor.role)
			}
			d.restore(t, file, backup.KeepUnknownKeys, 0)
			deployment{Store: modelstest.Open(t, d.url, models.Options{})}.answers(t, "kept by choice", kept, nil)
		})
	}
}

func TestRestoreLeavesOtherRowsAlone(t *testing.T) {
	t.Parallel()
	_, owner := ownDatabase(t)
	d := deploy(t, owner)
	d.exec(t, "CREATE TABLE orders (id serial PRIMARY KEY)")
	d.exec(t, "INSERT INTO orders DEFAULT VALUES")
	file := d.backUp(t)
	if content := modelstest.Value(os.ReadFile(file))(t); bytes.Contains(content, []byte("orders")) {
		t.Error("the backup has another table")
	}
	whole := filepath.Join(t.TempDir(), "whole")
	pgDump(t, owner, "--format=custom", "--file="+whole)
	d.exec(t, "INSERT INTO orders DEFAULT VALUES")
	d.restore(t, whole, backup.KeepUnrevokedKeys, 0)
	d.exec(t, "INSERT INTO orders DEFAULT VALUES")
	d.count(t, 3, "SELECT max(id) FROM orders")
	_, d.url = ownDatabase(t)
	d.restore(t, whole, backup.KeepUnknownKeys, 0)
	d.count(t, 0, "SELECT count(*) FROM pg_class WHERE relname LIKE 'orders%'")
}

// What it has that this version does not know would be lost, or revive something.
func TestBackupOfANewerVersion(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		d := deploy(t, url)
		d.exec(t, "CREATE TABLE later (id integer)")
		d.exec(t, "INSERT INTO applied_migrations (file) VALUES ('99990101000000_later.sql')")
		file := d.backUp(t)
		if content := modelstest.Value(os.ReadFile(file))(t); !bytes.Contains(content, []byte("later (")) {
			t.Error("the backup lacks a table")
		}
		if _, err := backup.Restore(t.Context(), url, file, backup.KeepUnknownKeys); err == nil || !strings.Contains(err.Error(), "newer version") {
			t.Error(err)
		}
	})
}

// The tables would come back in the backup's schema, where the portal would not find them.
func TestRestoreIntoAnotherSchemaIsRefused(t *testing.T) {
	t.Parallel()
	_, owner := ownDatabase(t)
	file := deploy(t, owner).backUp(t)
	modelstest.Exec(t, owner, "CREATE SCHEMA other")
	_, err := backup.Restore(t.Context(), owner+"&search_path=other", file, backup.KeepUnknownKeys)
	if err == nil || !strings.Contains(err.Error(), "search_path=public") {
		t.Error(err)
	}
	if version, err := database.Version(t.Context(), owner); err != nil || version == "" {
		t.Errorf("version %q, %v", version, err)
	}
}
