package main

import (
	"context"
	"errors"
	"fmt"

	"portal/models/backup"
)

type backupCommand struct {
	File string `arg:"" help:"The new file."`
}

// Run does not update the schema, so that a new version can back up the database before its first
// start.
func (c backupCommand) Run(ctx context.Context, t terminal) error {
	d, err := existingDatabase(ctx)
	if err != nil {
		return err
	}
	if err := backup.Create(ctx, d.url, c.File); err != nil {
		return err
	}
	secret := "PORTAL_SECRET"
	if !d.isPostgres() {
		secret += ", or else " + secretFile + " beside the database"
	}
	return t.say("backed up to %s; the secret is not in it, so keep a copy of %s too", c.File, secret)
}

type restoreCommand struct {
	File string `arg:"" help:"A file that portal backup has written."`

	RevokeAllKeys bool `xor:"keys" help:"Revoke every key of the backup."`
	KeepKeys      bool `name:"keep-keys-that-may-have-been-revoked" xor:"keys" help:"Keep keys active that the current database does not have. Keys that were revoked after the backup may work again."`
}

// Run restores the backup. Without a current database to compare the keys with, a flag must say
// which keys stay active.
func (c restoreCommand) Run(ctx context.Context, t terminal) error {
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
	revoked, err := backup.Restore(ctx, d.url, c.File, keys)
	if errors.Is(err, backup.ErrNothingToCompare) {
		return fmt.Errorf("%w; choose --revoke-all-keys or --keep-keys-that-may-have-been-revoked", err)
	}
	if err != nil {
		return err
	}
	return t.say("restored %s; active keys of the backup that are now revoked: %d; all sessions have ended", c.File, revoked)
}
