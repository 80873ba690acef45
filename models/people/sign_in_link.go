package people

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

const (
	// signInLinkLife is how long a sign-in link can be used.
	signInLinkLife = 5 * time.Minute
	// maxSignInLinks is the maximum number of unused links of a user. A new link ends the
	// oldest one.
	maxSignInLinks = 10
)

// SignInLink is a link that signs a user in once.
type SignInLink struct {
	UserID    uuid.UUID
	Token     string
	ExpiresAt time.Time
}

// CreateLink records the activity and returns a link for one of the account's users.
func (s *SignIn) CreateLink(ctx context.Context, accountID, userID uuid.UUID, actor record.Actor) (SignInLink, error) {
	return db.InTx(ctx, s.db, "create sign-in link", func(ctx context.Context, tx db.Tx) (SignInLink, error) {
		user, err := FindUser(ctx, tx, "u.account_id = ? AND u.id = ? AND u.removed_at IS NULL", accountID, userID)
		if err != nil {
			return SignInLink{}, err
		}
		return s.createLink(ctx, tx, user, actor)
	})
}

// CreateLinkFor is [SignIn.CreateLink] for the user with the email of n, whom it adds to the
// account if nobody has this email, or only a user of another account who has never proved it; see
// freeEmail. The role of a user who exists does not change. CreateLinkFor is for operators.
func (s *SignIn) CreateLinkFor(ctx context.Context, accountID uuid.UUID, n NewUser, actor record.Actor) (SignInLink, error) {
	email, err := value.CleanEmail(n.Email)
	if err != nil {
		return SignInLink{}, err
	}
	if err := checkRole(n.Role); err != nil {
		return SignInLink{}, err
	}
	return db.InTx(ctx, s.db, "create sign-in link", func(ctx context.Context, tx db.Tx) (SignInLink, error) {
		// Two requests for the same new user take turns.
		if err := tx.LockAccount(ctx, accountID); err != nil {
			return SignInLink{}, err
		}
		if _, err := FindAccount(ctx, tx, accountID); err != nil {
			return SignInLink{}, err
		}
		user, err := FindUser(ctx, tx, "u.email_hash = ?", value.StoredHash(email))
		if errors.Is(err, value.ErrUserNotFound) || err == nil && user.AccountID != accountID && user.EmailProvenAt == nil {
			added := User{AccountID: accountID, Email: email, PasswordHash: s.passwords.hasher.Absent(), Role: n.Role}
			if added, err = addUser(ctx, tx, added, actor); err == nil {
				user, err = FindUser(ctx, tx, "u.id = ?", added.ID)
			}
		}
		if err == nil && user.AccountID != accountID {
			err = value.ErrEmailTaken
		}
		if err != nil {
			return SignInLink{}, err
		}
		return s.createLink(ctx, tx, user, actor)
	})
}

// createLink creates a link for a user, who must not be disabled.
func (s *SignIn) createLink(ctx context.Context, tx db.Tx, user User, actor record.Actor) (SignInLink, error) {
	if user.Disabled {
		return SignInLink{}, value.ErrSignInDisabled
	}
	if err := signInLinks.keepNewest(ctx, tx, user.ID, maxSignInLinks-1); err != nil {
		return SignInLink{}, err
	}
	link := SignInLink{UserID: user.ID, ExpiresAt: tx.Now().Add(signInLinkLife)}
	var err error
	if link.Token, err = signInLinks.create(ctx, tx, user.ID, link.ExpiresAt); err != nil {
		return SignInLink{}, err
	}
	return link, record.Add(ctx, tx, actor, user.activity(record.ActionLinkCreated))
}

// LinkUser returns the user of an unused link, or [value.ErrLinkInvalid].
func (s *SignIn) LinkUser(ctx context.Context, token string) (User, error) {
	user, err := signInLinks.findUser(ctx, s.db, token, s.db.Now())
	return user, value.Failed("find sign-in link", err)
}

// UseLink signs in the user of a link and deletes the link.
func (s *SignIn) UseLink(ctx context.Context, token string, client Client) (SignedIn, error) {
	return db.InTx(ctx, s.db, "use sign-in link", func(ctx context.Context, tx db.Tx) (SignedIn, error) {
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
