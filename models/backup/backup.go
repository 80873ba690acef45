// Package backup copies the database to a file and restores it, without reviving what was revoked
// after the backup.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"portal/models/database"
)

// Create copies the database to a new file, which only its owner may read and which contains no
// secret of the keyring. Other processes may use the database meanwhile. If the file exists or the
// database has no schema, Create returns an error.
func Create(ctx context.Context, databaseURL, file string) error {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("back up to %s: %w: choose another name, or a directory for a file that is named after the time", file, fs.ErrExist)
	}
	version, err := database.Version(ctx, databaseURL)
	if err != nil {
		return err
	}
	if version == "" {
		return errors.New("there is nothing to back up: the database has no tables of the portal")
	}
	draft, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*") // mode 0600
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("the backup cannot be written to the directory %s: %w: it must exist and be writable", filepath.Dir(file), failed.Err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	write := backUpPostgres
	if _, ok := database.SQLitePath(databaseURL); ok {
		write = backUpSQLite
	}
	err = write(ctx, databaseURL, draft.Name())
	if err := errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	// Unlike a rename, a link does not replace a file that another process has created
	// meanwhile.
	return os.Link(draft.Name(), file)
}

// fileName is the format of the names of files in a directory of backups, in UTC.
const fileName = "portal-20060102T150405Z.backup"

// FileName returns the name of a backup in a directory of backups. Names are in the order of the
// times.
func FileName(at time.Time) string { return at.UTC().Format(fileName) }

// Prune deletes all but the last keep of the files that are in the directory of newest and have a
// [FileName] up to its own. Later names are of a clock that was ahead.
func Prune(newest string, keep int) error {
	directory, last := filepath.Dir(newest), filepath.Base(newest)
	entries, err := os.ReadDir(directory) // sorted
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		_, err := time.Parse(fileName, e.Name())
		return err != nil || e.Name() > last
	})
	for _, old := range entries[:max(0, len(entries)-keep)] {
		err = errors.Join(err, os.Remove(filepath.Join(directory, old.Name())))
	}
	return err
}

// Record stores in the database when its newest backup began.
func Record(ctx context.Context, databaseURL string, began time.Time) error {
	db, err := database.Open(databaseURL, database.Timeout)
	if err != nil {
		return err
	}
	// SQLite would number a row without only_row.
	row := map[string]any{"only_row": true, "began_at": began.UTC().Truncate(time.Second)}
	_, err = db.Portal.NewInsert().Model(&row).TableExpr("last_backup").
		On("CONFLICT (only_row) DO UPDATE").Set("began_at = excluded.began_at").Exec(ctx)
	return errors.Join(database.Failed("record the backup", err), db.Close())
}

// backUpSQLite writes one consistent state of the database to an empty file.
func backUpSQLite(ctx context.Context, databaseURL, file string) error {
	db, err := database.Open(databaseURL, database.Timeout)
	if err != nil {
		return err
	}
	_, err = db.Portal.ExecContext(ctx, "VACUUM INTO ?", file)
	return errors.Join(database.Failed("back up", err), db.Close())
}
