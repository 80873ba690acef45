package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
)

// emptyDatabases runs a test on databases without a schema.
func emptyDatabases(t *testing.T, run func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); run(t, modelstest.EmptySQLiteURL(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); run(t, modelstest.EmptyPostgresURL(t)) })
}

func TestTheNextStartFinishesAKilledMigration(t *testing.T) {
	t.Parallel()
	emptyDatabases(t, func(t *testing.T, url string) {
		env := []string{"DATABASE_URL=" + url, testSecret, anyPort}
		// Each run gets further than the one before, and the last ones finish.
		for delay := range 12 {
			i := launch(t, env, "migrate")
			select {
			case <-i.Exited():
			case <-time.After(time.Duration(delay) * 10 * time.Millisecond):
				i.Kill()
			}
		}
		account := createAccount(t, modelstest.Open(t, url, models.Options{}))
		start(t, env).accepts(t, account.secret)
	})
}

func TestAKilledPortalStartsAgainWithItsKeys(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		account := createAccount(t, modelstest.Open(t, url, models.Options{}))
		env := []string{"DATABASE_URL=" + url, testSecret, anyPort}
		for range 3 {
			i := start(t, env)
			i.accepts(t, account.secret)
			i.signal(t, os.Kill)
			<-i.Exited()
			if by := i.ProcessState.Sys().(syscall.WaitStatus).Signal(); by != syscall.SIGKILL {
				t.Fatalf("the process was ended by signal %v", by)
			}
		}
		start(t, env).accepts(t, account.secret)
	})
}
