package database_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"portal/models/database"
	"portal/models/modelstest"
	"portal/models/modelstest/postgres"
	"portal/models/modelstest/subprocess"
)

// After a failover, every connection of the pools is dead. No read and no transaction fails because
// of that.
func TestNoReadFailsAfterTheServerClosedItsConnections(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t))
	read := func(ctx context.Context) error {
		return f.Portal.NewSelect().Table("auth_epoch").Column("value").Scan(ctx, new([]byte))
	}
	change := func(ctx context.Context) error {
		return f.Portal.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO sign_in_failures (id, subject, at) VALUES (gen_random_uuid(), '', now())")
			return err
		})
	}
	const others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
	for name, do := range map[string]func(context.Context) error{"read": read, "change": change} {
		for range 3 {
			f.busy(t)
			f.exec(t, "SELECT pg_terminate_backend(pid) "+others)
			eventually(t, "the connections are closed", func() bool { return value[int](t, f, "SELECT count(*) "+others) == 0 })
			var running sync.WaitGroup
			for range database.PortalConnections {
				running.Go(func() {
					if err := do(t.Context()); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			running.Wait()
		}
	}
	if n := value[int](t, f, "SELECT count(*) FROM sign_in_failures"); n != 3*database.PortalConnections {
		t.Errorf("%d changes, want %d", n, 3*database.PortalConnections)
	}
}

// busy opens and uses all connections of the portal's pool.
func (f *fixture) busy(t *testing.T) {
	t.Helper()
	var taken []bun.Conn
	for range database.PortalConnections {
		conn := modelstest.Value(f.Portal.Conn(t.Context()))(t)
		taken = append(taken, conn)
	}
	for _, conn := range taken {
		must(t, conn.Close())
	}
}

// In transaction mode PgBouncer gives each transaction another session, without the portal's
// settings, prepared statements and locks.
func TestPgBouncerInTransactionModeIsRefused(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{
		"the session used last first":  {"pool_mode = transaction"},
		"the sessions in turn":         {"pool_mode = transaction", "server_round_robin = 1", "min_pool_size = 5"},
		"a reset after each use":       {"pool_mode = transaction", "server_reset_query_always = 1"},
		"one session for all":          {"pool_mode = transaction", "default_pool_size = 1"},
		"a session for each statement": {"pool_mode = statement"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, pgBouncer(t, modelstest.EmptyPostgresURL(t), settings...))
			err := f.Migrate(t.Context(), noLog, 0)
			if err == nil || !strings.Contains(err.Error(), "pool_mode = session") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPgBouncerInSessionMode(t *testing.T) {
	t.Parallel()
	f := newFixture(t, pgBouncer(t, modelstest.EmptyPostgresURL(t), "pool_mode = session"))
	f.works(t)
}

// Without a reset, a connection has what another client has set in its session.
func TestSettingsOfAnotherClientOfPgBouncer(t *testing.T) {
	t.Parallel()
	url := pgBouncer(t, modelstest.PostgresURL(t), "pool_mode = session", "server_reset_query =")
	other := modelstest.OpenDatabase(t, url)
	for _, setting := range foreignSettings {
		must(t, errOf(other.ExecContext(t.Context(), "SET "+setting.name+" = '"+setting.foreign+"'")))
	}
	must(t, other.Close())
	f := open(t, url)
	for _, setting := range foreignSettings {
		now, want := "", setting.want
		if setting.name == "synchronous_commit" {
			want = "on" // also if another client has set a stronger one
		}
		if err := f.Portal.QueryRowContext(t.Context(), "SHOW "+setting.name).Scan(&now); err != nil || now != want {
			t.Errorf("%s: %q, %v", setting.name, now, err)
		}
	}
}

// pgBouncer starts PgBouncer with these settings and returns the URL of the database through it.
func pgBouncer(t *testing.T, databaseURL string, settings ...string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; exec.Command(program, "--version").Run() != nil {
			t.Fatal("PgBouncer is missing (Debian: apt-get install pgbouncer)")
		}
	}
	server := modelstest.Value(url.Parse(databaseURL))(t)
	port := modelstest.Value(subprocess.FreePort())(t)
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "[databases]\n* = host=127.0.0.1 port=%s user=portal\n"+
		"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\n%s\n",
		server.Port(), port, strings.Join(settings, "\n")), 0o600))
	command := exec.Command(program, "--quiet", file)
	if owner := postgres.ServerUser(); owner != nil { // PgBouncer refuses to run as root, too
		command.SysProcAttr = &syscall.SysProcAttr{Credential: owner}
		must(t, os.Chown(file, int(owner.Uid), int(owner.Gid)))
		for dir := filepath.Dir(file); dir != filepath.Clean(os.TempDir()); dir = filepath.Dir(dir) {
			must(t, os.Chmod(dir, 0o755))
		}
	}
	output := &modelstest.LogBuffer{}
	command.Stdout, command.Stderr = output, output
	child := modelstest.Value(subprocess.Start(command))(t)
	t.Cleanup(child.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server.Host = fmt.Sprintf("127.0.0.1:%d", port)
	if err := child.AwaitReady(ctx, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", server.Host)
		if err == nil {
			err = conn.Close()
		}
		return err
	}); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return server.String()
}
