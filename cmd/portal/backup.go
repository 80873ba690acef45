package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"portal/models"
	"portal/models/backup"
)

type backupCommand struct {
	File string `arg:"" help:"The new file, or a directory for a file that is named after the time."`
	Keep int    `placeholder:"NUMBER" help:"In a directory, keep this many of the files that are named after the time, and delete older ones."`
}

// Run does not update the schema, so that a new version can back up the database before its first
// start. It deletes old backups only after the new one is complete.
func (c backupCommand) Run(ctx context.Context, t terminal) error {
	if c.File == "-" {
		return inputError("- is not a file: a backup is not written to standard output; name a file")
	}
	info, err := os.Stat(c.File)
	isDirectory := err == nil && info.IsDir()
	if c.Keep != 0 && (c.Keep < 0 || !isDirectory) {
		return inputError("--keep: give a number above 0 and a directory in place of a file")
	}
	d, err := existingDatabase(ctx)
	if err != nil {
		return err
	}
	file, began := c.File, time.Now()
	if isDirectory {
		file = filepath.Join(c.File, backup.FileName(began))
	}
	if err := backup.Create(ctx, d.url, file); err != nil {
		return err
	}
	if err := backup.Record(ctx, d.url, began); err != nil {
		if err := t.say("the backup is complete, but its time is not in the database, for the metric: %v", err); err != nil {
			return err
		}
	}
	secret := "PORTAL_SECRET"
	if !d.isPostgres() {
		secret += ", or else " + secretFile + " beside the database"
	}
	if err := t.say("backed up to %s; the secret is not in it, so keep a copy of %s too", file, secret); err != nil || c.Keep == 0 {
		return err
	}
	return backup.Prune(file, c.Keep)
}

type restoreCommand struct {
	File string `arg:"" help:"A file that portal backup has written."`

	RevokeAllKeys bool `xor:"keys" help:"Revoke every key of the backup."`
	KeepKeys      bool `name:"keep-keys-that-may-have-been-revoked" xor:"keys" help:"Keep keys active that the current database does not have. Keys that were revoked after the backup may work again."`
}

// Run restores the backup. Without a current database to compare the keys with, a flag must say
// which keys stay active.
func (c restoreCommand) Run(ctx context.Context, t terminal) error {
	if c.File == "-" {
		return inputError("- is not a file: a backup is not read from standard input; name a file")
	}
	d, err := databaseFromEnvironment()
	if err != nil {
		return err
	}
	if err := d.makeDirectory(); err != nil {
		return err
	}
	keys := backup.KeepUnrevokedKeys
	if c.RevokeAllKeys {
		keys = backup.RevokeAllKeys
	}
	if c.KeepKeys {
		keys = backup.KeepUnknownKeys
	}
	restored, err := backup.Restore(ctx, d.url, c.File, keys)
	if errors.Is(err, backup.ErrNothingToCompare) {
		return fmt.Errorf("%w; choose --revoke-all-keys or --keep-keys-that-may-have-been-revoked", err)
	}
	if err != nil {
		return err
	}
	if err := d.withStore(ctx, models.Options{}, func(store *models.Store) error { return finishErasures(ctx, store) }); err != nil {
		return fmt.Errorf("restored %s, but: %w", c.File, err)
	}
	if !restored.Compared {
		if err := t.say("the current database had no accounts, so what was erased after the backup is in it again: repeat those erasures"); err != nil {
			return err
		}
	}
	return t.say("restored %s; active keys of the backup that are now revoked: %d; all sessions have ended", c.File, restored.Revoked)
}
