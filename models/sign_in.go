package models

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"portal/models/secret"
)

// SignIn starts sessions for users who prove their identities.
type SignIn struct {
	db        *DB
	passwords *passwords
	guesses   *guesses
	sessions  *Sessions
	sealer    secret.Sealer // of the secrets of authenticator apps
}

// signInMethod is how a user has proved an identity.
type signInMethod string

const (
	// Including one that a link for a forgotten password has just set.
	withPassword   signInMethod = "password"
	withLink       signInMethod = "link"       // an operator's sign-in link
	withInvitation signInMethod = "invitation" // a link that has just created the user
	withProvider   signInMethod = "provider"   // OpenID Connect
	withPasskey    signInMethod = "passkey"

	// A password, and a code of the authenticator app.
	withCode         signInMethod = "code"
	withRecoveryCode signInMethod = "recovery code" // a password, and a recovery code
)

// signInLabels describe the methods in the activity log.
var signInLabels = map[signInMethod]string{
	withLink: "a sign-in link", withInvitation: "an invitation", withPasskey: "a passkey",
	withCode: "a code", withRecoveryCode: "a recovery code",
}

// Client describes the sender of a request to the portal.
type Client struct {
	Address   string // network address
	UserAgent string // the User-Agent header
	Device    Device // zero if unknown
	// Name of the OpenID Connect provider that the user has signed in with; or empty.
	Provider string

	// AuthenticatedAt is when the user entered credentials at the provider; zero: unknown.
	AuthenticatedAt time.Time
}

// Device is a browser in which a user has signed in before. A signed cookie identifies it until the
// user's password or email changes. Wrong passwords in it have limits of their own, so that
// strangers who guess the password cannot lock the user out (OWASP, device cookies).
type Device struct {
	ID         uuid.UUID
	UserID     uuid.UUID
	Generation int // the user's KnownBrowsers
}

// NewDevice returns a device with a random id for a user who has signed in.
func NewDevice(user User) Device { return Device{uuid.New(), user.ID, user.KnownBrowsers} }

func (d Device) belongsTo(user User) bool {
	return d.UserID == user.ID && d.Generation == user.KnownBrowsers
}

// knows reports whether the client is a device of the user with this email.
func (s *SignIn) knows(ctx context.Context, client Client, email string) (bool, error) {
	if client.Device.UserID == uuid.Nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.db.timeout)
	defer cancel()
	known, err := s.db.NewSelect().Model((*User)(nil)).Where("id = ? AND known_browsers = ? AND email_hash = ?",
		client.Device.UserID, client.Device.Generation, hashEmail(email)).Exists(ctx)
	return known, failed("find the user of a device", err)
}

// SignedIn is a user who has signed in, or who must still make the second step.
type SignedIn struct {
	User    User
	Token   string // of the session, or of the pending sign-in
	Pending bool   // the second step is due; see [SignIn.Finish]
}

// VerifyPassword returns the user with this email and password. A device of the user is limited by
// its own wrong passwords, and by twice as many for this email as strangers may have.
// VerifyPassword sets its own deadlines.
//
// If the email or the password is wrong, the error is [ErrWrongCredentials]. Neither the error nor
// the time it takes shows which. If both are right but the user or the account is disabled, it is
// [ErrSignInDisabled]. After too many wrong passwords for this email or from this address, on any
// instance, it is a [*SignInLimitError].
func (s *SignIn) VerifyPassword(ctx context.Context, email, password string, client Client) (User, error) {
	if s.passwords.off {
		return User{}, ErrPasswordsOff
	}
	known, err := s.knows(ctx, client, email)
	if err != nil {
		return User{}, err
	}
	emailSubject := signInSubject("email", string(hashEmail(email)))
	subjects := []subject{emailSubject, signInSubject("address", network(client.Address))}
	guess := guess{
		limited: subjects, counted: subjects, place: strangerPlace(client),
		actor: visitorActor(client.Address), action: ActionSignInFailed,
	}
	if known {
		device := signInSubject("device", client.Device.ID.String())
		guess.limited = []subject{emailSubject.times(2), device}
		guess.counted = append(guess.counted, device)
		guess.place = knownPlace(email)
	}
	return s.passwords.verify(ctx, email, password, guess)
}

// Start starts a session for a user who has just entered or set the password, or a pending sign-in
// if a second step is due. If the password has changed since it was verified, or the user
// or the account has been disabled, the error is [ErrWrongCredentials].
func (s *SignIn) Start(ctx context.Context, user User, client Client) (SignedIn, error) {
	return inTx(ctx, s.db, "sign in", func(ctx context.Context, tx Tx) (SignedIn, error) {
		return s.start(ctx, tx, user, withPassword, client)
	})
}

// start starts a session, or a pending sign-in after a password, in a transaction. Every sign-in
// ends with it. Without a password, the error for a disabled user is [ErrSignInDisabled].
func (s *SignIn) start(ctx context.Context, tx Tx, user User, method signInMethod, client Client) (SignedIn, error) {
	if method == withPassword {
		pending, err := secondStepDue(ctx, tx, user.ID)
		if err != nil {
			return SignedIn{}, err
		}
		if pending {
			token, err := createPendingSignIn(ctx, tx, user)
			return SignedIn{user, token, true}, err
		}
	}
	token, err := s.sessions.create(ctx, tx, user, method, client)
	if method != withPassword {
		err = disabledIfWrong(err)
	}
	return SignedIn{User: user, Token: token}, err
}

// disabledIfWrong returns [ErrSignInDisabled] in place of [ErrWrongCredentials], for users who have
// not entered a password.
func disabledIfWrong(err error) error {
	if errors.Is(err, ErrWrongCredentials) {
		return ErrSignInDisabled
	}
	return err
}
