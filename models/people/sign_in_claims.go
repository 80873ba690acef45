package people

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

// WithClaims signs in the user of an identity, whose provider decides about accounts and roles. If
// the identity has no user and its email is verified, WithClaims adds one; see freeEmail. It gives
// the user the role of the claims, but the last owner stays an owner, which the activity says.
//
// If the claims are missing or invalid, or name another account than the user's, nothing changes
// and the error is [value.ErrNoAccess]. If another user has the email, it is
// [value.ErrIdentityNotFound], unless trustEmail is set, as in [SignIn.WithIdentity].
func (s *SignIn) WithClaims(ctx context.Context, identity Identity, trustEmail bool, client Client) (SignedIn, error) {
	access := identity.Access
	if access == nil || checkRole(access.Role) != nil {
		return SignedIn{}, value.ErrNoAccess
	}
	return db.InTx(ctx, s.db, "sign in with claims", func(ctx context.Context, tx db.Tx) (SignedIn, error) {
		// First sign-ins of a person at the same time take turns.
		if err := tx.LockAccount(ctx, access.AccountID); err != nil {
			return SignedIn{}, err
		}
		user, connected, err := s.userOfClaims(ctx, tx, identity, trustEmail)
		if err != nil {
			return SignedIn{}, err
		}
		if !connected {
			if err := s.endOlder(ctx, tx, &user, record.UserActor(user.ID, client.Address)); err != nil {
				return SignedIn{}, err
			}
		}
		if err := s.applyRole(ctx, tx, &user, access.Role); err != nil {
			return SignedIn{}, err
		}
		signedIn, err := s.begin(ctx, tx, user, byProvider, client)
		if err != nil || connected {
			return signedIn, err
		}
		return signedIn, insertIdentity(ctx, tx, user, identity, client.Provider, record.UserActor(user.ID, client.Address))
	})
}

// userOfClaims returns the user of an identity, whom it adds if there is none, and whether they
// were connected before.
func (s *SignIn) userOfClaims(ctx context.Context, tx db.Tx, identity Identity, trustEmail bool) (user User, connected bool, err error) {
	account, err := FindAccount(ctx, tx, identity.Access.AccountID)
	if errors.Is(err, value.ErrAccountNotFound) {
		err = value.ErrNoAccess
	}
	if err != nil {
		return User{}, false, err
	}
	user, connected, err = userOfIdentity(ctx, tx, identity, trustEmail)
	switch {
	case errors.Is(err, value.ErrIdentityNotFound):
		user, err = s.addClaimed(ctx, tx, account, identity)
	case err == nil && user.AccountID != account.ID:
		err = value.ErrNoAccess
	}
	if err == nil && (user.Disabled || account.DisabledAt != nil) {
		err = value.ErrSignInDisabled
	}
	return user, connected, err
}

// addClaimed adds the user of an identity that has none.
func (s *SignIn) addClaimed(ctx context.Context, tx db.Tx, account Account, identity Identity) (User, error) {
	email, err := value.CleanEmail(identity.Email)
	if err != nil || !identity.EmailVerified {
		return User{}, value.ErrNoAccess
	}
	if account.DisabledAt != nil {
		return User{}, value.ErrSignInDisabled
	}
	added := User{AccountID: account.ID, Email: email, PasswordHash: s.passwords.hasher.Absent(), Role: identity.Access.Role}
	user, err := addUser(ctx, tx, added, record.System)
	if errors.Is(err, value.ErrEmailTaken) {
		err = value.ErrIdentityNotFound
	}
	return user, err
}

// applyRole gives the user a role, unless the account would have no owner then.
func (s *SignIn) applyRole(ctx context.Context, tx db.Tx, user *User, role Role) error {
	changed, err := s.people.setRole(ctx, tx, *user, role, record.System)
	if errors.Is(err, value.ErrLastOwner) {
		return record.Add(ctx, tx, record.System, user.activity(record.ActionRoleKept))
	}
	if err == nil {
		*user = changed
	}
	return err
}

// RolesFromProvider returns those of the account's users whose role the identity provider decides.
func (p *People) RolesFromProvider(ctx context.Context, accountID uuid.UUID) ([]uuid.UUID, error) {
	var ids []uuid.UUID
	if p.db.RolesFrom == "" {
		return nil, nil
	}
	err := p.db.NewSelect().Model((*User)(nil)).Column("u.id").Where("u.account_id = ?", accountID).
		Where("?", decidedByProvider(p.db)).Scan(ctx, &ids)
	return ids, value.Failed("list the users with a role of the provider", err)
}
