package people

import (
	"context"
	"encoding/base32"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/secret"
	"portal/models/value"
)

const (
	// TOTPSetup is how long the user can take to enter the first code.
	TOTPSetup = time.Hour
	// totpSecret is the number of random bytes of a secret (RFC 4226 section 4, R6).
	totpSecret = 20
	totpPeriod = 30 * time.Second
	// totpSkew is how many time steps the clock of a phone may be early or late.
	totpSkew = 1
)

// totpCode describes the codes (RFC 6238). Every authenticator app knows this kind.
var totpCode = hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}

// totpApp is the authenticator app of a user.
type totpApp struct {
	bun.BaseModel `bun:"table:authenticators,alias:authenticator"`

	UserID    uuid.UUID `bun:",pk"`
	Secret    []byte    // sealed
	KeyID     []byte    // of the key that sealed it
	CreatedAt time.Time
	EnabledAt *time.Time // nil until the user has entered the first code
	LastStep  int64      // the time step of the last accepted code

	RefusedCodes int        // wrong codes at sign-in since RefusedSince
	RefusedSince *time.Time // nil: none
}

// StartTOTP returns a new secret for an authenticator app of a session's user, in base 32. The app
// is not used until [Credentials.EnableTOTP] confirms it. The error may be [value.ErrTOTPOn].
func (c *Credentials) StartTOTP(ctx context.Context, session Session) (secret string, err error) {
	text := value.Random(totpSecret)
	sealed, keyID, err := c.sealer.Seal(text, session.UserID[:])
	if err != nil {
		return "", err
	}
	app := totpApp{UserID: session.UserID, Secret: sealed, KeyID: keyID, CreatedAt: c.db.Now()}
	result, err := c.db.NewInsert().Model(&app).On("CONFLICT (user_id) DO UPDATE").
		Set("secret = EXCLUDED.secret, key_id = EXCLUDED.key_id, created_at = EXCLUDED.created_at, last_step = 0").
		Where("authenticator.enabled_at IS NULL").Exec(ctx)
	if err := value.UnlessAffected(result, err, value.ErrTOTPOn); err != nil {
		return "", value.Failed("start two-step verification", err)
	}
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(text), nil
}

// EnableTOTP turns two-step verification on for a session's user, who enters the first code of the
// app. It ends the user's other sessions, records the activity, and returns the recovery codes,
// which are stored as hashes only. If no secret waits for its first code or it is too old, the
// error is [value.ErrTOTPOff]. It may also be [value.ErrTOTPOn] or [value.ErrWrongCode].
func (c *Credentials) EnableTOTP(ctx context.Context, session Session, code string, actor record.Actor) (recovery []string, err error) {
	return db.InTx(ctx, c.db, "enable two-step verification", func(ctx context.Context, tx db.Tx) ([]string, error) {
		if err := c.guesses.LockCodes(ctx, tx, session.UserID); err != nil {
			return nil, err
		}
		if err := lockUser(ctx, tx, session.AccountID, session.UserID); err != nil {
			return nil, err
		}
		app, err := findTOTP(ctx, tx, session.UserID)
		switch {
		case err != nil:
			return nil, err
		case app.EnabledAt != nil:
			return nil, value.ErrTOTPOn
		case tx.Now().Sub(app.CreatedAt) >= TOTPSetup:
			return nil, value.ErrTOTPOff
		}
		right, err := acceptTOTP(ctx, tx, c.sealer, app, value.ReadCode(code))
		if err != nil {
			return nil, err
		}
		if !right {
			return nil, c.guesses.WrongCode(ctx, tx, session.UserID)
		}
		app.EnabledAt = new(tx.Now())
		if err := tx.Update(ctx, &app, "enabled_at"); err != nil {
			return nil, err
		}
		if recovery, err = replaceRecoveryCodes(ctx, tx, session.UserID); err != nil {
			return nil, err
		}
		return recovery, factorChanged(ctx, tx, session, actor, record.ActionTOTPOn)
	})
}

// DisableTOTP turns two-step verification off for a session's user, deletes the recovery codes,
// ends the user's other sessions and records the activity. The error may be [value.ErrTOTPOff] or
// [value.ErrLastFactor].
func (c *Credentials) DisableTOTP(ctx context.Context, session Session, actor record.Actor) error {
	return c.db.InTx(ctx, "disable two-step verification", func(ctx context.Context, tx db.Tx) error {
		if err := tx.LockAccount(ctx, session.AccountID); err != nil {
			return err
		}
		if err := lockUser(ctx, tx, session.AccountID, session.UserID); err != nil {
			return err
		}
		result, err := tx.NewDelete().Model((*totpApp)(nil)).Where("user_id = ? AND enabled_at IS NOT NULL", session.UserID).Exec(ctx)
		if err := value.UnlessAffected(result, err, value.ErrTOTPOff); err != nil {
			return err
		}
		if err := checkFactorLeft(ctx, tx, session.UserID); err != nil {
			return err
		}
		if err := tx.DeleteOf(ctx, session.UserID, "recovery_codes"); err != nil {
			return err
		}
		return factorChanged(ctx, tx, session, actor, record.ActionTOTPOff)
	})
}

