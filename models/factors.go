package models

import (
	"context"
	"encoding/base32"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"

	"portal/models/password"
	"portal/models/secret"
)

// Factors are a user's ways to prove an identity besides the password.
type Factors struct {
	AuthenticatorSince *time.Time // when two-step verification was turned on; nil: it is off
	RecoveryCodes      int        // unused ones
	Required           bool       // the account requires an authenticator app or a passkey
	HasAny             bool       // the user has one of the two
}

// hasFactor is a condition on the user u: the user has an authenticator app or a passkey.
const hasFactor = `(EXISTS (SELECT 1 FROM authenticators WHERE user_id = u.id AND enabled_at IS NOT NULL)
	OR EXISTS (SELECT 1 FROM passkeys WHERE user_id = u.id))`

// Credentials are the ways in which users prove their identities.
type Credentials struct {
	db        *DB
	passwords *passwords
	guesses   *guesses
	sealer    secret.Sealer
}

// Factors returns the factors of a session's user.
func (c *Credentials) Factors(ctx context.Context, session Session) (Factors, error) {
	var factors Factors
	err := c.db.NewSelect().Model((*User)(nil)).
		ColumnExpr("(SELECT enabled_at FROM authenticators WHERE user_id = u.id) AS authenticator_since").
		ColumnExpr("(SELECT count(*) FROM recovery_codes WHERE user_id = u.id) AS recovery_codes").
		ColumnExpr("(SELECT second_factor_required FROM accounts WHERE id = u.account_id) AS required").
		ColumnExpr(hasFactor+" AS has_any").
		Where("u.account_id = ? AND u.id = ?", session.AccountID, session.UserID).Scan(ctx, &factors)
	return factors, failed("find factors", err)
}

// ResetSecondFactor removes the factors of the user with this email besides the password, ends the
// user's sessions and records the activity. It is for operators. If there is no such user, the
// error is [ErrUserNotFound].
func (c *Credentials) ResetSecondFactor(ctx context.Context, email string) error {
	return c.db.InTx(ctx, "reset second factor", func(ctx context.Context, tx Tx) error {
		user, err := findUser(ctx, tx, "u.email_hash = ?", hashEmail(email))
		if err != nil {
			return err
		}
		if err := tx.lockUser(ctx, user.AccountID, user.ID); err != nil {
			return err
		}
		if err := tx.deleteOf(ctx, user.ID, factorTables...); err != nil {
			return err
		}
		if err := endAllSessions(ctx, tx, "id = ?", user.ID); err != nil {
			return err
		}
		return tx.Record(ctx, user.AccountID, Operator(), ActionSecondFactorReset, user.ID, user.Email)
	})
}

// factorTables have the factors of users besides the password.
var factorTables = []string{"authenticators", "recovery_codes", "passkeys"}

// canSignIn is a condition on the user u: the user can sign in without an operator, with a
// password, an identity or a passkey.
func (p *passwords) canSignIn() schema.QueryWithArgs {
	return bun.SafeQuery(`(u.disabled_at IS NULL AND (? AND u.password_hash NOT LIKE ?
		OR EXISTS (SELECT 1 FROM identities WHERE user_id = u.id) OR EXISTS (SELECT 1 FROM passkeys WHERE user_id = u.id)))`,
		!p.off, "%"+password.AbsentEnd)
}

// checkSignIn returns [ErrOnlySignIn] unless the user can sign in without an operator.
func (p *passwords) checkSignIn(ctx context.Context, db bun.IDB, userID uuid.UUID) error {
	can, err := db.NewSelect().Model((*User)(nil)).Where("u.id = ?", userID).Where("?", p.canSignIn()).Exists(ctx)
	if err == nil && !can {
		return ErrOnlySignIn
	}
	return err
}

const (
	recoveryCodes = 10 // of a user
	// Random bytes of a code: enough for a plain hash (OWASP ASVS 5.0, 6.5.2).
	recoveryCodeBytes  = 15
	recoveryCodeLength = 24 // characters without the hyphens
	recoveryCodeGroup  = 6  // characters between two hyphens
)

// recoveryAlphabet has no letters that look like digits (Crockford's base 32).
var recoveryAlphabet = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// recoveryCode replaces a code of the authenticator app once. A used code is deleted.
type recoveryCode struct {
	bun.BaseModel `bun:"table:recovery_codes,alias:recovery_code"`

	CodeHash []byte `bun:",pk"` // SHA-256 of the code without hyphens
	UserID   uuid.UUID
}

// RenewRecoveryCodes replaces the recovery codes of a session's user, records the activity and
// returns the new codes, or [ErrTOTPOff].
func (c *Credentials) RenewRecoveryCodes(ctx context.Context, session Session, actor Actor) (codes []string, err error) {
	return inTx(ctx, c.db, "renew recovery codes", func(ctx context.Context, tx Tx) ([]string, error) {
		if err := tx.lockUser(ctx, session.AccountID, session.UserID); err != nil {
			return nil, err
		}
		if _, err := findEnabledTOTP(ctx, tx, session.UserID); err != nil {
			return nil, err
		}
		codes, err := replaceRecoveryCodes(ctx, tx, session.UserID)
		if err != nil {
			return nil, err
		}
		return codes, factorChanged(ctx, tx, session, actor, ActionRecoveryCodesRenewed)
	})
}

// replaceRecoveryCodes stores new recovery codes of a user and returns them.
func replaceRecoveryCodes(ctx context.Context, tx Tx, userID uuid.UUID) (codes []string, err error) {
	if err := tx.deleteOf(ctx, userID, "recovery_codes"); err != nil {
		return nil, err
	}
	rows := make([]recoveryCode, recoveryCodes)
	for i := range rows {
		code := recoveryAlphabet.EncodeToString(random(recoveryCodeBytes))
		rows[i] = recoveryCode{CodeHash: hashToken(code), UserID: userID}
		var groups []string
		for start := 0; start < len(code); start += recoveryCodeGroup {
			groups = append(groups, code[start:start+recoveryCodeGroup])
		}
		codes = append(codes, strings.Join(groups, "-"))
	}
	err = tx.Insert(ctx, &rows)
	return codes, err
}

// recoveryReader maps what users type to the characters of a recovery code.
var recoveryReader = strings.NewReplacer("-", "", " ", "", "o", "0", "i", "1", "l", "1")

// useRecoveryCode deletes the recovery code of a user, and reports whether the user had it.
func useRecoveryCode(ctx context.Context, tx Tx, userID uuid.UUID, code string) (bool, error) {
	code = recoveryReader.Replace(strings.ToLower(code))
	if len(code) != recoveryCodeLength {
		return false, nil
	}
	used, err := affected(tx.NewDelete().Model((*recoveryCode)(nil)).
		Where("code_hash = ? AND user_id = ?", hashToken(code), userID).Exec(ctx))
	return used == 1, err
}
