package models

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"
)

// MaxActiveKeys is the maximum number of active keys of an account.
const MaxActiveKeys = 100

// NewKey is the input of [Keys.Generate].
type NewKey struct {
	Label    string    // 1 to 100 characters, no control characters
	FormID   uuid.UUID // of the rendered form; each form generates at most one key
	Replaces uuid.UUID // an active key of the same account, in a rotation; zero if none
}

// Generate creates a key and records the activity. The second result is the whole key, which
// is stored nowhere and cannot be read again.
//
// The error may be an [*InvalidError] for the field "label", a [*RepeatedFormError], [ErrKeyLimit]
// or, for the key to replace, [ErrKeyNotFound] or [ErrKeyAlreadyRevoked].
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

// Revoke revokes one of the account's keys and records the activity. After it returns, no
// instance accepts the key. It returns the revoked key, with [ErrKeyAlreadyRevoked] if the key was
// revoked before. The error may also be [ErrKeyNotFound], or [ErrUnavailable], after which the
// outcome is unknown.
func (k *Keys) Revoke(ctx context.Context, accountID, id uuid.UUID, actor Actor) (Key, error) {
	return k.change(ctx, accountID, id, func(ctx context.Context, tx Tx, key *Key) error {
		now := tx.Now()
		key.RevokedAt = &now
		if err := tx.Update(ctx, key, "revoked_at"); err != nil {
			return err
		}
		return tx.RecordEnd(ctx, accountID, actor, ActionKeyRevoked, id, key.Label)
	})
}

// Rename gives one of the account's active keys another label and records the activity. It
// returns the key with its new label. The error may be an [*InvalidError] for the field "label",
// [ErrKeyNotFound] or [ErrKeyAlreadyRevoked] with the unchanged key.
func (k *Keys) Rename(ctx context.Context, accountID, id uuid.UUID, label string, actor Actor) (Key, error) {
	label, err := cleanName("label", "Label", label)
	if err != nil {
		return Key{}, err
	}
	return k.change(ctx, accountID, id, func(ctx context.Context, tx Tx, key *Key) error {
		if key.Label == label {
			return nil
		}
		activity := Activity{
			AccountID: accountID, Action: ActionKeyRenamed, SubjectID: &id, Label: label, FormerLabel: key.Label,
		}
		key.Label = label
		if err := tx.Update(ctx, key, "label"); err != nil {
			return err
		}
		return tx.RecordActivity(ctx, actor, activity)
	})
}

// FindReplicated returns one of the account's keys after a commit that a synchronous standby has
// too. A plain read may show a revocation that a failover can still undo. The error may be
// [ErrKeyNotFound].
func (k *Keys) FindReplicated(ctx context.Context, accountID, id uuid.UUID) (Key, error) {
	key, err := k.change(ctx, accountID, id, func(context.Context, Tx, *Key) error { return nil })
	if errors.Is(err, ErrKeyAlreadyRevoked) {
		err = nil
	}
	return key, err
}

// change locks one of the account's keys and calls change with it, unless the key is revoked.
func (k *Keys) change(
	ctx context.Context, accountID, id uuid.UUID, change func(context.Context, Tx, *Key) error,
) (Key, error) {
	var key Key
	var revoked bool
	err := k.db.InTx(ctx, "change API key", func(ctx context.Context, tx Tx) (err error) {
		if err := tx.lockAccountsTable(ctx, accountID); err != nil {
			return err
		}
		if key, err = k.lock(ctx, tx, accountID, id); err != nil {
			return err
		}
		if revoked = key.RevokedAt != nil; revoked {
			// The earlier revocation may have stopped waiting for a synchronous
			// standby. The commit of this row lock waits until the standby has both.
			return nil
		}
		return change(ctx, tx, &key)
	})
	if err == nil && revoked {
		err = ErrKeyAlreadyRevoked
	}
	return key, err
}
