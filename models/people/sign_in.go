package people

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/internal/throttle"
	"portal/models/record"
	"portal/models/secret"
	"portal/models/value"
)

// SignIn starts sessions for users who prove their identities.
type SignIn struct {
	db        *db.DB
	passwords *passwords
	guesses   *guesses
	sessions  *Sessions
	people    *People
	sealer    secret.Sealer // of the secrets of authenticator apps
}

// Ready returns [value.ErrUnavailable] unless the database answers a query.
func (s *SignIn) Ready(ctx context.Context) error {
	err := db.Within(ctx, func() error {
		return s.db.NewSelect().Table("auth_epoch").Column("value").Scan(ctx, new([]byte))
	})
	if err != nil {
		return fmt.Errorf("ping: %w: %w", value.ErrUnavailable, err)
	}
	return nil
}

// knows reports whether the client is a device of the user with this email.
func (s *SignIn) knows(ctx context.Context, client Client, email string) (bool, error) {
	if client.Device.UserID == uuid.Nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.db.Timeout)
	defer cancel()
	known, err := s.db.NewSelect().Model((*User)(nil)).Where("id = ? AND known_browsers = ? AND email_hash = ?",
		client.Device.UserID, client.Device.Generation, value.StoredHash(email)).Exists(ctx)
	return known, value.Failed("find the user of a device", err)
}

// SignedIn is a user who has signed in, or who must still make the second step.
type SignedIn struct {
	User    User
	Token   string // of the session, or of the pending sign-in
	Pending bool   // the second step is due; see [SignIn.Finish]
	// RecoveryCodes is how many recovery codes are left, if the user has used one; otherwise
	// nil.
	RecoveryCodes *int
}

// VerifyPassword returns the user with this email and password. A device of the user is limited by
// its own wrong passwords, and by twice as many for this email as strangers may have.
// VerifyPassword sets its own deadlines.
//
// If the email or the password is wrong, the error is [value.ErrWrongCredentials]. Neither the
// error nor the time it takes shows which. If both are right but the user or the account is
// disabled, it is [value.ErrSignInDisabled].
func (s *SignIn) VerifyPassword(ctx context.Context, email, password string, client Client) (User, error) {
	if s.passwords.off {
		return User{}, value.ErrPasswordsOff
	}
	known, err := s.knows(ctx, client, email)
	if err != nil {
		return User{}, err
	}
	ofEmail := throttle.EmailSubject(email)
	subjects := []throttle.Subject{ofEmail, throttle.SubjectOf("address", value.Network(client.Address))}
	guess := guess{
		limited: subjects, counted: subjects, place: strangerPlace(client),
		actor: record.VisitorActor(client.Address), action: record.ActionSignInFailed,
	}
	if known {
		device := throttle.SubjectOf("device", client.Device.ID.String())
		guess.limited = []throttle.Subject{ofEmail.Times(2), device}
		guess.counted = append(guess.counted, device)
		guess.place = knownPlace(email)
	}
	return s.passwords.verify(ctx, email, password, guess)
}

// Start starts a session for a user who has just entered or set the password, or a pending sign-in
// if a second step is due. If the password has changed since it was verified, or the user
// or the account has been disabled, the error is [value.ErrWrongCredentials].
func (s *SignIn) Start(ctx context.Context, user User, client Client) (SignedIn, error) {
	return db.InTx(ctx, s.db, "sign in", func(ctx context.Context, tx db.Tx) (SignedIn, error) {
		return s.begin(ctx, tx, user, byPassword, client)
	})
}

// begin starts a session, or a pending sign-in after a password, in a transaction. Every sign-in
// ends with it. Without a password, the error for a disabled user is [value.ErrSignInDisabled].
func (s *SignIn) begin(ctx context.Context, tx db.Tx, user User, method signInMethod, client Client) (SignedIn, error) {
	if method == byPassword {
		pending, err := secondStepDue(ctx, tx, user.ID)
		if err != nil {
			return SignedIn{}, err
		}
		if pending {
			token, err := createPendingSignIn(ctx, tx, user)
			return SignedIn{User: user, Token: token, Pending: true}, err
		}
	}
	token, err := s.sessions.create(ctx, tx, user, method, client)
	if method != byPassword {
		err = value.DisabledIfWrong(err)
	}
	return SignedIn{User: user, Token: token}, err
}

// secondStepDue reports whether a user who has entered the password must make a second step. If the
// account requires a second factor, a user with passkeys only must sign in with one of them.
func secondStepDue(ctx context.Context, db bun.IDB, userID uuid.UUID) (due bool, err error) {
	err = db.NewSelect().Model((*User)(nil)).
		ColumnExpr("EXISTS (SELECT 1 FROM authenticators WHERE user_id = u.id AND enabled_at IS NOT NULL) OR a.second_factor_required AND "+hasFactor).
		Join("JOIN accounts AS a ON a.id = u.account_id").Where("u.id = ?", userID).Scan(ctx, &due)
	return due, err
}

const (
	// maxPendingSignIns is the maximum number of pending sign-ins of a user. A new one ends the
	// oldest.
	maxPendingSignIns = 10
	// pendingSignInLife is how long the user can take for the second step.
	pendingSignInLife = 10 * time.Minute
)

// createPendingSignIn stores a sign-in whose second step is due, and returns its token. Like
// a session, it checks that the user may still sign in.
func createPendingSignIn(ctx context.Context, tx db.Tx, user User) (token string, err error) {
	if err := lockVerified(ctx, tx, user); err != nil {
		return "", err
	}
	if err := checkOwnSignIn(ctx, tx.DB, tx, user.ID); err != nil {
		return "", err
	}
	if err := pendingSignIns.keepNewest(ctx, tx, user.ID, maxPendingSignIns-1); err != nil {
		return "", err
	}
	return pendingSignIns.create(ctx, tx, user.ID, tx.Now().Add(pendingSignInLife))
}
