package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"portal/migrations"
	"portal/models/database"
)

// restorePostgres feeds psql with one transaction: it drops the portal's tables, restores the dump,
// updates its schema and secures the result. Without COMMIT at the end, PostgreSQL rolls everything
// back.
func (r restoring) restorePostgres(ctx context.Context, databaseURL, file string) (revoked int, err error) {
	schema, err := readSchema(ctx, databaseURL)
	if err != nil {
		return 0, err
	}
	a, err := readArchive(ctx, databaseURL, file, schema)
	if err != nil {
		return 0, err
	}
	list, err := os.CreateTemp("", "portal-restore-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.Remove(list.Name())) }()
	_, err = list.WriteString(strings.Join(a.entries, "\n"))
	if err := errors.Join(err, list.Close()); err != nil {
		return 0, err
	}
	dump, err := postgresProgram(ctx, databaseURL, "pg_restore",
		"--file=-", "--exit-on-error", "--no-owner", "--no-privileges", "--use-list="+list.Name(), file)
	if err != nil {
		return 0, err
	}
	before, err := r.beginPostgres(a.schema, schema == "")
	if err != nil {
		return 0, err
	}
	psql, err := postgresProgram(ctx, databaseURL, "psql",
		"--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1", "--set=SHOW_CONTEXT=never")
	if err != nil {
		return 0, err
	}
	after, err := r.commitPostgres(a.schema)
	if err != nil {
		return 0, err
	}
	return feedPsql(psql, database.OwnSettings+";"+before, func(in io.Writer) error {
		dump.Stdout = in
		if err := runProgram(dump); err != nil {
			return unreadable(file, err)
		}
		return nil
	}, after)
}

// unreadable returns the error of a file that pg_restore cannot read.
func unreadable(file string, err error) error {
	return fmt.Errorf("read %s: %w: %w", file, errDamaged, err)
}

// archive is what a dump has of the portal.
type archive struct {
	schema  string
	entries []string // lines of its list
}

// readArchive reads the list of a dump, which may be of a whole database. It returns an error if
// the portal's tables are in another schema than this one; "" is none.
func readArchive(ctx context.Context, databaseURL, file, schema string) (a archive, err error) {
	program, err := postgresProgram(ctx, databaseURL, "pg_restore", "--list", file)
	if err != nil {
		return a, err
	}
	var list bytes.Buffer
	program.Stdout = &list
	if err := runProgram(program); err != nil {
		return a, unreadable(file, err)
	}
	found := regexp.MustCompile(`(?m)^\d+; \d+ \d+ TABLE (.+) applied_migrations (.+)$`).FindAllStringSubmatch(list.String(), -1)
	// The tables' rows are entries too.
	found = slices.DeleteFunc(found, func(match []string) bool { return strings.HasPrefix(match[1], "DATA ") })
	if len(found) == 0 {
		return a, fmt.Errorf("%s is not a backup of the portal", file)
	}
	table := found[max(0, slices.IndexFunc(found, func(match []string) bool { return match[1] == schema }))]
	if a.schema = table[1]; schema != "" && a.schema != schema {
		return a, errors.New(otherSchema(a.schema))
	}
	own, err := ownEntries(a.schema, table[2])
	if err != nil {
		return a, err
	}
	for line := range strings.Lines(list.String()) {
		if line = strings.TrimSuffix(line, "\n"); own.MatchString(line) {
			a.entries = append(a.entries, line)
		}
	}
	return a, nil
}

func otherSchema(schema string) string {
	return "the backup has its tables in another schema than the database: add search_path=" + schema + " to DATABASE_URL"
}

// ownEntries returns what matches the portal's lines in the list of a dump: those of its tables and
// of the functions, indexes and triggers that the migrations create.
func ownEntries(schema, owner string) (*regexp.Regexp, error) {
	names := map[string]string{}
	for name, kind := range map[string]string{"FUNCTIONS": "FUNCTION", "INDEXES": "(?:UNIQUE )?INDEX", "TRIGGERS": "(?:CONSTRAINT )?TRIGGER"} {
		created, err := createdNames(kind)
		if err != nil {
			return nil, err
		}
		names[name] = "(?:" + strings.Join(created, "|") + ")"
	}
	// A name may have spaces, but the portal's have none.
	return regexp.Compile(strings.NewReplacer(
		"SCHEMA", regexp.QuoteMeta(schema), "OWNER", regexp.QuoteMeta(owner), "TABLES", "(?:"+strings.Join(tableNames(), "|")+")",
		"FUNCTIONS", names["FUNCTIONS"], "INDEXES", names["INDEXES"], "TRIGGERS", names["TRIGGERS"],
	).Replace(`^\d+; \d+ \d+ (?:TABLE(?: DATA)? SCHEMA TABLES|(?:DEFAULT|(?:FK |CHECK )?CONSTRAINT) SCHEMA TABLES \w+|` +
		`FUNCTION SCHEMA FUNCTIONS\(.*\)|INDEX SCHEMA INDEXES|TRIGGER SCHEMA TABLES TRIGGERS) (?:OWNER|\S+)$`))
}

// lockTables locks the portal's tables. It waits for running transactions and blocks later ones, so
// that nobody can revoke a key between the comparison and the restored state. Because a statement
// may need the tables in another order, each attempt lasts less than the 1s after which the server
// ends a deadlock, and then releases all tables. Autovacuum gives way only to a statement that has
// waited for 1s, so weaker locks come first, which block no statement of the portal.
const lockTables = `
DO $lock$
DECLARE
	tables regclass[];
	name regclass;
	holder text;
	pause float := 0.3;
	deadline timestamptz := clock_timestamp() + 'WAIT';
	attempt timestamptz;
BEGIN
	PERFORM set_config('lock_timeout', 'WAIT', true);
	PERFORM pg_advisory_xact_lock(MIGRATION_LOCK);
	tables := ARRAY(SELECT to_regclass(n) FROM unnest(ARRAY[NAMES]) AS n WHERE to_regclass(n) IS NOT NULL);
	FOREACH name IN ARRAY tables LOOP
		EXECUTE 'LOCK TABLE ' || name || ' IN SHARE UPDATE EXCLUSIVE MODE';
	END LOOP;
	LOOP
		BEGIN
			attempt := clock_timestamp() + '300ms';
			FOREACH name IN ARRAY tables LOOP
				PERFORM set_config('lock_timeout', greatest(1, extract(milliseconds FROM attempt - clock_timestamp())::int)::text, true);
				EXECUTE 'LOCK TABLE ' || name || ' IN ACCESS EXCLUSIVE MODE';
			END LOOP;
			PERFORM set_config('lock_timeout', 'WAIT', true);
			RETURN;
		EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
			IF clock_timestamp() > deadline THEN
				RAISE lock_not_available;
			END IF;
		END;
		PERFORM pg_sleep(pause);
		pause := least(2 * pause, 1);
	END LOOP;
EXCEPTION WHEN lock_not_available THEN
	SELECT format('process %s (application "%s", since %s)', s.pid, s.application_name, date_trunc('second', s.xact_start)) INTO holder
		FROM pg_locks AS l JOIN pg_stat_activity AS s ON s.pid = l.pid
		WHERE l.granted AND s.datname = current_database() AND (l.relation = ANY (tables) OR l.locktype = 'advisory' AND l.objid = MIGRATION_LOCK)
		ORDER BY l.locktype, s.xact_start LIMIT 1;
	RAISE EXCEPTION 'the database cannot be replaced now: waited WAIT for a lock, held by %: let it end or stop the instances, then restore again',
		COALESCE(holder, 'an unknown session');
END $lock$;
`

// beginPostgres returns the statements before the dump. They fail if an object that is not the
// portal's depends on its tables.
func (r restoring) beginPostgres(schema string, create bool) (string, error) {
	functions, err := createdNames("FUNCTION")
	if err != nil {
		return "", err
	}
	path, names := quoteName(schema), tableNames()
	before := ""
	if create {
		// The portal would not find a schema that is not in its search path.
		before = "CREATE SCHEMA IF NOT EXISTS " + path + ";" + raiseIf("current_schema() IS NULL", otherSchema(schema))
	}
	before += "SET LOCAL search_path = " + path + ";"
	if r.compared {
		before += r.readCurrent("")
	}
	// Requests of the API use auth_epoch first, and most transactions use the next tables in
	// this order. With another one, more attempts to lock the tables would fail.
	first := []string{"auth_epoch", "accounts", "users", "agents", "api_keys", "sessions", "activities", "calls", "call_totals", "erasures"}
	var locked []string
	for _, name := range append(first, names...) {
		if name = quoteText(path + "." + name); !slices.Contains(locked, name) {
			locked = append(locked, name)
		}
	}
	in := " " + path + "."
	return fmt.Sprintf(`
BEGIN;
SET LOCAL statement_timeout = 0;
SET client_min_messages = warning;
%s
%s
DO $drop$
DECLARE
	dependents text;
BEGIN
	DROP TABLE IF EXISTS%s;
	DROP FUNCTION IF EXISTS%s;
EXCEPTION WHEN dependent_objects_still_exist THEN
	GET STACKED DIAGNOSTICS dependents = PG_EXCEPTION_DETAIL;
	RAISE EXCEPTION 'the database has objects of others that need the tables of the portal (%%): save their definitions, drop them, restore again, and create them again',
		replace(dependents, E'\n', ', ');
END $drop$;
`, strings.NewReplacer("WAIT", r.wait.String(), "MIGRATION_LOCK", strconv.Itoa(database.MigrationLock), "NAMES", strings.Join(locked, ", ")).Replace(lockTables),
		before, in+strings.Join(names, ","+in), in+strings.Join(functions, ","+in)), nil
}

// raiseIf returns a statement that fails with a message if the condition holds.
func raiseIf(condition, message string) string {
	return "DO $check$ BEGIN IF " + condition + " THEN RAISE EXCEPTION USING MESSAGE = " + quoteText(message) + "; END IF; END $check$;"
}

// createdNames returns the names of the objects of a kind that the migrations create.
func createdNames(kind string) ([]string, error) {
	files := migrations.Postgres()
	paths, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	create := regexp.MustCompile(`(?m)^CREATE (?:OR REPLACE )?` + kind + ` (\w+)`)
	var names []string
	for _, path := range paths {
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		for _, match := range create.FindAllStringSubmatch(string(content), -1) {
			names = append(names, match[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// commitPostgres returns the statements after the dump, which changes the search path.
func (r restoring) commitPostgres(schema string) (string, error) {
	newest, err := newestMigration()
	if err != nil {
		return "", err
	}
	migrate, err := migratePostgres()
	if err != nil {
		return "", err
	}
	statements, count := r.secure(expressions{
		epoch:   "random_epoch()",
		id:      r.newID("overlay(overlay(gen_random_uuid()::text PLACING '%s-%s-7' FROM 1 FOR 15) PLACING '8' FROM 20 FOR 1)::uuid"),
		version: "gen_random_uuid()",
		noHash:  "uuid_send(id)",
	})
	if !r.compared {
		statements = r.readCurrent("") + statements
	}
	newer := raiseIf("EXISTS (SELECT 1 FROM applied_migrations WHERE file > "+quoteText(newest)+")", errNewer.Error())
	return "SET LOCAL search_path = " + quoteName(schema) + ";\n" + newer + migrate + statements + count + ";\nCOMMIT;\n", nil
}

// migratePostgres returns the statements that apply the migrations that the dump lacks.
func migratePostgres() (statements string, err error) {
	files := migrations.Postgres()
	paths, err := fs.Glob(files, "*.sql")
	if err != nil {
		return "", err
	}
	for _, path := range paths {
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return "", err
		}
		statements += fmt.Sprintf("DO $migrate$ BEGIN IF NOT EXISTS (SELECT 1 FROM applied_migrations WHERE file = %[1]s) THEN "+
			"INSERT INTO applied_migrations (file) VALUES (%[1]s); EXECUTE %[2]s; END IF; END $migrate$;\n", quoteText(path), quoteText(string(content)))
	}
	return statements, nil
}

// feedPsql runs psql with the statements before, what dump writes, and the statements after, and
// returns the number in psql's last line.
func feedPsql(psql *exec.Cmd, before string, dump func(io.Writer) error, after string) (int, error) {
	var out, stderr bytes.Buffer
	psql.Stdout, psql.Stderr = &out, &stderr
	in, err := psql.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := psql.Start(); err != nil {
		return 0, err
	}
	_, err = io.WriteString(in, before)
	if err == nil {
		err = dump(in)
	}
	if err == nil {
		_, err = io.WriteString(in, after)
	}
	_ = in.Close()
	// If psql has failed, its error is the cause of the others.
	if err := programError(psql, psql.Wait(), &stderr); err != nil {
		return 0, err
	}
	if err != nil {
		return 0, err
	}
	lines := strings.Fields(out.String())
	if len(lines) == 0 {
		return 0, errors.New("psql reported no result")
	}
	return strconv.Atoi(lines[len(lines)-1])
}
