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

// CheckNote returns an [*InvalidError] for the field "note" unless a key can have this note.
func CheckNote(note string) error {
	_, err := cleanNote("note", "Note", note)
	return err
}

// CheckLabel returns an [*InvalidError] for the field "label" unless a key can have this label.
func CheckLabel(label string) error {
	_, err := cleanName("label", "Label", label)
	return err
}

// Generate creates a key, records the activity, and returns the key and its secret, which is stored
// nowhere and cannot be read again.
//
// The error may be an [*InvalidError] for the field "label", "expires", "agents", "networks" or
// "note", or several joined, a [*RepeatedFormError], [ErrKeyLimit] or, for the key to replace,
// [ErrKeyNotFound] or [ErrKeyAlreadyRevoked].
func (k *Keys) Generate(ctx context.Context, accountID uuid.UUID, n NewKey, actor Actor) (Key, string, error) {
	label, invalidLabel := cleanName("label", "Label", n.Label)
	note, invalidNote := cleanNote("note", "Note", n.Note)
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
	err := k.db.InTx(ctx, "generate API key", func(ctx context.Context, tx Tx) error {
		if err := tx.lockAccount(ctx, accountID); err != nil {
			return err
		}
		if err := k.checkNew(ctx, tx, n, accountID); err != nil {
			return err
		}
		if err := errors.Join(invalidLabel, invalidNote, k.restrictNew(ctx, tx, n, &key)); err != nil {
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
	if ended, err := tx.hasEnded(ctx, replaced); err != nil || ended {
		return cmp.Or(err, ErrKeyAlreadyRevoked)
	}
	key.Agents, key.Networks, key.Note = replaced.Agents, replaced.Networks, replaced.Note
	if key.ExpiresAt = k.RenewedExpiry(replaced, key.CreatedAt); key.ExpiresAt != nil {
		key.Lifetime = key.ExpiresAt.Sub(key.CreatedAt)
	}
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

// Revoke revokes one of the account's keys for a reason of at most 500 characters, which may be
// empty, and records the activity. After it returns, no instance accepts the key. If the key was
// revoked before or has expired, it returns the unchanged key with [ErrKeyAlreadyRevoked]. The
// error may also be an [*InvalidError] for the field "reason", [ErrKeyNotFound], or
// [ErrUnavailable], after which the outcome is unknown.
func (k *Keys) Revoke(ctx context.Context, accountID, id uuid.UUID, reason string, actor Actor) (Key, error) {
	reason, err := cleanNote("reason", "Reason", reason)
	if err != nil {
		return Key{}, err
	}
	return k.change(ctx, accountID, id, Tx.lockAccountsTable, Tx.refuses, func(ctx context.Context, tx Tx, key *Key) error {
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
	return k.change(ctx, accountID, id, Tx.lockAccountsTable, Tx.hasEnded, func(ctx context.Context, tx Tx, key *Key) error {
		if key.Label == label {
			return nil
		}
		former := key.Label
		key.Label = label
		if err := tx.Update(ctx, key, "label"); err != nil {
			return err
		}
		return tx.recordRename(ctx, accountID, actor, ActionKeyRenamed, id, label, former)
	})
}

// FindDurable returns one of the account's keys, or [ErrKeyNotFound], in a state that no failover
// can undo. A plain read may show a revocation that a synchronous standby does not have yet.
func (k *Keys) FindDurable(ctx context.Context, accountID, id uuid.UUID) (Key, error) {
	return inTx(ctx, k.db, "find API key", func(ctx context.Context, tx Tx) (Key, error) {
		if err := tx.lockAccountsTable(ctx, accountID); err != nil {
			return Key{}, err
		}
		return k.lock(ctx, tx, accountID, id)
	})
}

// change locks the account and one of its keys and calls change with the key. If the key has
// ended, change returns it unchanged with [ErrKeyAlreadyRevoked].
//
// The lock is [Tx.lockAccount], or [Tx.lockAccountsTable] if the agents of the account do not
// matter. The rule of when a key has ended is [Tx.hasEnded] or [Tx.refuses].
func (k *Keys) change(
	ctx context.Context, accountID, id uuid.UUID, lock func(Tx, context.Context, uuid.UUID) error,
	hasEnded func(Tx, context.Context, Key) (bool, error), change func(context.Context, Tx, *Key) error,
) (Key, error) {
	var key Key
	var ended bool
	err := k.db.InTx(ctx, "change API key", func(ctx context.Context, tx Tx) (err error) {
		if err := lock(tx, ctx, accountID); err != nil {
			return err
		}
		if key, err = k.lock(ctx, tx, accountID, id); err != nil {
			return err
		}
		if ended, err = hasEnded(tx, ctx, key); err != nil || ended {
			// An earlier revocation may have stopped waiting for a synchronous standby,
			// so the commit of this row lock waits until the standby has both.
			return err
		}
		return change(ctx, tx, &key)
	})
	if err == nil && ended {
		err = ErrKeyAlreadyRevoked
	}
	return key, err
}
