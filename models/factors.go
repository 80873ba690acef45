package models

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/secret"
)

// Factors are a user's ways to prove an identity besides the password.
type Factors struct {
	AuthenticatorSince *time.Time // when two-step verification was turned on; nil: it is off
	RecoveryCodes      int        // unused ones
	Required           bool       // the account requires an authenticator app or a passkey
}

// Credentials are the ways in which users prove their identities.
type Credentials struct {
	db        *DB
	passwords *passwords
	guesses   *guesses
	sealer    secret.Sealer
}

// Factors returns the factors of a session's user. The error may be [ErrUnavailable].
func (c *Credentials) Factors(ctx context.Context, session Session) (Factors, error) {
	var factors Factors
	err := c.db.NewSelect().Model((*User)(nil)).
		ColumnExpr("(SELECT enabled_at FROM authenticators WHERE user_id = u.id) AS authenticator_since").
		ColumnExpr("(SELECT count(*) FROM recovery_codes WHERE user_id = u.id) AS recovery_codes").
		ColumnExpr("(SELECT second_factor_required FROM accounts WHERE id = u.account_id) AS required").
		Where("u.account_id = ? AND u.id = ?", session.AccountID, session.UserID).Scan(ctx, &factors)
	return factors, failed("find factors", err)
}

// secondStepDue reports whether a user who has entered the password must make a second step. A user
// with passkeys only must sign in with one of them if the account requires a second factor.
func secondStepDue(ctx context.Context, db bun.IDB, userID uuid.UUID) (due bool, err error) {
	err = db.NewSelect().Model((*User)(nil)).
		ColumnExpr("EXISTS (SELECT 1 FROM authenticators WHERE user_id = u.id AND enabled_at IS NOT NULL) OR a.second_factor_required AND "+hasFactor).
		Join("JOIN accounts AS a ON a.id = u.account_id").Where("u.id = ?", userID).Scan(ctx, &due)
	return due, err
}

// ResetSecondFactor removes the factors of the user with this email besides the password, ends the
// user's sessions and records the activity. It is for operators. The error may be
// [ErrUserNotFound] or [ErrUnavailable].
func (c *Credentials) ResetSecondFactor(ctx context.Context, email string) error {
	err := c.db.InTx(ctx, "reset second factor", func(ctx context.Context, tx Tx) error {
		user, err := findUser(ctx, tx, "u.email_hash = ?", hashEmail(email))
		if err != nil {
			return err
		}
		if err := tx.lockUser(ctx, user.AccountID, user.ID); err != nil {
			return err
		}
		if err := deleteFactors(ctx, tx, user.ID); err != nil {
			return err
		}
		if err := endAllSessions(ctx, tx, "id = ?", user.ID); err != nil {
			return err
		}
		return tx.Record(ctx, user.AccountID, Operator(), ActionSecondFactorReset, user.ID, user.Email)
	})
	return err
}

// deleteFactors deletes the factors of a user besides the password.
func deleteFactors(ctx context.Context, tx Tx, userID uuid.UUID) error {
	for _, model := range []any{(*totpApp)(nil), (*recoveryCode)(nil), (*Passkey)(nil)} {
		if err := tx.Delete(ctx, model, "user_id = ?", userID); err != nil {
			return err
		}
	}
	return nil
}
