package models

import (
	"cmp"
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

	// A key that replaces another one has its restrictions and note in place of these.
	Restrictions Restrictions
	Note         string // at most 500 characters
}

// Generate creates a key, records the activity, and returns the key and its secret, which is stored
// nowhere and cannot be read again.
//
// The error may be an [*InvalidError] for the field "label", "expires", "agents", "networks" or
// "note", a [*RepeatedFormError], [ErrKeyLimit] or, for the key to replace, [ErrKeyNotFound] or
// [ErrKeyAlreadyRevoked].
func (k *Keys) Generate(ctx context.Context, accountID uuid.UUID, n NewKey, actor Actor) (Key, string, error) {
	label, err := cleanName("label", "Label", n.Label)
	if err != nil {
		return Key{}, "", err
	}
	note, err := cleanNote("note", "Note", n.Note)
	if err != nil {
		return Key{}, "", err
	}
	secret := newKeySecret()
	hash := hashKey(secret)
	key := Key{
		ID: newID(), AccountID: accountID, Label: label, KeyHash: hash[:],
		LastFour: secret[keyLength-4:], FormID: n.FormID, CreatedAt: k.db.Now(), Note: note,
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
		if err := k.restrictNew(ctx, tx, n, &key); err != nil {
			return err
		}
		if err := tx.Insert(ctx, &key); err != nil {
			return err
		}
		if err := scheduleExpiry(ctx, tx, Key{}, key); err != nil {
			return err
		}
		detail, err := describeChange(ctx, tx, nil, &key)
		if err != nil {
			return err
		}
		return tx.RecordActivity(ctx, actor, Activity{
			AccountID: accountID, Action: ActionKeyGenerated, SubjectID: &key.ID, Label: key.Label, Detail: detail,
		})
	})
	if err != nil {
		return Key{}, "", err
	}
	return key, secret, nil
}

// restrictNew sets the restrictions of a new key: those of the key that it replaces, or else those
// of the input.
func (k *Keys) restrictNew(ctx context.Context, tx Tx, n NewKey, key *Key) error {
	if n.Replaces == uuid.Nil {
		if n.Restrictions.ExpiresAt == nil && k.maxLifetime > 0 {
			return k.setExpiry(ctx, tx, key, nil)
		}
		return k.restrict(ctx, tx, key, n.Restrictions)
	}
	replaced, err := k.lock(ctx, tx, key.AccountID, n.Replaces)
	if err != nil {
		return err
	}
	if replaced.RevokedAt != nil {
		return ErrKeyAlreadyRevoked
	}
	if expired, err := tx.expired(ctx, replaced); err != nil || expired {
		return cmp.Or(err, ErrKeyAlreadyRevoked)
	}
	k.renew(key, replaced)
	return nil
}

