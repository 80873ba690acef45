package models

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"
)

// MaxActiveKeys is the maximum number of active keys of an account.
const MaxActiveKeys = 100

// NewAPIKey is the input of [Keys.Generate].
type NewKey struct {
	Label    string    // 1 to 100 characters, no control characters
	FormID   uuid.UUID // of the rendered form; each form generates at most one key
	Replaces uuid.UUID // an active key of the same account, in a rotation; zero if none
}

// Generate creates a key and records the activity. The second result is the whole key, which
// is stored nowhere and cannot be read again.
//
// The error may be an [*InvalidError] for the field "label", a [*RepeatedFormError], [ErrKeyLimit],
// [ErrUnavailable] or, for the key to replace, [ErrKeyNotFound] or [ErrKeyAlreadyRevoked].
func (k *Keys) Generate(ctx context.Context, accountID uuid.UUID, n NewKey, actor Actor) (Key, string, error) {
	label, err := cleanName("label", "Label", n.Label)
	if err != nil {
		return Key{}, "", err
	}
	secret := newKeySecret()
	hash := hashKey(secret)
	key := Key{
		ID: newID(), AccountID: accountID, Label: label, KeyHash: hash[:],
		LastFour: secret[keyLength-4:], FormID: n.FormID, CreatedAt: k.db.Now(),
	}
	if n.Replaces != uuid.Nil {
		key.ReplacesID = &n.Replaces
	}
	if actor.Kind == ActorUser {
		key.CreatedBy = &actor.ID
	}
	err = k.db.InTx(ctx, "generate API key", func(ctx context.Context, tx Tx) error {
		if err := tx.lockAccount(ctx, accountID); err != nil {
			return err
		}
		if err := k.checkNew(ctx, tx, n, accountID); err != nil {
			return err
		}
		if err := tx.Insert(ctx, &key); err != nil {
			return err
		}
		return tx.Record(ctx, accountID, actor, ActionKeyGenerated, key.ID, key.Label)
	})
	if err != nil {
		return Key{}, "", err
	}
	return key, secret, nil
}

// checkNew returns an error if the form has already generated a key, the account has too many
// keys, or the key to replace is missing or revoked.
func (k *Keys) checkNew(ctx context.Context, tx Tx, n NewKey, accountID uuid.UUID) error {
	var made Key
	err := tx.NewSelect().Model(&made).Where("account_id = ? AND form_id = ?", accountID, n.FormID).Scan(ctx)
	if err == nil {
		return &RepeatedFormError{made}
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	active, err := tx.NewSelect().Model((*Key)(nil)).
		Where("account_id = ? AND revoked_at IS NULL", accountID).Count(ctx)
	if err != nil {
		return err
	}
	if active >= MaxActiveKeys {
		return ErrKeyLimit
	}
	if n.Replaces == uuid.Nil {
		return nil
	}
	replaced, err := k.lock(ctx, tx, accountID, n.Replaces)
	if err == nil && replaced.RevokedAt != nil {
		return ErrKeyAlreadyRevoked
	}
	return err
}
