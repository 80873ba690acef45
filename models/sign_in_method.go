package models

import (
	"context"
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

// Start starts a session for a user who has just proved an identity with this method. Every
// sign-in ends with SignIn, or with signIn in a transaction of its own. If a second step is due,
// pending is true, and the token is not of a session but of the pending sign-in.
//
// The errors are those of [Sessions.Create].
func (s *SignIn) Start(ctx context.Context, user User, method SignInMethod, client Client) (token string, pending bool, err error) {
	err = s.db.InTx(ctx, "sign in", func(ctx context.Context, tx Tx) error {
		token, pending, err = s.start(ctx, tx, user, method, client)
		return err
	})
	if err != nil {
		return "", false, err
	}
	return token, pending, nil
}

// start is [SignIn.Start] within a transaction.
func (s *SignIn) start(ctx context.Context, tx Tx, user User, method SignInMethod, client Client) (token string, pending bool, err error) {
	if method == WithPassword {
		if pending, err = secondStepDue(ctx, tx, user.ID); err != nil {
			return "", false, err
		}
	}
	if pending {
		token, err = createPendingSignIn(ctx, tx, user)
	} else {
		token, err = s.sessions.create(ctx, tx, user, method, client)
	}
	return token, pending, err
}
