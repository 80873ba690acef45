package models

import (
	"context"

	"github.com/google/uuid"
)

// hasFactor is a condition on the user u: the user has an authenticator app or a passkey.
const hasFactor = `(EXISTS (SELECT 1 FROM authenticators WHERE user_id = u.id AND enabled_at IS NOT NULL)
	OR EXISTS (SELECT 1 FROM passkeys WHERE user_id = u.id))`

// RequireSecondFactor sets whether every user of the account needs an authenticator app or a
// passkey. It records the activity unless nothing changes. The error may be [ErrNotOwner] or
// [ErrUnavailable].
func (a *Accounts) RequireSecondFactor(ctx context.Context, accountID uuid.UUID, required bool, actor Actor) error {
	err := a.db.InTx(ctx, "require second factor", func(ctx context.Context, tx Tx) error {
		if err := tx.lockAccount(ctx, accountID); err != nil {
			return err
		}
		if err := checkOwner(ctx, tx, accountID, actor); err != nil {
			return err
		}
		result, err := tx.NewUpdate().Model((*Account)(nil)).Set("second_factor_required = ?", required).
			Where("id = ? AND second_factor_required <> ?", accountID, required).Exec(ctx)
		if err != nil {
			return err
		}
		if changed, err := result.RowsAffected(); err != nil || changed == 0 {
			return err
		}
		action := ActionSecondFactorRequired
		if !required {
			action = ActionSecondFactorOptional
		}
		return tx.Record(ctx, accountID, actor, action, accountID, "")
	})
	return err
}
