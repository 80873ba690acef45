package models

import (
	"context"

	"github.com/google/uuid"
)

const (
	// maxRefusedCodes is the number of wrong codes of the authenticator app that a user may
	// have within codeWindow of the first one. After that, no code of the app is checked until
	// the window ends. The limit of each minute alone would allow an attacker with the password
	// 14,400 guesses a day. Recovery codes are too long to guess, so they still work.
	maxRefusedCodes = 100
	codeWindow      = Day
	// warningCodes is the number of wrong codes within the window that warns the user.
	warningCodes = 10
)

// limitTOTP is acceptTOTP with the limit of a day. It counts a wrong code. After too many of them
// it returns a [*SignInLimitError] without checking the code.
func (s *SignIn) limitTOTP(ctx context.Context, tx Tx, user User, app totpApp, code string, client Client) (bool, error) {
	now := tx.Now()
	if app.RefusedSince == nil || now.Sub(*app.RefusedSince) >= codeWindow {
		app.RefusedCodes, app.RefusedSince = 0, &now
	}
	if app.RefusedCodes >= maxRefusedCodes {
		return false, &SignInLimitError{RetryAfter: app.RefusedSince.Add(codeWindow).Sub(now), AppCodes: true}
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
	return false, tx.Record(ctx, user.AccountID, visitorActor(client.Address), ActionCodesRefused, user.ID, user.Email)
}

// forgetRefusedCodes makes a user's app usable again after too many wrong codes. It is for a new
// password that the user has set in a session, or an operator. It is not for a password that was
// set with a link: an attacker who reads the user's emails could then guess without limit.
func forgetRefusedCodes(ctx context.Context, tx Tx, userID uuid.UUID) error {
	_, err := tx.NewUpdate().Model((*totpApp)(nil)).Set("refused_codes = 0, refused_since = NULL").
		Where("user_id = ?", userID).Exec(ctx)
	return err
}
