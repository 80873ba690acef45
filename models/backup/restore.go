package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"portal/models/database"
)

// ErrNothingToCompare means that the current database has no accounts, and therefore cannot show
// which keys were revoked after the backup.
var ErrNothingToCompare = errors.New("the current database has no accounts, so it cannot show which keys were revoked after the backup")

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

// hasAccounts reports whether a database has accounts, or knows that one was erased. It does not
// create a SQLite file or update the schema.
func hasAccounts(ctx context.Context, databaseURL string) (bool, error) {
	version, err := database.Version(ctx, databaseURL)
	// A PostgreSQL server that is away may be a missing socket.
	if _, sqlite := database.SQLitePath(databaseURL); sqlite && errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || version == "" {
		return false, err
	}
	db, err := database.Open(databaseURL, database.Timeout)
	if err != nil {
		return false, err
	}
	var known bool
	err = db.Portal.NewSelect().ColumnExpr("EXISTS (SELECT 1 FROM accounts) OR EXISTS (SELECT 1 FROM erasures)").Scan(ctx, &known)
	return known, errors.Join(database.Failed("read the database", err), db.Close())
}

// checkKind returns an error unless the file starts with the signature of a backup of this kind of
// database.
func checkKind(file, signature, kind string) error {
	f, err := os.Open(file) //nolint:gosec // the operator names the file
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("the backup %s cannot be read: %w: name a file that portal backup has written", file, failed.Err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	start := make([]byte, len(signature))
	if _, err := f.Read(start); err != nil || string(start) != signature {
		return fmt.Errorf("%s is not a backup of %s, which DATABASE_URL names", file, kind)
	}
	return nil
}
