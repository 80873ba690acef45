package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/uptrace/bun"

	"portal/models/database"
)

// clientVariables are the parameters of a database URL that PostgreSQL's programs read from the
// environment.
var clientVariables = map[string]string{
	"channel_binding": "PGCHANNELBINDING",
	"connect_timeout": "PGCONNECT_TIMEOUT",
	"gssencmode":      "PGGSSENCMODE",
	"krbsrvname":      "PGKRBSRVNAME",
	"passfile":        "PGPASSFILE",
	"sslcert":         "PGSSLCERT",
	"sslkey":          "PGSSLKEY",
	"sslmode":         "PGSSLMODE",
	"sslrootcert":     "PGSSLROOTCERT",
	"sslsni":          "PGSSLSNI",

	"ssl_max_protocol_version": "PGSSLMAXPROTOCOLVERSION",
	"ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
}

// backUpPostgres writes a dump in PostgreSQL's custom format to an empty file. It has the portal's
// tables and what belongs to them. Of other objects in the same schema it has types and functions,
// which pg_dump cannot leave out, but a restore does.
func backUpPostgres(ctx context.Context, databaseURL, file string) error {
	schema, err := readSchema(ctx, databaseURL)
	if err != nil {
		return err
	}
	others, err := readOthers(ctx, databaseURL, schema)
	if err != nil {
		return err
	}
	args := []string{"--format=custom", "--encoding=UTF8", "--no-owner", "--no-privileges", "--no-password", "--file=" + file, "--schema=" + quoteName(schema)}
	for _, other := range others {
		args = append(args, "--exclude-table="+quoteName(schema)+"."+quoteName(other))
	}
	program, err := postgresProgram(ctx, databaseURL, "pg_dump", args...)
	if err != nil {
		return err
	}
	return runProgram(program)
}

// readSchema returns the schema with the portal's tables, or else the one where the portal would
// create them, or "" if that does not exist.
func readSchema(ctx context.Context, databaseURL string) (schema string, err error) {
	err = scan(ctx, databaseURL, &schema, `SELECT COALESCE((SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.oid = to_regclass('applied_migrations')), current_schema(), '')`)
	return schema, err
}

// readOthers returns the names of the tables, views and sequences in the portal's schema that are
// not the portal's. A newer version of the portal may have tables that this one does not know, so
// then it returns none.
func readOthers(ctx context.Context, databaseURL, schema string) (names []string, err error) {
	newest, err := newestMigration()
	if err != nil {
		return nil, err
	}
	err = scan(ctx, databaseURL, &names, `SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname = ? AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relname NOT IN (?)
		AND NOT EXISTS (SELECT 1 FROM applied_migrations WHERE file > ?)`, schema, bun.List(tableNames()), newest)
	return names, err
}

// scan reads the result of a query.
func scan(ctx context.Context, databaseURL string, result any, query string, args ...any) error {
	db, err := database.Open(databaseURL, database.Timeout)
	if err != nil {
		return err
	}
	err = db.Portal.NewRaw(query, args...).Scan(ctx, result)
	return errors.Join(database.Failed("read the schema", err), db.Close())
}

// quoteName returns a name as SQL and the patterns of pg_dump have it.
func quoteName(name string) string { return pgx.Identifier{name}.Sanitize() }

// quoteText returns a text as SQL has it.
func quoteText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// postgresProgram returns the command that runs one of PostgreSQL's programs on the database. The
// connection's parameters are in its environment, because other users of the machine can read a
// command line. If the program is missing, the error says how to install it.
func postgresProgram(ctx context.Context, databaseURL, name string, args ...string) (*exec.Cmd, error) {
	path, err := findPostgresProgram(name)
	if err != nil {
		return nil, err
	}
	environment, err := postgresEnvironment(databaseURL)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, path, args...) //nolint:gosec // PostgreSQL's own programs
	command.Env = append(os.Environ(), environment...)
	return command, nil
}

func findPostgresProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return "", fmt.Errorf("%s is missing: it is neither on the PATH nor in /usr/lib/postgresql; "+
			"install PostgreSQL's client programs, of the server's version or newer (Debian: apt-get install postgresql-client)", name)
	}
	// The newest version also works with older servers.
	return slices.MaxFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	}), nil
}

// postgresEnvironment returns the environment of PostgreSQL's programs for the database.
func postgresEnvironment(databaseURL string) ([]string, error) {
	config, err := database.ParsePostgresURL(databaseURL)
	if err != nil {
		return nil, err
	}
	hosts, ports := []string{config.Host}, []string{fmt.Sprint(config.Port)}
	for _, other := range config.Fallbacks {
		// pgx repeats a host once for each TLS setting.
		last := len(hosts) - 1
		if port := fmt.Sprint(other.Port); other.Host != hosts[last] || port != ports[last] {
			hosts, ports = append(hosts, other.Host), append(ports, port)
		}
	}
	environment := []string{
		"PGHOST=" + strings.Join(hosts, ","), "PGPORT=" + strings.Join(ports, ","),
		"PGUSER=" + config.User, "PGDATABASE=" + config.Database,
	}
	if config.Password != "" {
		environment = append(environment, "PGPASSWORD="+config.Password)
	}
	if len(hosts) > 1 {
		environment = append(environment, "PGTARGETSESSIONATTRS=read-write")
	}
	if options := postgresOptions(config.RuntimeParams); options != "" {
		environment = append(environment, "PGOPTIONS="+options)
	}
	_, query, _ := strings.Cut(databaseURL, "?")
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("the database URL is not a valid PostgreSQL URL")
	}
	for parameter, variable := range clientVariables {
		if parameters.Has(parameter) {
			environment = append(environment, variable+"="+parameters.Get(parameter))
		}
	}
	mode, root := cmp.Or(parameters.Get("sslmode"), os.Getenv("PGSSLMODE")), cmp.Or(parameters.Get("sslrootcert"), os.Getenv("PGSSLROOTCERT"))
	if file := systemCertificates(); strings.HasPrefix(mode, "verify-") && root == "" && file != "" {
		environment = append(environment, "PGSSLROOTCERT="+file)
	}
	return environment, nil
}

// systemCertificates returns the file with the certificate authorities of the system, which the
// portal trusts without sslrootcert. PostgreSQL's programs read a file of the user instead.
func systemCertificates() string {
	for _, file := range []string{
		os.Getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
	} {
		if _, err := os.Stat(file); err == nil { //nolint:gosec // the operator names the file
			return file
		}
	}
	return ""
}

// postgresOptions returns the value of PGOPTIONS for these settings, such as a search_path.
func postgresOptions(settings map[string]string) string {
	var options []string
	escape := strings.NewReplacer(`\`, `\\`, " ", `\ `)
	for name, value := range settings {
		if name == "options" {
			options = append(options, value)
		} else {
			options = append(options, "-c "+name+"="+escape.Replace(value))
		}
	}
	slices.Sort(options)
	return strings.Join(options, " ")
}

// runProgram runs a command, and returns an error that contains what the command wrote to standard
// error.
func runProgram(command *exec.Cmd) error {
	var stderr bytes.Buffer
	command.Stderr = &stderr
	return programError(command, command.Run(), &stderr)
}

func programError(command *exec.Cmd, err error, stderr *bytes.Buffer) error {
	if err == nil {
		return nil
	}
	name, text := filepath.Base(command.Path), strings.TrimSpace(stderr.String())
	if text == "" {
		return fmt.Errorf("%s: %w", name, err)
	}
	return errors.New(name + ": " + strings.TrimPrefix(text, name+": "))
}
