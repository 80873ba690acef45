package models

import (
	"context"
)

// AcceptWithIdentity adds the person with the invitation's token to the account, without a password
// and with an identity, and signs the new user in as [SignIn.Start] does. It deletes the invitation
// and records the activity. The invitation's email need not be the identity's.
//
// It returns [ErrIdentityTaken] if the identity has a user. The other errors are those of
// [Invitations.Find], and [ErrEmailTaken] if the person has become a user in the meantime.
func (i *Invitations) AcceptWithIdentity(ctx context.Context, token string, identity Identity, client Client) (user User, sessionToken string, pending bool, err error) {
	err = i.db.InTx(ctx, "join with an identity", func(ctx context.Context, tx Tx) error {
		user, sessionToken, pending, err = i.accept(ctx, tx, token, i.passwords.hasher.Absent(), client)
		if err != nil {
			return err
		}
		return connectIdentity(ctx, tx, user, identity, client.Provider, UserActor(user.ID, client.Address))
	})
	if err != nil {
		return User{}, "", false, err
	}
	return user, sessionToken, pending, nil
}
