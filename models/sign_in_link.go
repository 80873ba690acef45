package models

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

const (
	// signInLinkLife is how long a sign-in link can be used.
	signInLinkLife = 5 * time.Minute
	// maxSignInLinks is the maximum number of unused links of a user. A new link ends the
	// oldest one.
	maxSignInLinks = 10
)

// signInLink signs a user in once. A used link is deleted.
type signInLink struct {
	bun.BaseModel `bun:"table:sign_in_links,alias:link"`

	TokenHash []byte `bun:",pk"` // SHA-256 of the token in the link
	UserID    uuid.UUID
	ExpiresAt time.Time
}

// CreateLink records the activity and returns the token of a link that signs one of the account's
// users in once, and when the link expires. The error may be [ErrUserNotFound] or
// [ErrSignInDisabled].
func (s *SignIn) CreateLink(ctx context.Context, accountID, userID uuid.UUID, actor Actor) (token string, expiresAt time.Time, err error) {
	token, expiresAt = newToken(), s.db.Now().Add(signInLinkLife)
	link := signInLink{TokenHash: hashToken(token), UserID: userID, ExpiresAt: expiresAt}
	err = s.db.InTx(ctx, "create sign-in link", func(ctx context.Context, tx Tx) error {
		user, err := findUser(ctx, tx, "u.account_id = ? AND u.id = ? AND u.removed_at IS NULL", accountID, userID)
		if err != nil {
			return err
		}
		if user.Disabled {
			return ErrSignInDisabled
		}
		old := tx.NewSelect().Model((*signInLink)(nil)).Column("token_hash").Where("user_id = ?", userID).
			OrderExpr("expires_at DESC").Offset(maxSignInLinks - 1).Limit(math.MaxInt32)
		if err := tx.Delete(ctx, (*signInLink)(nil), "token_hash IN (?)", old); err != nil {
			return err
		}
		if err := tx.Insert(ctx, &link); err != nil {
			return err
		}
		return tx.Record(ctx, accountID, actor, ActionLinkCreated, userID, user.Email)
	})
	if err != nil {
		return "", time.Time{}, err
	}
	return token, expiresAt, nil
}

// LinkUser returns the user of an unused link. The error may be [ErrLinkInvalid] or
// [ErrSignInDisabled].
func (s *SignIn) LinkUser(ctx context.Context, token string) (User, error) {
	user, err := s.linkUser(ctx, s.db, token)
	return user, failed("find sign-in link", err)
}

func (s *SignIn) linkUser(ctx context.Context, db bun.IDB, token string) (User, error) {
	return findUserByToken(ctx, db, "sign_in_links", token, s.db.Now(), ErrLinkInvalid)
}

// UseLink signs in the user of a link and deletes the link, with the errors of [SignIn.LinkUser].
func (s *SignIn) UseLink(ctx context.Context, token string, client Client) (signedIn SignedIn, err error) {
	err = s.db.InTx(ctx, "use sign-in link", func(ctx context.Context, tx Tx) error {
		user, err := s.linkUser(ctx, tx, token)
		if err != nil {
			return err
		}
		// The session is first, because every transaction locks the account before links
		// and sessions.
		if signedIn, err = s.start(ctx, tx, user, WithLink, client); err != nil {
			return err
		}
		result, err := tx.NewDelete().Model((*signInLink)(nil)).Where("token_hash = ?", hashToken(token)).Exec(ctx)
		return unlessAffected(result, err, ErrLinkInvalid)
	})
	if err != nil {
		return SignedIn{}, err
	}
	return signedIn, nil
}

// findUserByToken returns the user of an unexpired row of a table of hashed tokens. If there is
// none it returns missing, and if the user cannot sign in [ErrSignInDisabled].
func findUserByToken(ctx context.Context, db bun.IDB, table, token string, now time.Time, missing error) (User, error) {
	user, err := findUser(ctx, db, "u.id = (SELECT user_id FROM ? WHERE token_hash = ? AND expires_at > ?)",
		bun.Ident(table), hashToken(token), now)
	switch {
	case errors.Is(err, ErrUserNotFound):
		return User{}, missing
	case err != nil:
		return User{}, err
	case user.Disabled:
		return User{}, ErrSignInDisabled
	}
	return user, nil
}