// checkNew returns an error if the form has already generated a key, or the account has too many
// keys.
func (k *Keys) checkNew(ctx context.Context, tx Tx, n NewKey, accountID uuid.UUID) error {
	var made Key
	err := tx.NewSelect().Model(&made).Where("account_id = ? AND form_id = ?", accountID, n.FormID).Scan(ctx)
	if err == nil {
		return &RepeatedFormError{made}
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	active, err := k.whereActive(tx.NewSelect().Model((*Key)(nil))).Where("account_id = ?", accountID).Count(ctx)
	if err == nil && active >= MaxActiveKeys {
		return ErrKeyLimit
	}
	return err
}

// Revoke revokes one of the account's keys and records the activity. After it returns, no instance
// accepts the key. If the key was revoked before or has expired, it returns the unchanged key with
// [ErrKeyAlreadyRevoked]. The error may also be [ErrKeyNotFound], or [ErrUnavailable], after which
// the outcome is unknown.
func (k *Keys) Revoke(ctx context.Context, accountID, id uuid.UUID, actor Actor) (Key, error) {
	return k.RevokeBecause(ctx, accountID, id, "", actor)
}

// RevokeBecause is [Keys.Revoke] with a reason of at most 500 characters. The error may also be an
// [*InvalidError] for the field "reason".
func (k *Keys) RevokeBecause(ctx context.Context, accountID, id uuid.UUID, reason string, actor Actor) (Key, error) {
	reason, err := cleanNote("reason", "Reason", reason)
	if err != nil {
		return Key{}, err
	}
	return k.changeUnless(ctx, Tx.refused, accountID, id, Tx.lockAccountsTable, func(ctx context.Context, tx Tx, key *Key) error {
		now := tx.Now()
		key.RevokedAt, key.RevocationReason = &now, reason
		if err := tx.Update(ctx, key, "revoked_at", "revocation_reason"); err != nil {
			return err
		}
		return tx.recordEnd(ctx, actor, Activity{
			AccountID: accountID, Action: ActionKeyRevoked, SubjectID: &id, Label: key.Label, Detail: reason,
		})
	})
}

// Rename gives one of the account's active keys another label, records the activity and returns the
// changed key. The error may be an [*InvalidError] for the field "label", [ErrKeyNotFound] or
// [ErrKeyAlreadyRevoked] with the unchanged key.
func (k *Keys) Rename(ctx context.Context, accountID, id uuid.UUID, label string, actor Actor) (Key, error) {
	label, err := cleanName("label", "Label", label)
	if err != nil {
		return Key{}, err
	}
	return k.change(ctx, accountID, id, Tx.lockAccountsTable, func(ctx context.Context, tx Tx, key *Key) error {
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

// FindReplicated returns one of the account's keys, or [ErrKeyNotFound], after a commit that a
// synchronous standby has too. A plain read may show a revocation that a failover can still undo.
func (k *Keys) FindReplicated(ctx context.Context, accountID, id uuid.UUID) (Key, error) {
	nothing := func(context.Context, Tx, *Key) error { return nil }
	key, err := k.changeUnrevoked(ctx, accountID, id, Tx.lockAccountsTable, nothing)
	if errors.Is(err, ErrKeyAlreadyRevoked) {
		err = nil
	}
	return key, err
}

// lockFunc locks an account for a change of its keys: [Tx.lockAccount], or [Tx.lockAccountsTable]
// if the agents of the account do not matter.
type lockFunc func(Tx, context.Context, uuid.UUID) error

// change locks the account and one of its keys and calls change with the key, unless it is revoked
// or has expired.
func (k *Keys) change(
	ctx context.Context, accountID, id uuid.UUID, lock lockFunc, change func(context.Context, Tx, *Key) error,
) (Key, error) {
	return k.changeUnless(ctx, Tx.expired, accountID, id, lock, change)
}

// changeUnless is change with another rule of when a key has expired.
func (k *Keys) changeUnless(
	ctx context.Context, ended func(Tx, context.Context, Key) (bool, error),
	accountID, id uuid.UUID, lock lockFunc, change func(context.Context, Tx, *Key) error,
) (Key, error) {
	var expired bool
	key, err := k.changeUnrevoked(ctx, accountID, id, lock, func(ctx context.Context, tx Tx, key *Key) (err error) {
		if expired, err = ended(tx, ctx, *key); err != nil || expired {
			return err
		}
		return change(ctx, tx, key)
	})
	if err == nil && expired {
		err = ErrKeyAlreadyRevoked
	}
	return key, err
}

// changeUnrevoked is change for a key that may have expired.
func (k *Keys) changeUnrevoked(
	ctx context.Context, accountID, id uuid.UUID, lock lockFunc, change func(context.Context, Tx, *Key) error,
) (Key, error) {
	var key Key
	var revoked bool
	err := k.db.InTx(ctx, "change API key", func(ctx context.Context, tx Tx) (err error) {
		if err := lock(tx, ctx, accountID); err != nil {
			return err
		}
		if key, err = k.lock(ctx, tx, accountID, id); err != nil {
			return err
		}
		if revoked = key.RevokedAt != nil; revoked {
			// The earlier revocation may have stopped waiting for a synchronous standby, so the
			// commit of this row lock waits until the standby has both.
			return nil
		}
		return change(ctx, tx, &key)
	})
	if err == nil && revoked {
		err = ErrKeyAlreadyRevoked
	}
	return key, err
}
