package people

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

const (
	// maxRefusedCodes is the number of wrong codes of the authenticator app that a user may
	// have within codeWindow of the first one. After that, no code of the app is checked until
	// the window ends. With only the limit of each minute, an attacker with the password would
	// have 14,400 guesses a day. Recovery codes are too long to guess, so they still work.
	maxRefusedCodes = 100
	codeWindow      = value.Day
	// warningCodes is the number of wrong codes within the window that warns the user.
	warningCodes = 10
)

// PendingUser returns the user of a pending sign-in. The error may be [value.ErrSignInNotPending].
func (s *SignIn) PendingUser(ctx context.Context, token string) (User, error) {
	user, err := pendingSignIns.findUser(ctx, s.db, token, s.db.Now())
	return user, value.Failed("find pending sign-in", err)
}

// Finish completes a pending sign-in: it checks a code of the authenticator app or a recovery code,
// and starts a session. If the first step was too long ago or the pending sign-in was used, the
// error is [value.ErrSignInNotPending]. It may also be [value.ErrWrongCode].
func (s *SignIn) Finish(ctx context.Context, token, code string, client Client) (SignedIn, error) {
	user, err := s.PendingUser(ctx, token)
	if err != nil {
		return SignedIn{}, err
	}
	var left *int
	token, err = db.InTx(ctx, s.db, "finish sign-in", func(ctx context.Context, tx db.Tx) (string, error) {
		if err := s.guesses.LockCodes(ctx, tx, user.ID); err != nil {
			return "", err
		}
		if err := lockEnabledAccount(ctx, tx, user.AccountID); err != nil {
			return "", err
		}
		if err := lockUser(ctx, tx, user.AccountID, user.ID); err != nil {
			return "", err
		}
		// Read again under the lock.
		if user, err = pendingSignIns.findUser(ctx, tx, token, tx.Now()); err != nil {
			return "", err
		}
		var method signInMethod
		method, left, err = s.acceptCode(ctx, tx, user, code, client)
		if err != nil {
			return "", err
		}
		if method == "" {
			return "", s.guesses.WrongCode(ctx, tx, user.ID)
		}
		// The session is first, because every transaction locks the account before links
		// and sessions.
		sessionToken, err := s.sessions.create(ctx, tx, user, method, client)
		if err != nil {
			return "", err
		}
		return sessionToken, pendingSignIns.use(ctx, tx, token)
	})
	if errors.Is(err, value.ErrWrongCode) {
		s.guesses.record(user, record.VisitorActor(client.Address), record.ActionCodeRefused)
	}
	err = value.DisabledIfWrong(err)
	s.guesses.refused.count(err)
	if err != nil {
		return SignedIn{}, err
	}
	return SignedIn{User: user, Token: token, RecoveryCodes: left}, nil
}

// acceptCode accepts a code of the user's authenticator app or a recovery code, once, and returns
// how the user has signed in, or "" for a wrong code, and how many recovery codes are left after
// one was used.
func (s *SignIn) acceptCode(ctx context.Context, tx db.Tx, user User, code string, client Client) (method signInMethod, left *int, err error) {
	code = value.ReadCode(code)
	if len(code) > totpCode.Digits.Length() {
		left, err := useRecoveryCode(ctx, tx, user.ID, code)
		if err != nil || left == nil {
			return "", nil, err
		}
		activity := user.activity(record.ActionRecoveryCodeUsed)
		activity.Detail = fmt.Sprintf("%d left", *left)
		return byRecoveryCode, left, record.Add(ctx, tx, record.UserActor(user.ID, client.Address), activity)
	}
	app, err := findEnabledTOTP(ctx, tx, user.ID)
	if err != nil {
		return "", nil, value.Except(err, value.ErrTOTPOff)
	}
	right, err := s.limitTOTP(ctx, tx, user, app, code, client)
	if err != nil || !right {
		return "", nil, err
	}
	return byCode, nil, nil
}

// limitTOTP is acceptTOTP with the limit of a day, for which it counts a wrong code. After too many
// of them it returns a [*value.SignInLimitError] without checking the code.
func (s *SignIn) limitTOTP(ctx context.Context, tx db.Tx, user User, app totpApp, code string, client Client) (bool, error) {
	now := tx.Now()
	if app.RefusedSince == nil || now.Sub(*app.RefusedSince) >= codeWindow {
		app.RefusedCodes, app.RefusedSince = 0, &now
	}
	if app.RefusedCodes >= maxRefusedCodes {
		return false, &value.SignInLimitError{RetryAfter: app.RefusedSince.Add(codeWindow).Sub(now), Codes: true, AppCodes: true}
	}
	right, err := acceptTOTP(ctx, tx, s.sealer, app, code)
	if err != nil || right {
		return right, err
	}
	app.RefusedCodes++
	err = tx.Update(ctx, &app, "refused_codes", "refused_since")
	if err != nil || app.RefusedCodes != warningCodes {
		return false, err
	}
	return false, record.Add(ctx, tx, record.VisitorActor(client.Address), user.activity(record.ActionCodesRefused))
}

// forgetRefusedCodes makes a user's app usable again after too many wrong codes. It is for a new
// password that the user has set in a session, or an operator. After a password was set with a
// link, it must not be called: an attacker who reads the user's emails could then guess without
// limit.
func forgetRefusedCodes(ctx context.Context, tx db.Tx, userID uuid.UUID) error {
	_, err := tx.NewUpdate().Model((*totpApp)(nil)).Set("refused_codes = 0, refused_since = NULL").
		Where("user_id = ?", userID).Exec(ctx)
	return err
}
