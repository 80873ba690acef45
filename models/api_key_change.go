package models

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// RevokeAPIKey revokes one of the account's keys and records the activity. After it returns, no
// instance accepts the key. It returns the revoked key, with [ErrKeyAlreadyRevoked] if the key was
// revoked before. The error may also be [ErrKeyNotFound], or [ErrUnavailable], after which the
// outcome is unknown.
func (s *Store) RevokeAPIKey(ctx context.Context, accountID, id uuid.UUID, actor Actor) (APIKey, error) {
	return s.changeKey(ctx, accountID, id, func(ctx context.Context, tx bun.Tx, key *APIKey) error {
		now := s.clock()
		key.RevokedAt = &now
		if _, err := tx.NewUpdate().Model(key).Column("revoked_at").WherePK().Exec(ctx); err != nil {
			return err
		}
		return s.recordEnd(ctx, tx, accountID, actor, ActionKeyRevoked, id, key.Label)
	})
}

// RenameAPIKey gives one of the account's active keys another label and records the activity. It
// returns the key with its new label. The error may be an [*InvalidError] for the field "label",
// [ErrKeyNotFound], [ErrKeyAlreadyRevoked] with the unchanged key, or [ErrUnavailable].
func (s *Store) RenameAPIKey(ctx context.Context, accountID, id uuid.UUID, label string, actor Actor) (APIKey, error) {
	label, err := cleanName("label", "Label", label)
	if err != nil {
		return APIKey{}, err
	}
	return s.changeKey(ctx, accountID, id, func(ctx context.Context, tx bun.Tx, key *APIKey) error {
		if key.Label == label {
			return nil
		}
		activity := Activity{
			AccountID: accountID, Action: ActionKeyRenamed, SubjectID: &id, Label: label, FormerLabel: key.Label,
		}
		key.Label = label
		if _, err := tx.NewUpdate().Model(key).Column("label").WherePK().Exec(ctx); err != nil {
			return err
		}
		return s.recordActivity(ctx, tx, actor, activity)
	})
}

// ConfirmRevocation returns one of the account's keys after a commit that a synchronous standby
// has too. A plain read may show a revocation that a failover can still undo. The error may be
// [ErrKeyNotFound] or [ErrUnavailable].
func (s *Store) ConfirmRevocation(ctx context.Context, accountID, id uuid.UUID) (APIKey, error) {
	key, err := s.changeKey(ctx, accountID, id, func(context.Context, bun.Tx, *APIKey) error { return nil })
	if errors.Is(err, ErrKeyAlreadyRevoked) {
		err = nil
	}
	return key, err
}

// changeKey locks one of the account's keys and calls change with it, unless the key is revoked.
func (s *Store) changeKey(
	ctx context.Context, accountID, id uuid.UUID, change func(context.Context, bun.Tx, *APIKey) error,
) (APIKey, error) {
	var key APIKey
	var revoked bool
	err := s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) (err error) {
		if err := s.holdAccounts(ctx, tx, accountID); err != nil {
			return err
		}
		if key, err = s.lockKey(ctx, tx, accountID, id); err != nil {
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
		return APIKey{}, err
	case err != nil:
		return APIKey{}, failed("change API key", err)
	case revoked:
		return key, ErrKeyAlreadyRevoked
	}
	return key, nil
}
