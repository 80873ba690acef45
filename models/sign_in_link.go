package models

import (
	"context"
	"time"

	"github.com/google/uuid"
)

const (
	// signInLinkLife is how long a sign-in link can be used.
	signInLinkLife = 5 * time.Minute
	// maxSignInLinks is the maximum number of unused links of a user. A new link ends the
	// oldest one.
	maxSignInLinks = 10
)

// CreateLink records the activity and returns the token of a link that signs one of the account's
// users in once, and when the link expires. The error may be [ErrUserNotFound] or
// [ErrSignInDisabled].
func (s *SignIn) CreateLink(ctx context.Context, accountID, userID uuid.UUID, actor Actor) (token string, expiresAt time.Time, err error) {
	expiresAt = s.db.Now().Add(signInLinkLife)
	err = s.db.InTx(ctx, "create sign-in link", func(ctx context.Context, tx Tx) error {
		user, err := findUser(ctx, tx, "u.account_id = ? AND u.id = ? AND u.removed_at IS NULL", accountID, userID)
		if err != nil {
			return err
		}
		if user.Disabled {
			return ErrSignInDisabled
		}
		if err := signInLinks.keepNewest(ctx, tx, userID, maxSignInLinks-1); err != nil {
			return err
		}
		if token, err = signInLinks.create(ctx, tx, userID, expiresAt); err != nil {
			return err
		}
		return tx.Record(ctx, actor, user.activity(ActionLinkCreated))
	})
	if err != nil {
		return "", time.Time{}, err
	}
	return token, expiresAt, nil
}

// LinkUser returns the user of an unused link. The error may be [ErrLinkInvalid] or
// [ErrSignInDisabled].
func (s *SignIn) LinkUser(ctx context.Context, token string) (User, error) {
	user, err := signInLinks.findUser(ctx, s.db, token, s.db.Now())
	return user, failed("find sign-in link", err)
}

// UseLink signs in the user of a link and deletes the link, with the errors of [SignIn.LinkUser].
func (s *SignIn) UseLink(ctx context.Context, token string, client Client) (SignedIn, error) {
	return inTx(ctx, s.db, "use sign-in link", func(ctx context.Context, tx Tx) (SignedIn, error) {
		user, err := signInLinks.findUser(ctx, tx, token, tx.Now())
		if err != nil {
			return SignedIn{}, err
		}
		// The session is first, because every transaction locks the account before links
		// and sessions.
		signedIn, err := s.begin(ctx, tx, user, byLink, client)
		if err != nil {
			return SignedIn{}, err
		}
		return signedIn, signInLinks.use(ctx, tx, token)
	})
}
