package models

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"log/slog"
	"slices"

	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/secret"
	"portal/models/value"
)

// secretCheck has hashes of a key derived from the secrets of the instance that started last.
type secretCheck struct {
	bun.BaseModel `bun:"table:secret_check"`

	OnlyRow  int `bun:",pk"`
	Current  []byte
	Previous []byte
}

func newSecretCheck(keyring secret.Keyring) secretCheck {
	var hashes [][]byte
	for _, key := range keyring.Derive("portal secret check v1", 32) {
		hash := sha256.Sum256(key)
		hashes = append(hashes, hash[:])
	}
	check := secretCheck{OnlyRow: 1, Current: hashes[0]}
	if len(hashes) > 1 {
		check.Previous = hashes[1]
	}
	return check
}

// shares reports whether both have a secret in common, as in each step of a rotation.
func (s secretCheck) shares(other secretCheck) bool {
	return slices.ContainsFunc([][]byte{s.Current, s.Previous}, func(hash []byte) bool {
		return len(hash) > 0 && (bytes.Equal(hash, other.Current) || bytes.Equal(hash, other.Previous))
	})
}

// checkSecret warns if the instance that started last on this database has another secret. Of two
// such instances, each refuses the sessions and tokens of the other. An instance starts even if the
// database does not answer, or cannot write because a standby is missing.
func checkSecret(ctx context.Context, db *db.DB, keyring secret.Keyring, isNew bool) {
	if keyring.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, db.Timeout)
	defer cancel()
	own := newSecretCheck(keyring)
	if err := compareSecret(ctx, db, own, isNew); err != nil {
		db.Logger.WarnContext(ctx, "PORTAL_SECRET cannot be compared with that of other instances", slog.Any("cause", value.Failed("read and write the check", err)))
	}
}

func compareSecret(ctx context.Context, db *db.DB, own secretCheck, isNew bool) error {
	var stored secretCheck
	err := db.NewSelect().Model(&stored).Where("only_row = 1").Scan(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return err
	case bytes.Equal(own.Current, stored.Current) && bytes.Equal(own.Previous, stored.Previous):
		return nil
	case isNew:
		db.Logger.WarnContext(ctx, "portal.secret is missing; made a new one; restore it from your copy and restart: "+
			"with the new one everyone is signed out, and authenticator apps and webhooks of before do not work")
	case !own.shares(stored):
		db.Logger.WarnContext(ctx, "PORTAL_SECRET differs from that of the instance that started last on this database: "+
			"give all instances the same one, and to change it, set the former one as PORTAL_SECRET_PREVIOUS")
	}
	_, err = db.NewInsert().Model(&own).On("CONFLICT (only_row) DO UPDATE").
		Set("current = excluded.current, previous = excluded.previous").Exec(ctx)
	return err
}
