package modelstest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/pquerna/otp/totp"

	"portal/models"
	"portal/models/people"
	"portal/models/record"
)

// Acme returns the input of an account with this email. Its password is [Password].
func Acme(email string) people.NewAccount {
	return people.NewAccount{Name: "Acme", Email: email, Password: Password}
}

// Member adds a user without a password to the customer's account.
func (f *Fixture) Member(t *testing.T, c Customer, role people.Role) people.User {
	t.Helper()
	user := Value(f.People.Add(t.Context(), c.ID, people.NewUser{Email: uuid.NewString() + "@example.com", Role: role}, record.Operator()))(t)
	return user
}

// Owner adds an owner with [Password].
func (f *Fixture) Owner(t *testing.T, c Customer) people.User {
	t.Helper()
	user := f.Member(t, c, people.RoleOwner)
	f.Exec(t, "UPDATE users SET password_hash = ? WHERE id = ?", CheapHash(Password), user.ID)
	return user
}

// NewEmail returns an email that nobody has.
func NewEmail() string { return uuid.NewString() + "@example.com" }

// Invite creates an invitation from the customer's first user and returns it and its token.
func (f *Fixture) Invite(t *testing.T, c Customer, email string, role people.Role) (people.Invitation, string) {
	t.Helper()
	invitation, token, err := f.Invitations.Create(t.Context(), c.ID, email, role, c.Actor)
	Must(t, err)
	return invitation, token
}

// Accept returns the error of an attempt to accept an invitation.
func Accept(ctx context.Context, s *models.Store, token, password string) error {
	return ErrOf(s.Invitations.Accept(ctx, token, password, Browser))
}

// Browser is the client of the sessions of a fixture.
var Browser = people.Client{Address: "203.0.113.7", UserAgent: "Mozilla/5.0"}

// Session starts a session and returns its token.
func (f *Fixture) Session(t *testing.T, c Customer) (token string) {
	t.Helper()
	return Value(f.SignIn.Start(t.Context(), c.User, Browser))(t).Token
}

// SignedIn starts a session and returns it.
func (f *Fixture) SignedIn(t *testing.T, c Customer) people.Session {
	t.Helper()
	return f.Find(t, f.Session(t, c))
}

// Find returns the session with this token.
func (f *Fixture) Find(t *testing.T, token string) people.Session {
	t.Helper()
	return Value(f.Sessions.Find(t.Context(), token, Browser))(t)
}

// WrongPassword differs from [Password].
const WrongPassword = "correct horse battery stapler"

// SignIn attempts to sign in and fails the test unless the error is want.
func SignIn(t *testing.T, s *models.Store, email, password, address string, want error) {
	t.Helper()
	user, err := s.SignIn.VerifyPassword(t.Context(), email, password, people.Client{Address: address})
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
	if err != nil && user.ID != uuid.Nil {
		t.Fatalf("a user with the error: %+v", user)
	}
}

// Address returns one of 256 addresses.
func Address(i int) string { return fmt.Sprintf("203.0.113.%d", i) }

// Strangers returns clients without a known device, each at an address of its own.
func Strangers(i int) people.Client { return people.Client{Address: Address(i)} }

// Passkey adds a passkey to the user of a session and returns it as stored.
func (f *Fixture) Passkey(t *testing.T, session people.Session, actor record.Actor) people.Passkey {
	t.Helper()
	id := []byte(uuid.NewString())
	Must(t, f.Credentials.AddPasskey(t.Context(), session, people.Passkey{CredentialID: id, Credential: "{}", SignCount: 1, Name: "Phone"}, uuid.NewString(), actor))
	return Value(f.Credentials.FindPasskey(t.Context(), id))(t)
}

// App is an authenticator app.
type App struct {
	Fixture *Fixture
	Secret  string // in base 32
}

// Code returns the code that the app shows at the time of the fixture plus after.
func (a App) Code(t *testing.T, after time.Duration) string {
	t.Helper()
	return Value(totp.GenerateCode(a.Secret, a.Fixture.Clock.Now().Add(after)))(t)
}

// TwoSteps turns two-step verification on for a customer, and returns the app, whose next code is
// unused.
func (f *Fixture) TwoSteps(t *testing.T, c Customer) (a App, recovery []string) {
	t.Helper()
	session := f.SignedIn(t, c)
	a = App{Fixture: f}
	a.Secret = Value(f.Credentials.StartTOTP(t.Context(), session))(t)
	recovery = Value(f.Credentials.EnableTOTP(t.Context(), session, a.Code(t, 0), c.Actor))(t)
	f.Clock.Advance(time.Minute)
	return a, recovery
}

// ResetToken asks for a link to set a new password and returns its token.
func (f *Fixture) ResetToken(t *testing.T, email string) string {
	t.Helper()
	store := f.Open(t, models.Options{Mail: true})
	Must(t, store.Credentials.RequestPasswordReset(t.Context(), email, people.Client{Address: "203.0.113.7"}))
	mail, token, err := store.Outbox.Claim(t.Context())
	Must(t, err)
	Must(t, store.Outbox.Sent(t.Context(), mail))
	if token == "" {
		t.Fatal("the mail has no link")
	}
	return token
}

// EmailToken asks for a new email in the session and returns the token of the mailed link.
func (f *Fixture) EmailToken(t *testing.T, session people.Session, c Customer, email string) string {
	t.Helper()
	Must(t, f.Credentials.RequestEmailChange(t.Context(), session, Password, email, c.Actor))
	for {
		mail, token, err := f.Outbox.Claim(t.Context())
		Must(t, err)
		Must(t, f.Outbox.Sent(t.Context(), mail))
		if mail.Kind == record.MailEmailConfirmation && mail.Recipient == email {
			return token
		}
	}
}

// ChangeEmail asks for a new email and confirms it.
func (f *Fixture) ChangeEmail(t *testing.T, session people.Session, c Customer, email string) error {
	t.Helper()
	return ErrOf(f.Credentials.ConfirmEmail(t.Context(), f.EmailToken(t, session, c, email), "203.0.113.9"))
}
