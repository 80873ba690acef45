package people

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

// Identity is a person's identity at an OpenID Connect provider. If it is connected to a user of
// the portal, the user can sign in with it. A user has at most one identity of each issuer.
type Identity struct {
	bun.BaseModel `bun:"table:identities,alias:identity"`

	Issuer    string `bun:",pk"`
	Subject   string `bun:",pk"`
	UserID    uuid.UUID
	Email     string // the provider's, when the identity was connected; may be empty
	CreatedAt time.Time

	// The provider's statements about a sign-in.
	EmailVerified bool            `bun:"-"`
	Access        *IdentityAccess `bun:"-"` // nil if its claims are missing or invalid
	// When the user entered credentials; zero: unknown.
	AuthenticatedAt time.Time `bun:"-"`
}

// FindIdentity returns the identity of one of the account's users at the issuer, or
// [value.ErrIdentityNotFound].
func (c *Credentials) FindIdentity(ctx context.Context, accountID, userID uuid.UUID, issuer string) (Identity, error) {
	var identity Identity
	err := c.db.NewSelect().Model(&identity).Where("identity.issuer = ?", issuer).
		Where("identity.user_id = (SELECT id FROM users WHERE account_id = ? AND id = ?)", accountID, userID).Scan(ctx)
	return identity, value.Failed("find identity", value.NoRows(err, value.ErrIdentityNotFound))
}

// WithIdentity signs in the user of an identity. If the identity is not connected, trustEmail is
// set and the provider has verified its email, WithIdentity connects it to the user with this
// email, unless the user has never proved it. The connection ends the password and the sessions of
// the user, and the passkeys and identities that are older than the proof, because another person
// may have set them.
//
// If the identity has no user, the error is [value.ErrIdentityNotFound]. If the user with the email
// has another identity, it is [value.ErrIdentityTaken].
func (s *SignIn) WithIdentity(ctx context.Context, identity Identity, trustEmail bool, client Client) (SignedIn, error) {
	return db.InTx(ctx, s.db, "sign in with an identity", func(ctx context.Context, tx db.Tx) (SignedIn, error) {
		user, connected, err := userOfIdentity(ctx, tx, identity, trustEmail)
		if err := value.RefusedIf(user.Disabled, err, value.ErrSignInDisabled); err != nil {
			return SignedIn{}, err
		}
		if !connected {
			if err := s.endOlder(ctx, tx, &user, record.UserActor(user.ID, client.Address)); err != nil {
				return SignedIn{}, err
			}
		}
		// The sign-in is first, because it locks the account and the user.
		signedIn, err := s.begin(ctx, tx, user, byProvider, client)
		if err != nil {
			return SignedIn{}, err
		}
		if !connected {
			return signedIn, insertIdentity(ctx, tx, user, identity, client.Provider, record.UserActor(user.ID, client.Address))
		}
		// If a disconnection runs at the same time, the second of the two sees the result
		// of the first.
		still, err := isConnected(ctx, tx, identity, user)
		return signedIn, value.RefusedIf(!still, err, value.ErrIdentityNotFound)
	})
}

// KnowsIdentity reports whether the identity is connected to a user. It sets its own deadline.
func (s *SignIn) KnowsIdentity(ctx context.Context, identity Identity) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout)
	defer cancel()
	known, err := s.db.NewSelect().Model((*Identity)(nil)).Where("issuer = ? AND subject = ?", identity.Issuer, identity.Subject).Exists(ctx)
	return known, value.Failed("find identity", err)
}

// endOlder ends what lets others sign in as a user whose email a provider has verified: the
// password, the sessions, the links, and what was set up before the user proved the email.
func (s *SignIn) endOlder(ctx context.Context, tx db.Tx, user *User, actor record.Actor) error {
	if err := value.DisabledIfWrong(lockVerified(ctx, tx, *user)); err != nil {
		return err
	}
	for _, table := range []string{"passkeys", "identities"} {
		_, err := tx.NewDelete().TableExpr(table).Where("user_id = ? AND created_at < ?", user.ID, user.EmailProvenAt).Exec(ctx)
		if err != nil {
			return err
		}
	}
	user.PasswordHash = s.passwords.hasher.Absent()
	user.KnownBrowsers++
	if err := tx.Update(ctx, user, "password_hash", "known_browsers"); err != nil {
		return err
	}
	if err := tx.DeleteOf(ctx, user.ID, tokenTables...); err != nil {
		return err
	}
	return endOtherSessions(ctx, tx, user.AccountID, user.ID, uuid.Nil, actor)
}

