// Package postgres starts private PostgreSQL servers, for tests and benchmarks.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"portal/models/modelstest/subprocess"
)

// Cluster is a private PostgreSQL server on a loopback port. It is not durable unless its settings
// say so, because its files are deleted at the end.
type Cluster struct {
	dir, bin string
	port     int
	cleaner  *exec.Cmd
	alive    io.Closer // the cleaner's standard input
}

// cleanUp is a shell script that waits for the end of its standard input, which closes when this
// process ends, however it ends. Then it stops the server in the directory $1 with the pg_ctl in
// the directory $0, and deletes the directory. It tries again because an initdb or a server that
// was starting creates files until it misses the deleted ones.
const cleanUp = `read -r end
for attempt in 1 2 3; do
	"$0/pg_ctl" stop --wait --pgdata "$1/data" --mode immediate
	rm -rf "$1" && exit
	sleep 1
done`

// Memory returns a directory whose files are in memory, or "" if there is none with enough room. On
// a disk, CREATE DATABASE takes twenty times as much CPU for its hundreds of files.
func Memory() string {
	const dir, room = "/dev/shm", 2 << 30
	var free syscall.Statfs_t
	if err := syscall.Statfs(dir, &free); err != nil || free.Bavail*uint64(free.Bsize) < room { //nolint:gosec // a size is positive
		return ""
	}
	return dir
}

// Start creates a cluster under a directory, "" for the default of temporary files, with these
// extra settings, such as "log_statement=all", and starts it. The caller must call Stop. A process
// that is killed leaves no server and no files behind. The error says how to install a missing
// program.
func Start(under string, settings ...string) (*Cluster, error) {
	bin, err := FindPrograms()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(under, "portal-postgres-")
	if err != nil {
		return nil, err
	}
	port, err := subprocess.FreePort()
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, bin: bin, port: port}
	if owner := ServerUser(); owner != nil {
		if err := os.Chown(dir, int(owner.Uid), int(owner.Gid)); err != nil {
			return nil, err
		}
	}
	if err := c.startCleaner(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.run("initdb", "--pgdata", c.data(), "--username", "portal", "--auth", "trust", "--encoding", "UTF8",
		"--locale", "C.UTF-8", "--no-sync"); err != nil {
		return nil, errors.Join(err, c.Stop())
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
		return nil, errors.Join(err, errors.New(string(log)), c.Stop())
	}
	return c, nil
}

// URL returns the URL of a database of the cluster. The database "postgres" always exists.
func (c *Cluster) URL(database string) string {
	return fmt.Sprintf("postgres://portal@127.0.0.1:%d/%s?sslmode=disable", c.port, database)
}

// LogFile returns the path of the server's log.
func (c *Cluster) LogFile() string { return filepath.Join(c.dir, "log") }

// Program returns the path of one of PostgreSQL's programs, such as pg_dump.
func (c *Cluster) Program(name string) string { return filepath.Join(c.bin, name) }

// Halt stops the server at once, as a crash does. [Cluster.Resume] starts it again. Without
// "synchronous_commit=on" the transactions of the last half second are lost.
func (c *Cluster) Halt() error {
	return c.run("pg_ctl", "stop", "--wait", "--pgdata", c.data(), "--mode", "immediate")
}

// Resume starts a halted server again.
func (c *Cluster) Resume() error {
	// pg_ctl reuses the options of the first start.
	return c.run("pg_ctl", "restart", "--wait", "--pgdata", c.data(), "--log", c.LogFile())
}

// Stop stops the server if it runs, and deletes its files.
func (c *Cluster) Stop() error {
	return errors.Join(c.alive.Close(), c.cleaner.Wait(), os.RemoveAll(c.dir))
}

func (c *Cluster) startCleaner() (err error) {
	c.cleaner = exec.Command("/bin/sh", "-c", cleanUp, c.bin, c.dir) //nolint:gosec // a script of ours
	c.cleaner.Dir = c.dir
	// In a process group of its own, an interrupt on the terminal does not end it.
	c.cleaner.SysProcAttr = &syscall.SysProcAttr{Credential: ServerUser(), Setpgid: true}
	if c.alive, err = c.cleaner.StdinPipe(); err != nil {
		return err
	}
	return c.cleaner.Start()
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) run(program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, program), args...) //nolint:gosec // PostgreSQL's own programs
	cmd.Dir = c.dir
	if owner := ServerUser(); owner != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner}
	}
	// A file, because the server inherits it and would keep a pipe open after pg_ctl has
	// exited.
	output, err := os.CreateTemp(c.dir, program)
	if err != nil {
		return err
	}
	defer func() { _ = output.Close() }()
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(output.Name())
		return fmt.Errorf("%s: %w\n%s", program, err, text)
	}
	return nil
}

// ServerUser returns the user postgres when this process runs as root, because the server refuses
// to run as root. Otherwise it returns nil.
func ServerUser() *syscall.Credential {
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

// FindPrograms returns the directory of PostgreSQL's programs.
func FindPrograms() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		// The programs are where a symbolic link leads.
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	// On Debian the server's programs are not on the PATH.
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("the PostgreSQL server is missing: initdb is neither on the PATH nor in " +
			"/usr/lib/postgresql; install it (Debian: apt-get install postgresql)")
	}
	return filepath.Dir(slices.Max(found)), nil
}