// findTOTP returns the app of a user, enabled or not, or [value.ErrTOTPOff].
func findTOTP(ctx context.Context, db bun.IDB, userID uuid.UUID) (totpApp, error) {
	var app totpApp
	err := db.NewSelect().Model(&app).Where("user_id = ?", userID).Scan(ctx)
	return app, value.NoRows(err, value.ErrTOTPOff)
}

// findEnabledTOTP returns the enabled app of a user, or [value.ErrTOTPOff].
func findEnabledTOTP(ctx context.Context, db bun.IDB, userID uuid.UUID) (totpApp, error) {
	app, err := findTOTP(ctx, db, userID)
	if err == nil && app.EnabledAt == nil {
		err = value.ErrTOTPOff
	}
	return app, err
}

// acceptTOTP reports whether a code of the app is right and has not been used, and marks the code
// and all older ones as used. The caller holds the user's lock.
func acceptTOTP(ctx context.Context, tx db.Tx, sealer secret.Sealer, app totpApp, code string) (bool, error) {
	secret, err := sealer.Open(app.Secret, app.KeyID, app.UserID[:])
	if err != nil {
		// The recovery codes still work.
		tx.DB.Logger.ErrorContext(ctx, "cannot decrypt the secret of an authenticator app", slog.String("user_id", app.UserID.String()), slog.Any("error", err))
		return false, nil
	}
	step := matchingStep(secret, code, tx.Now())
	if step <= app.LastStep {
		return false, nil
	}
	_, err = tx.NewUpdate().Model((*totpApp)(nil)).Set("last_step = ?", step).Where("user_id = ?", app.UserID).Exec(ctx)
	return err == nil, err
}

// matchingStep returns the time step of a code, or 0 if the code is wrong, in the same time for
// every code.
func matchingStep(secret []byte, code string, now time.Time) (matching int64) {
	text := base32.StdEncoding.EncodeToString(secret)
	current := now.Unix() / int64(totpPeriod/time.Second)
	for step := current - totpSkew; step <= current+totpSkew; step++ {
		right, err := hotp.ValidateCustom(code, uint64(step), text, totpCode) //nolint:gosec // after 1970
		if err == nil && right {
			matching = step
		}
	}
	return matching
}

// ResealTOTP encrypts the secrets of a previous key with the current one, so that the
// previous one can be dropped.
func (c *Credentials) ResealTOTP(ctx context.Context) error {
	previous := c.sealer.PreviousIDs()
	if len(previous) == 0 {
		return nil
	}
	for {
		var apps []totpApp
		err := c.db.NewSelect().Model(&apps).Where("key_id IN (?)", bun.List(previous)).Limit(value.MaintenanceBatch).Scan(ctx)
		if err != nil {
			return value.Failed("find authenticators of a previous secret", err)
		}
		for _, app := range apps {
			if err := c.reseal(ctx, app); err != nil {
				return value.Failed("encrypt an authenticator with the current secret", err)
			}
		}
		if len(apps) < value.MaintenanceBatch {
			return nil
		}
	}
}

func (c *Credentials) reseal(ctx context.Context, app totpApp) error {
	secret, err := c.sealer.Open(app.Secret, app.KeyID, app.UserID[:])
	if err != nil {
		return err
	}
	sealed, keyID, err := c.sealer.Seal(secret, app.UserID[:])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.db.Timeout)
	defer cancel()
	// A user who has just started again has another secret.
	_, err = c.db.NewUpdate().Model((*totpApp)(nil)).Set("secret = ?, key_id = ?", sealed, keyID).
		Where("user_id = ? AND secret = ?", app.UserID, app.Secret).Exec(ctx)
	return err
}

// RenewRecoveryCodes replaces the recovery codes of a session's user, records the activity and
// returns the new codes, or [value.ErrTOTPOff].
func (c *Credentials) RenewRecoveryCodes(ctx context.Context, session Session, actor record.Actor) (codes []string, err error) {
	return db.InTx(ctx, c.db, "renew recovery codes", func(ctx context.Context, tx db.Tx) ([]string, error) {
		if err := lockUser(ctx, tx, session.AccountID, session.UserID); err != nil {
			return nil, err
		}
		if _, err := findEnabledTOTP(ctx, tx, session.UserID); err != nil {
			return nil, err
		}
		codes, err := replaceRecoveryCodes(ctx, tx, session.UserID)
		if err != nil {
			return nil, err
		}
		return codes, factorChanged(ctx, tx, session, actor, record.ActionRecoveryCodesRenewed)
	})
}
