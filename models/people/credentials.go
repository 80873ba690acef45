package people

import (
	"context"
	"encoding/base32"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/secret"
	"portal/models/value"
)

// Factors are a user's ways to prove an identity besides the password.
type Factors struct {
	AuthenticatorSince *time.Time // when two-step verification was turned on; nil: it is off
	RecoveryCodes      int        // unused ones
	Required           bool       // the account requires an authenticator app or a passkey
	HasAny             bool       // the user has one of the two, or signs in with the provider alone
}

// Credentials are the ways in which users prove their identities.
type Credentials struct {
	db        *db.DB
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
		ColumnExpr(hasFactor+" OR ? AS has_any", decidedByProvider(c.db)).
		Where("u.account_id = ? AND u.id = ?", session.AccountID, session.UserID).Scan(ctx, &factors)
	return factors, value.Failed("find factors", err)
}

// ResetSecondFactor removes the factors of one of the account's users besides the password, ends
// the user's sessions and records the activity. It is for operators.
func (c *Credentials) ResetSecondFactor(ctx context.Context, accountID, userID uuid.UUID) error {
	return c.db.InTx(ctx, "reset second factor", func(ctx context.Context, tx db.Tx) error {
		user, err := FindUser(ctx, tx, "u.account_id = ? AND u.id = ? AND u.removed_at IS NULL", accountID, userID)
		if err != nil {
			return err
		}
		if err := lockUser(ctx, tx, user.AccountID, user.ID); err != nil {
			return err
		}
		if err := tx.DeleteOf(ctx, user.ID, factorTables...); err != nil {
			return err
		}
		if err := endAllSessions(ctx, tx, "id = ?", user.ID); err != nil {
			return err
		}
		return record.Add(ctx, tx, record.Operator(), user.activity(record.ActionSecondFactorReset))
	})
}

// factorTables have the factors of users besides the password.
var factorTables = []string{"authenticators", "recovery_codes", "passkeys"}

// authorizeChange returns the user of a session who may change the password or the email. If the
// new one is invalid, it returns that error, joined with the one for a wrong password. In its
// transaction, the caller must check that the user's hash is still the same.
func (c *Credentials) authorizeChange(ctx context.Context, session Session, password string, invalid error, actor record.Actor) (User, error) {
	user, err := c.authorize(ctx, session, password, actor)
	switch {
	case errors.Is(err, value.ErrWrongCredentials):
		return User{}, errors.Join(err, invalid)
	case err != nil:
		return User{}, err
	}
	return user, invalid
}

// authorize returns the user of a session if the password is right or, for a user without one to
// use, if the sign-in is fresh.
func (c *Credentials) authorize(ctx context.Context, session Session, password string, actor record.Actor) (User, error) {
	if !session.NoPassword {
		return c.passwords.verifyCurrent(ctx, session, password, actor)
	}
	if !session.Fresh(c.db.Now()) {
		return User{}, value.ErrSignInTooOld
	}
	ctx, cancel := context.WithTimeout(ctx, c.db.Timeout)
	defer cancel()
	user, err := FindUser(ctx, c.db, "u.account_id = ? AND u.id = ?", session.AccountID, session.UserID)
	if err != nil {
		return User{}, value.Failed("find user", err)
	}
	// A concurrent request may have set a password.
	if c.passwords.has(user) && !session.ByProvider {
		return User{}, value.ErrWrongCredentials
	}
	return user, nil
}

// checkFactorLeft returns [value.ErrLastFactor] if the account requires a second factor and the
// user, who does not sign in with the provider alone, has none any more. The caller holds the
// account's lock, so that no owner requires one at the same time.
func checkFactorLeft(ctx context.Context, tx db.Tx, userID uuid.UUID) error {
	due, err := tx.NewSelect().Model((*User)(nil)).Where("u.id = ?", userID).
		Where("(SELECT second_factor_required FROM accounts WHERE id = u.account_id)").
		Where("NOT "+hasFactor+" AND NOT ?", decidedByProvider(tx.DB)).Exists(ctx)
	return value.RefusedIf(due, err, value.ErrLastFactor)
}

// factorChanged records a change of the factors of a session's user and ends the user's other
// sessions (OWASP ASVS 5.0, 7.4.3).
func factorChanged(ctx context.Context, tx db.Tx, session Session, actor record.Actor, action record.Action) error {
	err := record.Add(ctx, tx, actor, record.Activity{AccountID: session.AccountID, Action: action, SubjectID: &session.UserID, Label: session.Email})
	if err != nil {
		return err
	}
	if err := tx.DeleteOf(ctx, session.UserID, pendingSignIns.table); err != nil {
		return err
	}
	return endOtherSessions(ctx, tx, session.AccountID, session.UserID, session.ID, actor)
}

const (
	recoveryCodes = 10 // of a user
	// Random bytes of a code: enough for a plain hash (OWASP ASVS 5.0, 6.5.2).
	recoveryCodeBytes  = 15
	recoveryCodeLength = 24 // characters without the hyphens
)

// recoveryAlphabet has no letters that look like digits (Crockford's base 32).
var recoveryAlphabet = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// recoveryCode replaces a code of the authenticator app once. A used code is deleted.
type recoveryCode struct {
	bun.BaseModel `bun:"table:recovery_codes,alias:recovery_code"`

	CodeHash []byte `bun:",pk"` // SHA-256 of the code without hyphens
	UserID   uuid.UUID
}

// replaceRecoveryCodes stores new recovery codes of a user and returns them.
func replaceRecoveryCodes(ctx context.Context, tx db.Tx, userID uuid.UUID) (codes []string, err error) {
	if err := tx.DeleteOf(ctx, userID, "recovery_codes"); err != nil {
		return nil, err
	}
	rows := make([]recoveryCode, recoveryCodes)
	for i := range rows {
		code := recoveryAlphabet.EncodeToString(value.Random(recoveryCodeBytes))
		rows[i] = recoveryCode{CodeHash: value.HashToken(code), UserID: userID}
		codes = append(codes, strings.Join([]string{code[:6], code[6:12], code[12:18], code[18:]}, "-"))
	}
	err = tx.Insert(ctx, &rows)
	return codes, err
}

// recoveryReader maps letters that look like digits to the characters of a recovery code.
var recoveryReader = strings.NewReplacer("o", "0", "i", "1", "l", "1")

// useRecoveryCode deletes the recovery code of a user and returns how many are left, or nil if the
// user does not have it.
func useRecoveryCode(ctx context.Context, tx db.Tx, userID uuid.UUID, code string) (*int, error) {
	code = recoveryReader.Replace(strings.ToLower(code))
	if len(code) != recoveryCodeLength {
		return nil, nil
	}
	used, err := value.Affected(tx.NewDelete().Model((*recoveryCode)(nil)).
		Where("code_hash = ? AND user_id = ?", value.HashToken(code), userID).Exec(ctx))
	if err != nil || used == 0 {
		return nil, err
	}
	left, err := tx.NewSelect().Model((*recoveryCode)(nil)).Where("user_id = ?", userID).Count(ctx)
	return new(int(left)), err
}
