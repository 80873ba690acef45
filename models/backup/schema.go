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
	"portal/models/erasure"
)

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

func tableNames() (names []string) {
	for _, table := range erasure.Tables {
		names = append(names, table.Name)
	}
	return names
}
