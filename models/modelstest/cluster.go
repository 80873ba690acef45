package modelstest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"portal/models"
)

// Cluster is a private PostgreSQL server on a free loopback port, without
// durability: it is thrown away.
type Cluster struct {
	dir, bin string
	port     int
}

var (
	shared     *Cluster
	startOnce  sync.Once
	errStart   error
	lastNumber atomic.Int64
)

func postgresURL(t testing.TB, from string) string {
	t.Helper()
	startOnce.Do(func() {
		if shared, errStart = StartCluster(); errStart == nil {
			errStart = shared.createTemplate()
		}
	})
	if errStart != nil {
		t.Fatal(errStart)
	}
	name := fmt.Sprintf("test_%d", lastNumber.Add(1))
	if err := shared.exec("CREATE DATABASE " + name + " " + from); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return shared.URL(name)
}

func stopCluster() error {
	if shared == nil {
		return nil
	}
	return shared.Stop()
}

// OwnCluster is [StartCluster] for one test alone, which may halt it, or fails;
// the cluster ends with the test.
func OwnCluster(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	c, err := StartCluster(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// StartCluster makes and starts a cluster with these extra settings, such as
// "log_statement=all". The error says how to get what is missing. Whoever
// starts it stops it.
func StartCluster(settings ...string) (*Cluster, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "portal-postgres-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, bin: bin, port: port}
	if owner := runAs(); owner != nil {
		if err := os.Chown(dir, int(owner.Uid), int(owner.Gid)); err != nil {
			return nil, err
		}
	}
	if err := c.run("initdb", "--pgdata", c.data(), "--username", "portal", "--auth", "trust", "--encoding", "UTF8",
		"--locale", "C.UTF-8", "--no-sync"); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	options := []string{
		"-p", strconv.Itoa(port), "-k", dir, "-c", "listen_addresses=127.0.0.1",
		"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "max_connections=200",
	}
	for _, setting := range settings {
		options = append(options, "-c", setting)
	}
	if err := c.run("pg_ctl", "start", "--wait", "--pgdata", c.data(), "--log", c.LogFile(), "--options", strings.Join(options, " ")); err != nil {
		log, _ := os.ReadFile(c.LogFile())
		return nil, errors.Join(err, errors.New(string(log)), os.RemoveAll(dir))
	}
	return c, nil
}

// URL returns the URL of a database of the cluster, such as "postgres", which
// is always there.
func (c *Cluster) URL(database string) string {
	return fmt.Sprintf("postgres://portal@127.0.0.1:%d/%s?sslmode=disable", c.port, database)
}

// LogFile returns the path of the server's log.
func (c *Cluster) LogFile() string { return filepath.Join(c.dir, "log") }

// Binary returns the path of one of PostgreSQL's programs, such as pg_dump.
func (c *Cluster) Binary(name string) string { return filepath.Join(c.bin, name) }

// Halt stops the server at once, as a crash would; [Cluster.Resume] starts it
// again with what it has kept. Without "synchronous_commit=on" that lacks the
// last half second.
func (c *Cluster) Halt() error {
	return c.run("pg_ctl", "stop", "--wait", "--pgdata", c.data(), "--mode", "immediate")
}

// Resume starts a halted server again.
func (c *Cluster) Resume() error {
	// pg_ctl remembers the options that the server was started with.
	return c.run("pg_ctl", "restart", "--wait", "--pgdata", c.data(), "--log", c.LogFile())
}

// Stop stops the server, if it runs, and removes all that it had.
func (c *Cluster) Stop() error {
	_ = c.Halt() // it may be halted already; what counts is that the files go
	return os.RemoveAll(c.dir)
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// createTemplate makes the migrated database that each test's is copied from.
func (c *Cluster) createTemplate() error {
	if err := c.exec("CREATE DATABASE migrated"); err != nil {
		return err
	}
	store, err := models.Open(context.Background(), c.URL("migrated"), models.Options{})
	if err != nil {
		return err
	}
	return store.Close(context.Background())
}

func (c *Cluster) exec(statement string) error {
	db, err := sql.Open("pgx", c.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec(statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

func (c *Cluster) run(program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, program), args...) //nolint:gosec // PostgreSQL's own programs
	cmd.Dir = c.dir
	if owner := runAs(); owner != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner}
	}
	// A file, not a pipe: the server inherits it and would keep a pipe open.
	output, err := os.CreateTemp(c.dir, program)
	if err != nil {
		return err
	}
	defer func() { _ = output.Close() }()
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(output.Name())
		return fmt.Errorf("%s: %w\n%s", program, err, said)
	}
	return nil
}

// runAs is whom the server runs as: it refuses to be root.
func runAs() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	postgres, err := user.Lookup("postgres")
	if err != nil {
		return nil
	}
	uid, uidErr := strconv.ParseUint(postgres.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(postgres.Gid, 10, 32)
	if uidErr != nil || gidErr != nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func findBinaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		// It may be a link to a folder where all of the programs are.
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	// Debian keeps the server's programs off the PATH.
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("PostgreSQL's server is missing: its program initdb is neither on the PATH nor " +
			"in /usr/lib/postgresql; install it (Debian: apt-get install postgresql) and run the tests again")
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
