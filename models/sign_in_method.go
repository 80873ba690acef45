package models

import (
	"context"

	"github.com/uptrace/bun"
)

// SignInMethod is how a user has proved an identity.
type SignInMethod string

// The methods of sign-in.
const (
	WithPassword   SignInMethod = "password"   // including one that a link for a forgotten password has just set
	WithLink       SignInMethod = "link"       // an operator's sign-in link
	WithInvitation SignInMethod = "invitation" // a link that has just created the user
	WithProvider   SignInMethod = "provider"   // OpenID Connect
	WithPasskey    SignInMethod = "passkey"

	withCode         SignInMethod = "code"          // a password, and a code of the authenticator app
	withRecoveryCode SignInMethod = "recovery code" // a password, and a recovery code
)

// signInLabels describe the methods in the activity log.
var signInLabels = map[SignInMethod]string{
	WithLink: "a sign-in link", WithInvitation: "an invitation", WithPasskey: "a passkey",
	withCode: "a code", withRecoveryCode: "a recovery code",
}

// SignIn starts a session for a user who has just proved an identity with this method. Every
// sign-in ends with SignIn, or with signIn in a transaction of its own. If a second step is due,
// pending is true, and the token is not of a session but of the pending sign-in.
//
// The errors are those of [Store.CreateSession].
func (s *Store) SignIn(ctx context.Context, user User, method SignInMethod, client Client) (token string, pending bool, err error) {
	err = s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		token, pending, err = s.signIn(ctx, tx, user, method, client)
		return err
	})
	if err != nil {
		return "", false, failed("sign in", err)
	}
	return token, pending, nil
}

// signIn is [Store.SignIn] within a transaction.
func (s *Store) signIn(ctx context.Context, tx bun.Tx, user User, method SignInMethod, client Client) (token string, pending bool, err error) {
	if method == WithPassword {
		if pending, err = secondStepDue(ctx, tx, user.ID); err != nil {
			return "", false, err
		}
	}
	if pending {
		token, err = s.createPendingSignIn(ctx, tx, user)
	} else {
		token, err = s.createSession(ctx, tx, user, method, client)
	}
	return token, pending, err
}
