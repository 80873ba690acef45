package backup

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"portal/migrations"
	"portal/models/database"
)

// RestoredKeys selects the keys of a backup that stay active. A key that is revoked in the current
// database is never among them.
type RestoredKeys int

const (
	// KeepUnrevokedKeys keeps the keys that are in the current database and not revoked there.
	KeepUnrevokedKeys RestoredKeys = iota
	// RevokeAllKeys revokes every key.
	RevokeAllKeys
	// KeepUnknownKeys also keeps the keys that the current database does not have. They may
	// have been revoked after the backup.
	KeepUnknownKeys
)

// ErrNothingToCompare means that the current database has no accounts, and therefore cannot show
// which keys were revoked after the backup.
var ErrNothingToCompare = errors.New("the current database has no accounts, so it cannot show which keys were revoked after the backup")

// errNewer is the error of a backup with tables or columns whose fate this version does not know.
var errNewer = errors.New("the backup is of a newer version of the portal: restore it with that version")

// newestMigration returns the newest migration that this version has. Both databases have the same
// names.
func newestMigration() (string, error) {
	files, err := fs.Glob(migrations.Postgres(), "*.sql")
	if err == nil && len(files) == 0 {
		err = errors.New("there are no migrations")
	}
	if err != nil {
		return "", err
	}
	return slices.Max(files), nil
}

// Restored says what a restore has done.
type Restored struct {
	Revoked  int  // active keys of the backup that it revoked
	Compared bool // with the current database, which knows the later revocations and erasures
}

// Restore replaces the database with a backup. It ends all sessions, renews the authentication
// epoch and records an activity in each account. The list of tables says what stays of the current
// database: access that was withdrawn after the backup does not come back. Users who are not in the
// current database are disabled. What was erased after the backup is hidden; afterwards the caller
// calls [erasure.Erasures.Finish].
//
// Restore is atomic: other processes may use the database meanwhile, and see either the old state
// or the new one. With [KeepUnrevokedKeys] and no current database, it returns
// [ErrNothingToCompare].
func Restore(ctx context.Context, databaseURL, file string, keys RestoredKeys) (restored Restored, err error) {
	path, sqlite := database.SQLitePath(databaseURL)
	if sqlite {
		err = checkKind(file, "SQLite format 3\x00", "SQLite")
	} else {
		err = checkKind(file, "PGDMP", "PostgreSQL")
	}
	if err != nil {
		return restored, err
	}
	r := restoring{keys: keys, now: time.Now().UTC(), wait: lockWait}
	if r.compared, err = hasAccounts(ctx, databaseURL); err != nil {
		return restored, err
	}
	if !r.compared && keys == KeepUnrevokedKeys {
		return restored, ErrNothingToCompare
	}
	if r.compared {
		// The comparison needs the columns of the current schema.
		if err := updateSchema(ctx, databaseURL); err != nil {
			return restored, err
		}
	}
	restored.Compared = r.compared
	if sqlite {
		restored.Revoked, err = r.restoreSQLite(ctx, path, file)
	} else {
		restored.Revoked, err = r.restorePostgres(ctx, databaseURL, file)
	}
	return restored, err
}

// lockWait is the usual wait of a restore for locks. On a busy server many attempts fail.
const lockWait = 30 * time.Second

// restoring is a restore in progress.
type restoring struct {
	keys     RestoredKeys
	compared bool // with the accounts of the current database
	now      time.Time
	wait     time.Duration // for the locks of other sessions of PostgreSQL
}

// updateSchema applies the pending migrations to the current database or to the file with the
// restored state of SQLite.
func updateSchema(ctx context.Context, databaseURL string) error {
	db, err := database.Open(databaseURL, database.Timeout)
	if err != nil {
		return err
	}
	err = db.Migrate(ctx, slog.New(slog.DiscardHandler), time.Minute)
	return errors.Join(err, db.Close())
}
