package database

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"portal/migrations"
)

// OldestPostgres is the oldest major version of PostgreSQL that the portal supports.
const OldestPostgres = 15

// MaxClockSkew is more than synchronized clocks differ by.
const MaxClockSkew = 5 * time.Second

// Facts are what a database says about itself and about the portal's role in it.
type Facts struct {
	Server   string // such as "PostgreSQL 15.8"
	Encoding string

	Schema  string // the number of the last migration; empty: the portal's tables are missing, or Denied
	Pending int    // migrations of this program that the database does not have
	Newer   bool   // it has migrations that this program does not know

	// The rest is about PostgreSQL.
	Major      int
	ClockAhead time.Duration // of this machine's clock, compared with the server's
	Role       string
	// NewTables reports whether the role may create tables in the schema for them, whose name
	// is empty if the search_path names none that exists.
	SchemaName string
	NewTables  bool
	// Denied are tables of the portal that the role may not read and write, and NotOwned those
	// that it may not change the columns of.
	Denied, NotOwned []string
}

// Inspect reads the facts, and changes nothing. A missing SQLite file is an [fs.ErrNotExist].
func Inspect(ctx context.Context, databaseURL string) (f Facts, err error) {
	path, sqlite := SQLitePath(databaseURL)
	if !sqlite {
		return inspectPostgres(ctx, databaseURL)
	}
	db, err := openUnchanged(databaseURL)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.NewRaw("SELECT 'SQLite ' || sqlite_version(), encoding FROM pragma_encoding").Scan(ctx, &f.Server, &f.Encoding)
	if err == nil {
		err = f.readSchema(ctx, db)
	}
	if !errors.Is(err, errOldSchema) {
		err = explainSQLite(path, err)
	}
	return f, err
}

func inspectPostgres(ctx context.Context, databaseURL string) (f Facts, err error) {
	connections, err := Open(databaseURL, Timeout)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, connections.Close()) }()
	if err := connections.checkSessions(ctx); err != nil {
		return f, err
	}
	db := connections.Portal
	before := time.Now()
	var now time.Time
	if err := db.NewRaw("SELECT clock_timestamp()").Scan(ctx, &now); err != nil {
		return f, failedToOpen(err)
	}
	// On average, the server answers in the middle.
	f.ClockAhead = before.Add(time.Since(before) / 2).Sub(now)
	err = db.NewRaw(`SELECT 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1), current_setting('server_version_num')::int / 10000,
		current_setting('server_encoding'), current_user, COALESCE(current_schema(), ''),
		COALESCE(has_schema_privilege(current_schema(), 'CREATE'), false)`).
		Scan(ctx, &f.Server, &f.Major, &f.Encoding, &f.Role, &f.SchemaName, &f.NewTables)
	if err != nil {
		return f, Failed("read the settings of the server", err)
	}
	if err := f.readRights(ctx, db); err != nil || slices.Contains(f.Denied, appliedMigrations) {
		return f, err
	}
	return f, f.readSchema(ctx, db)
}

// readSchema compares the migrations that the database has with those of this program.
func (f *Facts) readSchema(ctx context.Context, db *bun.DB) error {
	known, err := fs.Glob(migrations.SQLite(), "*.sql") // PostgreSQL has the same names
	if err != nil {
		return err
	}
	has, err := applied(ctx, db)
	if err != nil {
		return err
	}
	f.Schema = versionOf(has)
	f.Newer = slices.ContainsFunc(has, func(file string) bool { return !slices.Contains(known, file) })
	f.Pending = len(slices.DeleteFunc(known, func(file string) bool { return slices.Contains(has, file) }))
	return nil
}

// readRights reads what the role may do with the portal's tables.
func (f *Facts) readRights(ctx context.Context, db *bun.DB) error {
	names, err := postgresTables()
	if err != nil {
		return err
	}
	var tables []struct {
		Name         string
		Usable, Owns bool
	}
	err = db.NewRaw(`SELECT relname AS name, has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
			AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE') AS usable, pg_has_role(relowner, 'USAGE') AS owns
		FROM pg_class WHERE oid IN (SELECT to_regclass(name) FROM unnest(string_to_array(?, ' ')) AS name) ORDER BY relname`,
		strings.Join(names, " ")).Scan(ctx, &tables)
	if err != nil {
		return Failed("read the rights of the role", err)
	}
	for _, table := range tables {
		if !table.Usable {
			f.Denied = append(f.Denied, table.Name)
		}
		if !table.Owns {
			f.NotOwned = append(f.NotOwned, table.Name)
		}
	}
	return nil
}

// appliedMigrations is the table of the migrations that a database has.
const appliedMigrations = "applied_migrations"

var createsTable = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// postgresTables returns the names of the tables that the migrations create.
func postgresTables() (names []string, err error) {
	files, err := fs.Glob(migrations.Postgres(), "*.sql")
	for _, file := range files {
		content, readErr := fs.ReadFile(migrations.Postgres(), file)
		err = errors.Join(err, readErr)
		for _, match := range createsTable.FindAllStringSubmatch(string(content), -1) {
			names = append(names, match[1])
		}
	}
	return append(names, appliedMigrations), err
}
