package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"portal/models/modelstest"
	"portal/models/modelstest/postgres"
	"portal/models/modelstest/subprocess"
)

// serverTimeout is the time limit of starting, promoting or copying a server.
const serverTimeout = 3 * time.Minute

// server is a PostgreSQL server.
type server struct {
	name    string
	bin     string // directory of PostgreSQL's programs
	dir     string // of its files
	port    int
	logFile *os.File
	child   *subprocess.Child // nil before the first start
}

// serverSettings are the settings of both servers. The package comment explains the replication.
var serverSettings = []string{
	"listen_addresses=127.0.0.1", "max_connections=100", "shared_buffers=32MB", "log_min_messages=warning",
	"synchronous_standby_names=*", "synchronous_commit=off", "wal_writer_delay=10s", "wal_keep_size=64MB",
	// A kill loses nothing that was written, even without these.
	"fsync=off", "full_page_writes=off",
	"wal_sender_timeout=3s", "wal_receiver_timeout=3s", "wal_retrieve_retry_interval=200ms",
}

// newServer returns a server that is killed when the test ends.
func newServer(t *testing.T, dir, name string) *server {
	t.Helper()
	s := &server{
		name: name, bin: modelstest.Value(postgres.FindPrograms())(t), dir: filepath.Join(dir, name),
		port: modelstest.Value(subprocess.FreePort())(t),
	}
	modelstest.Must(t, os.Mkdir(s.dir, 0o755))
	if owner := postgres.ServerUser(); owner != nil {
		modelstest.Must(t, os.Chown(s.dir, int(owner.Uid), int(owner.Gid)))
	}
	s.logFile = modelstest.Value(os.Create(filepath.Join(dir, name+".log")))(t)
	t.Cleanup(s.kill)
	return s
}

func (s *server) url() string {
	return fmt.Sprintf("postgres://portal@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

// initialize creates an empty cluster.
func (s *server) initialize(ctx context.Context) error {
	return s.run(ctx, "initdb", "--pgdata", s.data(), "--username", "portal", "--auth", "trust", "--encoding", "UTF8",
		"--locale", "C.UTF-8", "--no-sync")
}

// copyFrom makes the server a standby of the primary on this port.
func (s *server) copyFrom(ctx context.Context, port int) error {
	if err := os.RemoveAll(s.data()); err != nil {
		return err
	}
	return s.run(ctx, "pg_basebackup", "--pgdata", s.data(), "--write-recovery-conf", "--checkpoint", "fast", "--no-sync",
		"--dbname", fmt.Sprintf("host=127.0.0.1 port=%d user=portal application_name=%s", port, s.name))
}

func (s *server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	command.Dir = s.dir
	command.SysProcAttr = &syscall.SysProcAttr{Credential: postgres.ServerUser(), Setpgid: true}
	return command
}

func (s *server) run(ctx context.Context, program string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	if output, err := s.command(ctx, program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, output)
	}
	return nil
}

// start starts the server and returns when it accepts connections.
func (s *server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	arguments := []string{"-D", s.data(), "-p", strconv.Itoa(s.port), "-k", s.dir}
	for _, setting := range serverSettings {
		arguments = append(arguments, "-c", setting)
	}
	for {
		command := s.command(context.Background(), "postgres", arguments...)
		// The server must not outlive the test process.
		command.SysProcAttr.Pdeathsig = syscall.SIGQUIT
		command.Stdout, command.Stderr = s.logFile, s.logFile
		p, err := subprocess.Start(command)
		if err != nil {
			return err
		}
		s.child = p
		if err = p.AwaitReady(ctx, s.ping); err == nil {
			return nil
		} else if ctx.Err() != nil {
			return fmt.Errorf("%w\n%s", err, lastLines(s.logFile.Name()))
		}
		// The shared memory or the lock file of the killed server may still exist.
		_ = sleep(ctx, 200*time.Millisecond)
	}
}

func (s *server) ping(ctx context.Context) error { return s.query(ctx, "SELECT 1", new(int)) }

// query runs a statement without a link and without waiting for the standby. It scans one row into
// the arguments, if any.
func (s *server) query(ctx context.Context, statement string, into ...any) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url()+"&synchronous_commit=local")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if len(into) == 0 {
		_, err = conn.Exec(ctx, statement)
		return err
	}
	return conn.QueryRow(ctx, statement).Scan(into...)
}

// checkStandby returns an error unless a synchronous standby streams from this primary.
func (s *server) checkStandby(ctx context.Context) error {
	var streaming bool
	err := s.query(ctx, `SELECT EXISTS (
		SELECT FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync')`, &streaming)
	if err == nil && !streaming {
		err = errors.New("no synchronous standby is streaming")
	}
	return err
}

// promote makes the standby the primary and returns when it accepts writes.
func (s *server) promote(ctx context.Context) error {
	var promoted bool
	err := retry(ctx, serverTimeout, func(ctx context.Context) error {
		return s.query(ctx, "SELECT NOT pg_is_in_recovery() OR pg_promote(true, 4)", &promoted)
	})
	if err == nil && !promoted {
		err = fmt.Errorf("server %s was not promoted", s.name)
	}
	return err
}

func (s *server) alive() bool { return s.child != nil && running(s.child) }

func running(child *subprocess.Child) bool {
	select {
	case <-child.Exited():
		return false
	default:
		return true
	}
}

// kill ends all processes of the server with SIGKILL and waits until none is left.
func (s *server) kill() {
	if !s.alive() {
		return
	}
	// Freeze all of them first. Otherwise the postmaster would react to the first death.
	s.signal(syscall.SIGSTOP)
	pids := s.processes()
	s.signal(syscall.SIGKILL)
	s.child.Kill()
	for _, pid := range pids {
		for range 500 {
			if exited(pid) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// signal sends a signal to all processes of the server.
func (s *server) signal(which syscall.Signal) {
	for _, pid := range s.processes() {
		_ = syscall.Kill(pid, which)
	}
}

// processes returns the ids of the postmaster and its children, or nil if it does not run.
func (s *server) processes() []int {
	if !s.alive() {
		return nil
	}
	pid := s.child.Process.Pid
	pids := []int{pid}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// exited reports whether a process has exited. A zombie has.
func exited(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

// lastLines returns the last lines of a log.
func lastLines(path string) string {
	text, _ := os.ReadFile(path)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// retry calls do until it returns nil. After limit it returns the last error.
func retry(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		if sleep(ctx, 50*time.Millisecond) != nil {
			return err
		}
	}
}
