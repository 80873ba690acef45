package models

import (
	"context"
	"encoding/base32"
	"strings"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

const (
	recoveryCodes      = 10 // of a user
	recoveryCodeBytes  = 15 // random bytes of a code: enough for a plain hash (OWASP ASVS 5.0, 6.5.2)
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
	err = c.db.InTx(ctx, "renew recovery codes", func(ctx context.Context, tx Tx) error {
		if err := tx.lockUser(ctx, session.AccountID, session.UserID); err != nil {
			return err
		}
		if _, err := findEnabledTOTP(ctx, tx, session.UserID); err != nil {
			return err
		}
		if codes, err = replaceRecoveryCodes(ctx, tx, session.UserID); err != nil {
			return err
		}
		return factorChanged(ctx, tx, session, actor, ActionRecoveryCodesRenewed)
	})
	if err != nil {
		return nil, err
	}
	return codes, nil
}

// replaceRecoveryCodes stores new recovery codes of a user and returns them.
func replaceRecoveryCodes(ctx context.Context, tx Tx, userID uuid.UUID) (codes []string, err error) {
	if err := tx.Delete(ctx, (*recoveryCode)(nil), "user_id = ?", userID); err != nil {
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
	result, err := tx.NewDelete().Model((*recoveryCode)(nil)).Where("code_hash = ? AND user_id = ?", hashToken(code), userID).Exec(ctx)
	if err != nil {
		return false, err
	}
	used, err := result.RowsAffected()
	return used == 1, err
}
