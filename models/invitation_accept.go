package models

import (
	"context"
	"errors"
)

// Accept adds the person with the invitation's token to the account, with a password, and
// signs the new user in as [SignIn.Start] does. It deletes the invitation and records the activity.
// It returns the user, and the token and pending of [SignIn.Start].
//
// It returns an [*InvalidError] for the field "password" if the password breaks a rule,
// [ErrInvitationInvalid], or a [*SignInLimitError] after too many wrong tokens from the client's
// network. It returns [ErrEmailTaken] if the person has become a user in the meantime. The error
// may also be [ErrPasswordsOff], [ErrSignInDisabled] or [ErrUnavailable]. AcceptInvitation sets its
// own deadlines.
func (i *Invitations) Accept(ctx context.Context, token, password string, client Client) (user User, sessionToken string, pending bool, err error) {
	if i.passwords.off {
		return User{}, "", false, ErrPasswordsOff
	}
	invitation, err := i.findLimited(ctx, token, client)
	if err != nil {
		return User{}, "", false, err
	}
	if err := checkPassword(password, invitation.Email, invitation.AccountName); err != nil {
		return User{}, "", false, err
	}
	hash, err := i.passwords.hash(ctx, strangerPlace(client), password)
	if err != nil {
		return User{}, "", false, err
	}
	ctx, cancel := context.WithTimeout(ctx, i.db.timeout)
	defer cancel()
	err = i.db.InTx(ctx, "accept invitation", func(ctx context.Context, tx Tx) error {
		user, sessionToken, pending, err = i.accept(ctx, tx, token, hash, client)
		return err
	})
	if err != nil {
		return User{}, "", false, err
	}
	return user, sessionToken, pending, nil
}

// findLimited is [Invitations.Find] with a limit on wrong tokens from one network. It sets its
// own deadlines.
func (i *Invitations) findLimited(ctx context.Context, token string, client Client) (Invitation, error) {
	subject := [][]byte{signInSubject("invitation", network(client.Address))}
	if err := i.guesses.check(ctx, i.db, subject); err != nil {
		return Invitation{}, err
	}
	answer, cancel := context.WithTimeout(ctx, i.db.timeout)
	defer cancel()
	invitation, err := i.Find(answer, token)
	if errors.Is(err, ErrInvitationInvalid) {
		if err := i.guesses.count(ctx, attempt{limited: subject, counted: subject}); err != nil {
			return Invitation{}, err
		}
	}
	return invitation, err
}

// accept adds the user of the invitation, deletes the invitation and signs the user in. The hash
// [password.Hasher.Absent] adds a user without a password, for a caller that gives the user another
// way to sign in. The errors are those of [Invitations.Find], and [ErrEmailTaken].
func (i *Invitations) accept(ctx context.Context, tx Tx, token, passwordHash string, client Client) (User, string, bool, error) {
	invitation, err := i.find(ctx, tx, token)
	if err != nil {
		return User{}, "", false, err
	}
	// Every transaction locks the account before other rows. The inviter cannot be removed
	// meanwhile, which would delete the invitation.
	if err := tx.lockEnabledAccount(ctx, invitation.AccountID); err != nil {
		return User{}, "", false, disabledIfWrong(err)
	}
	result, err := tx.NewDelete().Model((*Invitation)(nil)).Where("id = ?", invitation.ID).Exec(ctx)
	if err := unlessAffected(result, err, ErrInvitationInvalid); err != nil {
		return User{}, "", false, err
	}
	user := User{
		ID: newID(), AccountID: invitation.AccountID, Email: invitation.Email, EmailHash: invitation.EmailHash,
		PasswordHash: passwordHash, Role: invitation.Role, CreatedAt: tx.Now(),
	}
	result, err = tx.NewInsert().Model(&user).On("CONFLICT (email_hash) DO NOTHING").Exec(ctx)
	if err := unlessAffected(result, err, ErrEmailTaken); err != nil {
		return User{}, "", false, err
	}
	actor := UserActor(user.ID, client.Address)
	if err := tx.Record(ctx, user.AccountID, actor, ActionInvitationAccepted, user.ID, user.Email); err != nil {
		return User{}, "", false, err
	}
	sessionToken, pending, err := i.signIn.start(ctx, tx, user, WithInvitation, client)
	return user, sessionToken, pending, disabledIfWrong(err)
}

// disabledIfWrong returns [ErrSignInDisabled] in place of [ErrWrongCredentials], for a sign-in
// without a password.
func disabledIfWrong(err error) error {
	if errors.Is(err, ErrWrongCredentials) {
		return ErrSignInDisabled
	}
	return err
}
