package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"portal/models"
	"portal/models/database"
	"portal/models/value"
)

const (
	// closeTimeout is the time limit of the last write to the database.
	closeTimeout = 3 * time.Second
	// operatorTimeout is the time limit of each use of the database by a command. Unlike a
	// request, a command can wait for a busy SQLite file.
	operatorTimeout = 10 * time.Second
)

// makeDirectory creates the directory of the SQLite file. Only its owner may read it, because it
// contains the secret too. If root creates it, it gets the owner of the directory above.
func (d databaseConfig) makeDirectory() error {
	if d.isPostgres() {
		return nil
	}
	if err := makeOwned(d.directory); err != nil {
		return fmt.Errorf("the directory of the database, %s, cannot be created: %s", absolute(d.directory),
			fileProblem(err, "create it and give it to the user that runs the portal, or correct DATABASE_URL"))
	}
	return nil
}

// makeOwned is os.MkdirAll, but gives what it makes to the owner of the directory above.
func makeOwned(directory string) error {
	if _, err := os.Stat(directory); !errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(directory, 0o700) // the error of what is no directory
	}
	if parent := filepath.Dir(directory); parent != directory {
		if err := makeOwned(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(directory, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	// The owner of the directory above could put a link in its place.
	made, err := os.OpenFile(directory, syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0) //nolint:gosec // the operator names it
	if err != nil {
		return err
	}
	return errors.Join(database.GiveToOwner(made), made.Close())
}

func databaseFromEnvironment() (databaseConfig, error) {
	s, err := readSettings("DATABASE_URL")
	return s.database, err
}

// existingDatabase is databaseFromEnvironment for a database with the portal's tables. For any
// other it returns an error. It creates nothing, so that no command works on an empty database by
// mistake.
func existingDatabase(ctx context.Context) (databaseConfig, error) {
	d, err := databaseFromEnvironment()
	if err != nil {
		return d, err
	}
	version, err := database.Version(ctx, d.url)
	switch {
	case err == nil && version == "":
		err = fmt.Errorf("%s has no tables of the portal", database.Name(d.url))
	case d.isPostgres() || !errors.Is(err, fs.ErrNotExist):
		return d, err
	}
	if os.Getenv("DATABASE_URL") == "" { // the service probably has another database
		return d, fmt.Errorf("%w: set DATABASE_URL, or give the file of the service's settings with --env-file FILE", err)
	}
	return d, fmt.Errorf("%w: correct DATABASE_URL, or create the tables with: portal migrate", err)
}

// withStore opens the store of DATABASE_URL, calls work and closes the store. Operators' commands
// need no other configuration.
func withStore(ctx context.Context, work func(*models.Store) error) error {
	d, err := existingDatabase(ctx)
	if err != nil {
		return err
	}
	// The command does not know whether the portal sends emails. If it does not, the mails that
	// wait are deleted with other old ones.
	return d.withStore(ctx, models.Options{Mail: true}, func(store *models.Store) error {
		if err := store.AdoptSettings(ctx); err != nil {
			return err
		}
		return work(store)
	})
}

// withStore is the function withStore, but creates the database. The store logs warnings to
// standard error, for example when a migration waits for a lock. An error about invalid input is
// reduced to its message.
func (d databaseConfig) withStore(ctx context.Context, options models.Options, work func(*models.Store) error) error {
	if err := d.makeDirectory(); err != nil {
		return err
	}
	options.Timeout = operatorTimeout
	warnings := newLogQueue(os.Stderr) // nobody waits for its reader while the database is locked
	defer warnings.flush()
	options.Logger = slog.New(slog.NewTextHandler(warnings, &slog.HandlerOptions{Level: slog.LevelWarn}))
	store, err := models.Open(ctx, d.url, options)
	if err != nil {
		return err
	}
	return errors.Join(forOperator(work(store)), closeStore(ctx, store))
}

// warnOfPassword says that the new password has no effect if the instance that started last has
// turned sign-in with a password off.
func warnOfPassword(store *models.Store, t terminal) error {
	if !store.PasswordsOff() {
		return nil
	}
	return t.say("PORTAL_PASSWORD_SIGN_IN is off, so nobody can sign in with this password")
}

// closeStore closes the store even if ctx has ended.
func closeStore(ctx context.Context, store *models.Store) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return store.Close(ctx)
}

type migrateCommand struct{}

// Run opens the store, which updates the schema, and says what has changed.
func (migrateCommand) Run(ctx context.Context, t terminal) error {
	d, err := databaseFromEnvironment()
	if err != nil {
		return err
	}
	before, err := database.Version(ctx, d.url)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = d.withStore(ctx, models.Options{}, func(*models.Store) error { return nil })
	if err != nil {
		return err
	}
	after, err := database.Version(ctx, d.url)
	if err != nil {
		return err
	}
	name := database.Name(d.url)
	switch before {
	case "":
		return t.say("created the schema of %s, version %s", name, after)
	case after:
		return t.say("the schema of %s is already up to date, version %s", name, after)
	}
	return t.say("updated the schema of %s from version %s to %s", name, before, after)
}

// forOperator reduces an error about invalid input to its message for users, with the flag of the
// input.
func forOperator(err error) error {
	invalid, ok := errors.AsType[*value.InvalidError](err)
	switch {
	case !ok:
		return err
	case invalid.Field == "password": // from standard input
		return errors.New(invalid.Message)
	}
	flag := strings.ToLower(capital.ReplaceAllString(invalid.Field, "-$0"))
	return fmt.Errorf("--%s: %s", flag, invalid.Message)
}

// capital begins another word of a field, such as minutesPerCall, whose flag is --minutes-per-call.
var capital = regexp.MustCompile(`[A-Z]`)
