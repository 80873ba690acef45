package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

// startPiped starts a portal whose standard output and standard error are one pipe, and returns the
// end that nobody reads.
func startPiped(t *testing.T, args ...string) (i *instance, account accountWithKey, reader *os.File) {
	t.Helper()
	url, address := modelstest.SQLiteURL(t), freeAddress(t)
	account = createAccount(t, modelstest.Open(t, url, models.Options{}))
	reader, writer, err := os.Pipe()
	modelstest.Must(t, err)
	t.Cleanup(func() { _ = reader.Close() })
	command := portalCommand(t, append(databaseEnv(url), testSecret, "PORTAL_ADDR="+address), args...)
	command.Stdout, command.Stderr = writer, writer
	i = &instance{Visitor: modelstest.NewVisitor(t, "http://"+address)}
	i.Child, err = subprocess.Start(command)
	modelstest.Must(t, err)
	t.Cleanup(i.Kill)
	modelstest.Must(t, writer.Close())
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	modelstest.Must(t, i.AwaitReady(ctx, func(ctx context.Context) error { return subprocess.CheckOK(ctx, i.URL+"/readyz") }))
	return i, account, reader
}

// keepsLastUsed checks that the account's key has a Last Used after the portal has exited.
func (a accountWithKey) keepsLastUsed(t *testing.T) {
	t.Helper()
	if key := modelstest.Value(a.store.Keys.Find(t.Context(), a.ID, a.key.ID))(t); key.LastUsedAt == nil {
		t.Error("Last Used is lost")
	}
}

func TestALogThatNobodyReadsHoldsUpNothing(t *testing.T) {
	t.Parallel()
	i, account, _ := startPiped(t)
	i.accepts(t, account.secret)
	for range 1000 { // their lines are larger than the pipe
		i.Get("/api/agents").Is(http.StatusUnauthorized)
	}
	i.Get("/healthz").Is(http.StatusOK)
	i.signal(t, syscall.SIGTERM)
	i.awaitExit(t)
	account.keepsLastUsed(t)
}

// Terminals hang up twice: by the system and by the shell.
func TestAClosedOutputAndStraySignalsEndNothing(t *testing.T) {
	t.Parallel()
	// If the tests ignore SIGHUP, as under nohup, the portal would too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	i, account, reader := startPiped(t)
	modelstest.Must(t, reader.Close())
	for _, stray := range []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGPIPE} {
		i.signal(t, stray)
	}
	for range 20 {
		i.accepts(t, account.secret)
		time.Sleep(logDelay) // until the line is written
	}
	i.signal(t, syscall.SIGHUP)
	modelstest.Eventually(t, "the portal is not ready", func() bool { return i.Get("/readyz").StatusCode != http.StatusOK })
	i.signal(t, syscall.SIGHUP)
	i.awaitExit(t)
	account.keepsLastUsed(t)
}

// The system hangs up the programs of a terminal that is closed, which nohup prevents.
func TestNohupKeepsThePortal(t *testing.T) {
	t.Parallel()
	command := portalCommand(t, append(databaseEnv(modelstest.SQLiteURL(t)), anyPort))
	command.Args = append([]string{"nohup", command.Path}, command.Args[1:]...)
	command.Path = "/usr/bin/nohup"
	i := launchCommand(t, command)
	i.awaitReady(t)
	i.signal(t, syscall.SIGHUP)
	time.Sleep(100 * time.Millisecond)
	i.Get("/readyz").Is(http.StatusOK)
	i.stop(t)
}

// A reader that has seen enough, such as head, is no failure.
func TestACommandWhoseReaderHasLeftSucceeds(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	modelstest.Must(t, err)
	modelstest.Must(t, reader.Close())
	defer writer.Close()
	for _, args := range [][]string{{"serve", "--help"}, {"account", "list"}, {"version"}} {
		var stderr bytes.Buffer
		command := portalCommand(t, databaseEnv(modelstest.SQLiteURL(t)), args...)
		command.Stdout, command.Stderr = writer, &stderr
		if err := command.Run(); err != nil || stderr.Len() > 0 {
			t.Errorf("%s: %v: %s", args, err, stderr.String())
		}
	}
}

func TestADemoIsServedWithoutStandardOutput(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	modelstest.Must(t, err)
	modelstest.Must(t, reader.Close())
	command := portalCommand(t, append(databaseEnv(modelstest.SQLiteURL(t)), anyPort), "--demo")
	i := &instance{}
	command.Stdout, command.Stderr = writer, &i.stderr
	i.Child, err = subprocess.Start(command)
	modelstest.Must(t, err)
	t.Cleanup(i.Kill)
	modelstest.Must(t, writer.Close())
	i.awaitReady(t)
	i.stop(t)
}
