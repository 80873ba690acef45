package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"portal/migrations"
	"portal/models/database"
)

// restorePostgres feeds psql with one transaction: it drops the portal's tables, restores the dump
// and secures the result. Without COMMIT at the end, PostgreSQL rolls everything back.
func (r restoring) restorePostgres(ctx context.Context, databaseURL, file string) (revoked int, err error) {
	dump, err := postgresProgram(ctx, databaseURL, "pg_restore", "--file=-", "--exit-on-error", "--no-owner", "--no-privileges", file)
	if err != nil {
		return 0, err
	}
	if err := checkDump(ctx, dump.Path, file); err != nil {
		return 0, err
	}
	before, err := r.beginPostgres()
	if err != nil {
		return 0, err
	}
	psql, err := postgresProgram(ctx, databaseURL, "psql",
		"--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1")
	if err != nil {
		return 0, err
	}
	if revoked, err = feedPsql(psql, database.OwnSettings+";"+before, dump, r.commitPostgres()); err != nil {
		return 0, err
	}
	if err := updateSchema(ctx, databaseURL); err != nil {
		return 0, fmt.Errorf("the backup was restored, but the update of its schema failed; run portal migrate: %w", err)
	}
	return revoked, nil
}

// checkDump returns an error unless the file is a readable dump with the portal's tables.
func checkDump(ctx context.Context, program, file string) error {
	var list bytes.Buffer
	command := exec.CommandContext(ctx, program, "--list", file) //nolint:gosec // pg_restore itself
	command.Stdout = &list
	if err := runProgram(command); err != nil {
		return err
	}
	for _, table := range []string{" accounts ", " api_keys ", " auth_epoch "} {
		if !strings.Contains(list.String(), table) {
			return fmt.Errorf("%s is not a backup of the portal", file)
		}
	}
	return nil
}

// beginPostgres returns the statements before the dump. They wait for running transactions and
// block later ones, so that nobody can revoke a key between the comparison and the restored state.
// They fail if an object that is not the portal's depends on its tables.
func (r restoring) beginPostgres() (string, error) {
	functions, err := createdNames("FUNCTION")
	if err != nil {
		return "", err
	}
	names := make([]string, len(tables))
	for i, table := range tables {
		names[i] = table.name
	}
	read := ""
	if r.compared {
		// The portal's transactions lock these tables in the same order. What is read from
		// the others must not change either.
		locked := []string{"accounts", "users", "agents", "api_keys", "sessions", "activities", "calls", "call_totals", "erasures", "auth_epoch"}
		for _, table := range tables {
			if !slices.Contains(locked, table.name) {
				locked = append(locked, table.name)
			}
		}
		read = "LOCK TABLE " + strings.Join(locked, ", ") + " IN ACCESS EXCLUSIVE MODE;" + r.readCurrent("")
	}
	return fmt.Sprintf(`
BEGIN;
SET LOCAL lock_timeout = '10s';
SET client_min_messages = warning;
SELECT pg_advisory_xact_lock(%d);
%s
DROP TABLE IF EXISTS %s;
DROP FUNCTION IF EXISTS %s;
`, database.MigrationLock, read, strings.Join(names, ", "), strings.Join(functions, ", ")), nil
}

// createdNames returns the names of the tables or functions that the migrations create.
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

// commitPostgres returns the statements after the dump.
func (r restoring) commitPostgres() string {
	statements, count := r.secure(expressions{
		epoch:   "random_epoch()",
		id:      r.newID("overlay(overlay(gen_random_uuid()::text PLACING '%s-%s-7' FROM 1 FOR 15) PLACING '8' FROM 20 FOR 1)::uuid"),
		version: "gen_random_uuid()",
		noHash:  "uuid_send(id)",
	})
	if !r.compared {
		statements = r.readCurrent("") + statements
	}
	// The dump changes the search path.
	return "RESET search_path;\n" + statements + count + ";\nCOMMIT;\n"
}

// feedPsql runs psql with the statements before, the output of dump, and the statements after, and
// returns the number in psql's last line.
func feedPsql(psql *exec.Cmd, before string, dump *exec.Cmd, after string) (int, error) {
	var out, stderr bytes.Buffer
	psql.Stdout, psql.Stderr = &out, &stderr
	in, err := psql.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := psql.Start(); err != nil {
		return 0, err
	}
	dump.Stdout = in
	_, err = io.WriteString(in, before)
	if err == nil {
		err = runProgram(dump)
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
