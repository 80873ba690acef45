package models

import (
	"context"
	"errors"

	"github.com/google/uuid"
)

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
// [ErrKeyNotFound], [ErrKeyAlreadyRevoked] with the unchanged key, or [ErrUnavailable].
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

// FindReplicated returns one of the account's keys after a commit that a synchronous standby
// has too. A plain read may show a revocation that a failover can still undo. The error may be
// [ErrKeyNotFound] or [ErrUnavailable].
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
	switch {
	case errors.Is(err, ErrKeyNotFound):
		return Key{}, err
	case err != nil:
		return Key{}, err
	case revoked:
		return key, ErrKeyAlreadyRevoked
	}
	return key, nil
}
