package models

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

const (
	// pendingSignInLife is how long the user can take for the second step.
	pendingSignInLife = 10 * time.Minute
	// maxPendingSignIns is the maximum number of pending sign-ins of a user. A new one ends the
	// oldest.
	maxPendingSignIns = 10
)

// pendingSignIn is a sign-in after the first of two steps. It gives access to the second step only.
type pendingSignIn struct {
	bun.BaseModel `bun:"table:pending_sign_ins,alias:pending"`

	TokenHash []byte `bun:",pk"` // SHA-256 of the token in the browser's cookie
	UserID    uuid.UUID
	ExpiresAt time.Time
}

// createPendingSignIn stores a sign-in whose second step is due, and returns its token. Like
// createSession, it checks that the user may still sign in.
func createPendingSignIn(ctx context.Context, tx Tx, user User) (token string, err error) {
	if err := tx.lockEnabledAccount(ctx, user.AccountID); err != nil {
		return "", err
	}
	if err := tx.lockPassword(ctx, user); err != nil {
		return "", err
	}
	old := tx.NewSelect().Model((*pendingSignIn)(nil)).Column("token_hash").Where("user_id = ?", user.ID).
		OrderExpr("expires_at DESC").Offset(maxPendingSignIns - 1).Limit(math.MaxInt32)
	if err := tx.Delete(ctx, (*pendingSignIn)(nil), "token_hash IN (?)", old); err != nil {
		return "", err
	}
	token = newToken()
	pending := pendingSignIn{TokenHash: hashToken(token), UserID: user.ID, ExpiresAt: tx.Now().Add(pendingSignInLife)}
	err = tx.Insert(ctx, &pending)
	return token, err
}

// endPendingSignIns deletes the pending sign-ins of a user.
func endPendingSignIns(ctx context.Context, tx Tx, userID uuid.UUID) error {
	return tx.Delete(ctx, (*pendingSignIn)(nil), "user_id = ?", userID)
}

// PendingUser returns the user of a pending sign-in. The error may be [ErrSignInNotPending],
// [ErrSignInDisabled] or [ErrUnavailable].
func (s *SignIn) PendingUser(ctx context.Context, token string) (User, error) {
	user, err := s.pendingUser(ctx, s.db, token)
	return user, failed("find pending sign-in", err)
}

func (s *SignIn) pendingUser(ctx context.Context, db bun.IDB, token string) (User, error) {
	user, err := findUser(ctx, db, "u.id = (SELECT user_id FROM pending_sign_ins WHERE token_hash = ? AND expires_at > ?)",
		hashToken(token), s.db.Now())
	switch {
	case errors.Is(err, ErrUserNotFound):
		return User{}, ErrSignInNotPending
	case err != nil:
		return User{}, err
	case user.Disabled:
		return User{}, ErrSignInDisabled
	}
	return user, nil
}

// Finish completes a pending sign-in: it checks a code of the authenticator app or a recovery
// code, and starts a session as [SignIn.Start] does. It returns the user and the session token.
//
// The error may be [ErrWrongCode], a [*SignInLimitError] after too many wrong codes for the user
// within a minute or a day, on any instance, [ErrSignInNotPending] if the first step was too long
// ago or the pending sign-in was used, [ErrSignInDisabled] or [ErrUnavailable].
func (s *SignIn) Finish(ctx context.Context, token, code string, client Client) (user User, sessionToken string, err error) {
	if user, err = s.PendingUser(ctx, token); err != nil {
		return User{}, "", err
	}
	err = s.guesses.code(ctx, user.ID, func(ctx context.Context, tx Tx) (right bool, err error) {
		if err := tx.lockEnabledAccount(ctx, user.AccountID); err != nil {
			return false, err
		}
		if err := tx.lockUser(ctx, user.AccountID, user.ID); err != nil {
			return false, err
		}
		// Read again under the lock.
		if user, err = s.pendingUser(ctx, tx, token); err != nil {
			return false, err
		}
		method, err := s.acceptCode(ctx, tx, user, code, client)
		if err != nil || method == "" {
			return false, err
		}
		// The session is first, because every transaction locks the account before links
		// and sessions.
		if sessionToken, err = s.sessions.create(ctx, tx, user, method, client); err != nil {
			return false, err
		}
		result, err := tx.NewDelete().Model((*pendingSignIn)(nil)).Where("token_hash = ?", hashToken(token)).Exec(ctx)
		return true, unlessAffected(result, err, ErrSignInNotPending)
	})
	switch {
	case errors.Is(err, ErrWrongCode):
		s.guesses.recordRefusal(user, visitorActor(client.Address), ActionCodeRefused)
	case errors.Is(err, ErrWrongCredentials):
		err = ErrSignInDisabled
	}
	s.guesses.failures.count(err)
	if err != nil {
		return User{}, "", failed("finish sign-in", err)
	}
	return user, sessionToken, nil
}

// acceptCode accepts a code of the user's authenticator app or a recovery code, once. It returns
// how the user has signed in, or "" for a wrong code.
func (s *SignIn) acceptCode(ctx context.Context, tx Tx, user User, code string, client Client) (SignInMethod, error) {
	code = strings.Join(strings.Fields(code), "")
	if len(code) > totpCode.Digits.Length() {
		used, err := useRecoveryCode(ctx, tx, user.ID, code)
		if err != nil || !used {
			return "", err
		}
		actor := UserActor(user.ID, client.Address)
		return withRecoveryCode, tx.Record(ctx, user.AccountID, actor, ActionRecoveryCodeUsed, user.ID, user.Email)
	}
	app, err := findTOTPApp(ctx, tx, user.ID)
	if err == nil && app.EnabledAt == nil {
		err = ErrTOTPOff
	}
	if errors.Is(err, ErrTOTPOff) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	right, err := s.limitTOTP(ctx, tx, user, app, code, client)
	if err != nil || !right {
		return "", err
	}
	return withCode, nil
}

// code calls try in a transaction while no other code of the user is checked, on any
// instance. It counts a wrong code like a wrong password, commits the changes of try and returns
// [ErrWrongCode]. After too many wrong codes it returns a [*SignInLimitError] without calling try.
func (g *guesses) code(ctx context.Context, userID uuid.UUID, try func(ctx context.Context, tx Tx) (right bool, err error)) error {
	subjects := [][]byte{signInSubject("code", userID.String())}
	right := false
	err := g.db.InTx(ctx, "check a code", func(ctx context.Context, tx Tx) error {
		if err := tx.lockSubjects(ctx, subjects); err != nil {
			return err
		}
		if err := g.check(ctx, tx, subjects); err != nil {
			return err
		}
		var err error
		if right, err = try(ctx, tx); err != nil || right {
			return err
		}
		failure := signInFailure{ID: newID(), Subject: subjects[0], At: tx.Now()}
		return tx.Insert(ctx, &failure)
	})
	if limit, ok := errors.AsType[*SignInLimitError](err); ok {
		limit.Codes = true
	}
	if err == nil && !right {
		return ErrWrongCode
	}
	return err
}