// userOfIdentity returns the user who signs in with the identity, and whether it is connected to
// this user already, or [value.ErrIdentityNotFound].
func userOfIdentity(ctx context.Context, tx db.Tx, identity Identity, trustEmail bool) (user User, connected bool, err error) {
	user, err = FindUser(ctx, tx, "u.removed_at IS NULL AND u.id = (SELECT user_id FROM identities WHERE issuer = ? AND subject = ?)",
		identity.Issuer, identity.Subject)
	if !errors.Is(err, value.ErrUserNotFound) {
		return user, err == nil, err
	}
	if trustEmail && identity.EmailVerified && identity.Email != "" {
		user, err = FindUser(ctx, tx, "u.removed_at IS NULL AND u.email_hash = ? AND u.email_proven_at IS NOT NULL", value.StoredHash(identity.Email))
	}
	if errors.Is(err, value.ErrUserNotFound) {
		return User{}, false, value.ErrIdentityNotFound
	}
	return user, false, err
}

// ConnectIdentity connects an identity to the user of a session and records the activity with the
// name of the provider. If they are connected already, it changes nothing. If one of the two is
// connected to another, the error is [value.ErrIdentityTaken].
func (c *Credentials) ConnectIdentity(ctx context.Context, session Session, identity Identity, provider string, actor record.Actor) error {
	return c.db.InTx(ctx, "connect identity", func(ctx context.Context, tx db.Tx) error {
		user, err := lockUserOf(ctx, tx, session)
		if err != nil {
			return err
		}
		if identity.Issuer == c.db.RolesFrom && (identity.Access == nil || identity.Access.AccountID != user.AccountID) {
			return value.ErrNoAccess // the user could not sign in any more
		}
		return insertIdentity(ctx, tx, user, identity, provider, actor)
	})
}

// insertIdentity connects the identity to the user, whose row is locked.
func insertIdentity(ctx context.Context, tx db.Tx, user User, identity Identity, provider string, actor record.Actor) error {
	identity.UserID, identity.CreatedAt = user.ID, tx.Now()
	inserted, err := value.Affected(tx.NewInsert().Model(&identity).On("CONFLICT DO NOTHING").Exec(ctx))
	if err != nil {
		return err
	}
	if inserted == 0 {
		same, err := isConnected(ctx, tx, identity, user)
		return value.RefusedIf(!same, err, value.ErrIdentityTaken)
	}
	return record.Add(ctx, tx, actor, record.Activity{AccountID: user.AccountID, Action: record.ActionIdentityConnected, SubjectID: &user.ID, Label: provider})
}

func isConnected(ctx context.Context, tx db.Tx, identity Identity, user User) (bool, error) {
	return tx.NewSelect().Model((*Identity)(nil)).
		Where("issuer = ? AND subject = ? AND user_id = ?", identity.Issuer, identity.Subject, user.ID).Exists(ctx)
}

// DisconnectIdentity disconnects the identity of the session's user at the issuer, ends the user's
// other sessions, and records the activity with the name of the provider. If there is no such
// identity, it changes nothing. If the user could not sign in any more, the error is
// [value.ErrOnlySignIn].
func (c *Credentials) DisconnectIdentity(ctx context.Context, session Session, issuer, provider string, actor record.Actor) error {
	return c.db.InTx(ctx, "disconnect identity", func(ctx context.Context, tx db.Tx) error {
		user, err := lockUserOf(ctx, tx, session)
		if err != nil {
			return err
		}
		if issuer == c.db.RolesFrom {
			if err := checkOwnSignIn(ctx, c.db, tx, user.ID); err != nil {
				return err
			}
		}
		deleted, err := value.Affected(tx.NewDelete().Model((*Identity)(nil)).Where("user_id = ? AND issuer = ?", user.ID, issuer).Exec(ctx))
		if err != nil || deleted == 0 {
			return err
		}
		if err := c.passwords.checkSignIn(ctx, tx, user.ID); err != nil {
			return err
		}
		err = record.Add(ctx, tx, actor, record.Activity{
			AccountID: user.AccountID, Action: record.ActionIdentityDisconnected, SubjectID: &user.ID, Label: provider,
		})
		if err != nil {
			return err
		}
		return endOtherSessions(ctx, tx, user.AccountID, user.ID, session.ID, actor)
	})
}

// lockUserOf locks the account and the user of a session and returns the user.
func lockUserOf(ctx context.Context, tx db.Tx, session Session) (User, error) {
	if err := lockEnabled(ctx, tx, session.AccountID, session.UserID); err != nil {
		return User{}, err
	}
	return FindUser(ctx, tx, "u.account_id = ? AND u.id = ?", session.AccountID, session.UserID)
}

// IdentityAccess is what an identity provider says about a person's place in the portal, if the
// operator lets it decide about that.
type IdentityAccess struct {
	AccountID uuid.UUID
	Role      Role
}
