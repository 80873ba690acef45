package models

import (
	"context"
	"errors"
)

// Accept adds the person with the invitation's token to the account, with a password, deletes the
// invitation, records the activity, and signs the new user in. Accept sets its own deadlines.
//
// If the password breaks a rule, the error is an [*InvalidError] for the field "password". After
// too many wrong tokens from the client's network it is a [*SignInLimitError]. If the person has
// become a user in the meantime it is [ErrEmailTaken]. Otherwise it may be [ErrInvitationInvalid]
// or [ErrSignInDisabled].
func (i *Invitations) Accept(ctx context.Context, token, password string, client Client) (signedIn SignedIn, err error) {
	if i.passwords.off {
		return SignedIn{}, ErrPasswordsOff
	}
	invitation, err := i.findLimited(ctx, token, client)
	if err != nil {
		return SignedIn{}, err
	}
	if err := checkPassword(password, invitation.Email, invitation.AccountName); err != nil {
		return SignedIn{}, err
	}
	hash, err := i.passwords.hash(ctx, strangerPlace(client), password)
	if err != nil {
		return SignedIn{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, i.db.timeout)
	defer cancel()
	err = i.db.InTx(ctx, "accept invitation", func(ctx context.Context, tx Tx) error {
		signedIn, err = i.accept(ctx, tx, token, hash, client)
		return err
	})
	if err != nil {
		return SignedIn{}, err
	}
	return signedIn, nil
}

// AcceptWithIdentity is [Invitations.Accept] for a person without a password, whose identity it
// connects, also if its email is not the invitation's. If the identity has a user, the error is
// [ErrIdentityTaken].
func (i *Invitations) AcceptWithIdentity(ctx context.Context, token string, identity Identity, client Client) (signedIn SignedIn, err error) {
	err = i.db.InTx(ctx, "accept invitation", func(ctx context.Context, tx Tx) error {
		if signedIn, err = i.accept(ctx, tx, token, i.passwords.hasher.Absent(), client); err != nil {
			return err
		}
		user := signedIn.User
		return connectIdentity(ctx, tx, user, identity, client.Provider, UserActor(user.ID, client.Address))
	})
	if err != nil {
		return SignedIn{}, err
	}
	return signedIn, nil
}

// findLimited is [Invitations.Find] with a limit on wrong tokens from one network, and with its own
// deadlines.
func (i *Invitations) findLimited(ctx context.Context, token string, client Client) (Invitation, error) {
	subject := []subject{signInSubject("invitation", network(client.Address))}
	if err := i.guesses.check(ctx, i.db, subject); err != nil {
		return Invitation{}, err
	}
	ctxDB, cancel := context.WithTimeout(ctx, i.db.timeout)
	defer cancel()
	invitation, err := i.Find(ctxDB, token)
	if errors.Is(err, ErrInvitationInvalid) {
		if err := i.guesses.countWrong(ctx, subject, subject); err != nil {
			return Invitation{}, err
		}
	}
	return invitation, err
}

// accept adds the user of the invitation, deletes the invitation and signs the user in. A user with
// the hash [password.Hasher.Absent] has no password, and needs another way to sign in.
func (i *Invitations) accept(ctx context.Context, tx Tx, token, passwordHash string, client Client) (SignedIn, error) {
	invitation, err := i.find(ctx, tx, token)
	if err != nil {
		return SignedIn{}, err
	}
	// Every transaction locks the account before other rows. So the inviter cannot be removed
	// meanwhile, which would delete the invitation.
	if err := tx.lockEnabledAccount(ctx, invitation.AccountID); err != nil {
		return SignedIn{}, disabledIfWrong(err)
	}
	result, err := tx.NewDelete().Model((*Invitation)(nil)).Where("id = ?", invitation.ID).Exec(ctx)
	if err := unlessAffected(result, err, ErrInvitationInvalid); err != nil {
		return SignedIn{}, err
	}
	user := User{
		ID: newID(), AccountID: invitation.AccountID, Email: invitation.Email, EmailHash: invitation.EmailHash,
		PasswordHash: passwordHash, Role: invitation.Role, CreatedAt: tx.Now(),
	}
	result, err = tx.NewInsert().Model(&user).On("CONFLICT (email_hash) DO NOTHING").Exec(ctx)
	if err := unlessAffected(result, err, ErrEmailTaken); err != nil {
		return SignedIn{}, err
	}
	actor := UserActor(user.ID, client.Address)
	if err := tx.Record(ctx, user.AccountID, actor, ActionInvitationAccepted, user.ID, user.Email); err != nil {
		return SignedIn{}, err
	}
	return i.signIn.start(ctx, tx, user, WithInvitation, client)
}
