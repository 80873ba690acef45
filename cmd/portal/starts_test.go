package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"portal/models/modelstest"
)

// foreignWords are in the errors of libraries and of the system, which say what failed but not what
// to do.
var foreignWords = regexp.MustCompile(`\(\d+\)|SQLSTATE|SQLITE_|SQL logic|sql:|pgconn|pgx|dial tcp|listen tcp|lookup |strconv|exit status|malformed|goroutine|transport|decode|character|body length|EOF`)

func TestWrongStartsSayWhatToDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	good := modelstest.SQLiteURL(t)
	mustPortal(t, databaseEnv(good), "", "backup", path("good.backup"))
	content := readFile(t, path("good.backup"))
	middle := len(content) / 2
	for name, content := range map[string]string{
		"damaged.db": content[:4096] + strings.Repeat("hunter2 ", middle/8) + content[4096+middle/8*8:], "cut.db": content[:20000],
		"cut.backup": content[:len(content)-5000], "text": "hunter2", "short.secret": "hunter2\n",
	} {
		writeFile(t, path(name), content)
	}
	modelstest.Must(t, os.MkdirAll(path("secret", "portal.secret"), 0o700))
	modelstest.Must(t, os.Mkdir(path("short"), 0o700))
	modelstest.Must(t, os.Rename(path("short.secret"), path("short", "portal.secret")))
	modelstest.Exec(t, "sqlite:"+path("other.db"), "CREATE TABLE accounts (number INTEGER)")
	postgres, whole := modelstest.EmptyPostgresURL(t), modelstest.PostgresURL(t)
	mustPortal(t, databaseEnv(whole), "", "backup", path("postgres.backup"))
	dump := readFile(t, path("postgres.backup"))
	writeFile(t, path("postgres.cut"), dump[:len(dump)-3000])
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	other := strings.TrimPrefix(web.URL, "http://")
	if !strings.Contains(postgres, "?") {
		postgres += "?"
	}

	for _, test := range []struct{ database, address, command, words string }{
		{"sqlite:" + path("text", "data", "portal.db"), "", "serve", path("text", "data") + "|not a directory|create it|user that runs the portal"},
		{"sqlite:" + path("secret", "portal.db"), "", "serve", path("secret", "portal.secret") + " cannot be read: is a directory|PORTAL_SECRET"},
		{"sqlite:" + path("short", "portal.db"), "", "serve", path("short", "portal.secret") + " has fewer than 32 bytes|restore the file from your copy"},
		{"sqlite:" + path("damaged.db"), "", "serve", path("damaged.db") + "|is damaged|move it|portal restore"},
		{"sqlite:" + path("cut.db"), "", "account list", path("cut.db") + "|is damaged|portal restore"},
		{"sqlite:" + path("other.db"), "", "serve", "table accounts that is not the portal's|set DATABASE_URL"},
		{"sqlite:" + path("text"), "", "serve", "is not a SQLite database: correct DATABASE_URL"},
		{"sqlite:" + dir, "", "serve", "is a directory: DATABASE_URL must name a file"},
		{good, "", "backup " + path("text"), "back up to " + path("text") + ": file already exists: choose another name"},
		{good, "", "backup " + path("nowhere", "new"), "directory " + path("nowhere") + "|no such file or directory|must exist"},
		{good, "", "restore --revoke-all-keys " + path("cut.backup"), "read " + path("cut.backup") + ": the backup is cut or damaged|another one"},
		{good, "", "restore --revoke-all-keys " + path("nowhere"), path("nowhere") + " cannot be read: no such file or directory|portal backup"},
		{good, "", "restore --revoke-all-keys " + path("text"), path("text") + " is not a backup of SQLite"},
		{whole, "", "restore --revoke-all-keys " + path("postgres.cut"), "read " + path("postgres.cut") + ": the backup is cut or damaged|another one"},
		{postgres + "&sslmode=perhaps", "", "migrate", "DATABASE_URL: the parameter sslmode has an invalid value"},
		{postgres + "&sslmode=verify-full&sslrootcert=" + path("nowhere"), "", "migrate", "the parameter sslrootcert names a file that cannot be read: no such file"},
		{postgres + "&connect_timeout=soon", "", "migrate", "the parameter connect_timeout has an invalid value"},
		{postgres + "&sslmod=disable", "", "migrate", `refuses the connection: unrecognized configuration parameter "sslmod"|DATABASE_URL`},
		{postgres + "&user=nowhere", "", "migrate", `role "nowhere" does not exist: correct the user|sslmode|pg_hba.conf`},
		{postgres + "&role=pg_monitor", "", "migrate", "permission denied for schema public; make the role of DATABASE_URL the owner"},
		{postgres + "&search_path=nowhere", "", "migrate", "create the schema, or correct the search_path"},
		{postgres + "&sslmode=require&sslcert=" + path("nowhere") + "&sslkey=" + path("nowhere"), "", "migrate", "sslcert and sslkey name a file that cannot be read: no such file"},
		{postgres + "&default_transaction_read_only=on", "", "migrate", "no standby, but default_transaction_read_only is on|disk is full|turn the setting off"},
		{"postgres://portal@127.0.0.1:1/portal", "", "migrate", "no PostgreSQL server answers at 127.0.0.1:1: connection refused: start it or correct DATABASE_URL"},
		{"postgres://portal@nohost.invalid/portal", "", "migrate", "at nohost.invalid:5432: its name cannot be resolved|correct DATABASE_URL"},
		{good, "192.0.2.7:8080", "serve", "PORTAL_ADDR: 192.0.2.7:8080: this machine does not have the address; write one"},
		{good, "nohost.invalid:8080", "serve", "PORTAL_ADDR: nohost.invalid:8080: the host name cannot be resolved|0.0.0.0"},
		{good, other, "serve", "PORTAL_ADDR: " + other + ": address already in use; stop the other program"},
		{good, "127.0.0.1:1\n", "healthcheck", "no portal answers at 127.0.0.1:1: connection refused; start it, or set PORTAL_ADDR"},
		{good, other, "healthcheck", other + " answers with 404 Not Found, so it is probably no portal; set PORTAL_ADDR"},
		{good, "8080", "healthcheck", `PORTAL_ADDR: invalid listen address "8080"; write host:port`},
		{good, "", "healthcheck --addr 8080", `--addr: invalid listen address "8080"; write host:port`},
		{good, "", "account set-limits --account a@example.com --calls many", "--calls: write a whole number"},
		{good, "", "backup", "the argument <file> is missing; run portal backup --help"},
		{good, "", "backup -", "- is not a file: a backup is not written to standard output; name a file"},
		{good, "", "restore -", "- is not a file: a backup is not read from standard input; name a file"},
		{good, "", "serve --addr :80", "unknown flag --addr; run portal serve --help"},
	} {
		env := []string{"DATABASE_URL=" + test.database, "PORTAL_ADDR=" + test.address}
		if strings.HasPrefix(test.database, "postgres") {
			env = append(env, testSecret)
		}
		r := portal(t, env, "", strings.Split(test.command, " ")...)
		r.failsWith(t, strings.Split(test.words, "|")...)
		if found := foreignWords.FindString(r.stderr); found != "" || strings.Contains(r.stderr, "hunter") {
			t.Errorf("%s: %q is not in our words: %s", test.command, found, r.stderr)
		}
	}
}

