package models

import (
	"context"

	"github.com/uptrace/bun"
)

// JoinWithIdentity adds the person with the invitation's token to the account, without a password
// and with an identity, and signs the new user in as [Store.SignIn] does. It deletes the invitation
// and records the activity. The invitation's email need not be the identity's.
//
// It returns [ErrIdentityTaken] if the identity has a user. The other errors are those of
// [Store.Invitation], and [ErrEmailTaken] if the person has become a user in the meantime.
func (s *Store) JoinWithIdentity(ctx context.Context, token string, identity Identity, client Client) (user User, sessionToken string, pending bool, err error) {
	err = s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		user, sessionToken, pending, err = s.acceptInvitation(ctx, tx, token, s.passwords.Absent(), client)
		if err != nil {
			return err
		}
		return s.connectIdentity(ctx, tx, user, identity, client.Provider, UserActor(user.ID, client.Address))
	})
	if err != nil {
		return User{}, "", false, failed("join with an identity", err)
	}
	return user, sessionToken, pending, nil
}