// The driver reads the variables of libpq too.
func TestWrongVariablesOfPostgresAreNamed(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"PGSSLMODE=perhaps", "PGSERVICE=nowhere", "PGSSLROOTCERT=/nowhere"} {
		name, _, _ := strings.Cut(variable, "=")
		portal(t, append(databaseEnv("postgres://portal@127.0.0.1:1/portal"), variable), "", "migrate").failsWith(t, "unset the variables "+name)
	}
}

// The tests may run as root, who may use each port.
func TestAPortThatNeedsAPrivilegeIsExplained(t *testing.T) {
	t.Parallel()
	err := &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EACCES)}
	if text := listenProblem(err); !strings.Contains(text, "permission denied; choose a port from 1024") || !strings.Contains(text, "CAP_NET_BIND_SERVICE") {
		t.Errorf("got %q", text)
	}
	full := &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	if text := fileProblem(full, "let the user write"); text != "the disk is full; free some space on it" {
		t.Errorf("got %q", text)
	}
}

func TestALostSecretIsAWarning(t *testing.T) {
	t.Parallel()
	url := modelstest.EmptySQLiteURL(t)
	secret := filepath.Join(filepath.Dir(strings.TrimPrefix(url, "sqlite:")), secretFile)
	run := func() string {
		t.Helper()
		i := start(t, append(databaseEnv(url), anyPort))
		i.stop(t)
		return i.stderr.String()
	}
	mustPortal(t, databaseEnv(url), "", "migrate")
	for _, log := range []string{run(), run()} {
		if strings.Contains(log, "WARN") {
			t.Errorf("a warning without a reason: %s", log)
		}
	}
	modelstest.Must(t, os.Rename(secret, secret+".copy"))
	if log := run(); !strings.Contains(log, "portal.secret is missing; made a new one; restore it from your copy") {
		t.Errorf("got %s", log)
	}
	modelstest.Must(t, os.Chmod(secret, 0o644))
	if log := run(); !strings.Contains(log, "other users of this machine may read "+secret+"; run: chmod 600") {
		t.Errorf("got %s", log)
	}
}
