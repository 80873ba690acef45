package people

import (
	"sync"
	"time"

	"portal/models/internal/db"
	"portal/models/internal/throttle"
	"portal/models/password"
	"portal/models/secret"
)

// Services are the services of accounts and of the people who sign in to them. They share the
// hashing of passwords and the limits of wrong ones.
type Services struct {
	Accounts    *Accounts
	People      *People
	Invitations *Invitations
	SignIn      *SignIn
	Sessions    *Sessions
	Credentials *Credentials

	guesses   *guesses
	passwords *passwords
}

// Options configure [Services].
type Options struct {
	Sealer       secret.Sealer // of the secrets of authenticator apps
	SessionIdle  time.Duration // idle limit of a session
	SessionMax   time.Duration // absolute limit of a session
	SignInLimit  int           // wrong passwords a minute; 0 means 10
	PasswordsOff bool          // nobody signs in with a password
	Hasher       *password.Hasher
	LastSeen     *db.LastSeenBuffer // of sessions
}

// New returns the services. Their writes in the background run in the group.
func New(db *db.DB, background *sync.WaitGroup, o Options) *Services {
	guesses := &guesses{Limiter: throttle.New(db, o.SignInLimit), db: db, background: background}
	passwords := &passwords{db: db, hasher: o.Hasher, guesses: guesses, off: o.PasswordsOff}
	s := &Services{guesses: guesses, passwords: passwords}
	s.Accounts = &Accounts{db: db, passwords: passwords}
	s.People = &People{db: db, passwords: passwords}
	s.Sessions = &Sessions{db: db, idle: o.SessionIdle, max: o.SessionMax, lastSeen: o.LastSeen, passwords: passwords}
	s.SignIn = &SignIn{db: db, passwords: passwords, guesses: guesses, sessions: s.Sessions, people: s.People, sealer: o.Sealer}
	s.Invitations = &Invitations{db: db, passwords: passwords, guesses: guesses, signIn: s.SignIn}
	s.Credentials = &Credentials{db: db, passwords: passwords, guesses: guesses, sealer: o.Sealer}
	return s
}

// PasswordsOff reports whether sign-in with a password is turned off.
func (s *Services) PasswordsOff() bool { return s.passwords.off }

// SetPasswordsOff turns sign-in with a password off or on. Nothing else may use the services
// before.
func (s *Services) SetPasswordsOff(off bool) { s.passwords.off = off }

// Refused returns how many passwords and codes were refused since the start of the process: wrong
// ones, those not checked because there were too many wrong ones before, and right ones of a
// disabled user or account.
func (s *Services) Refused() (wrong, limited, disabled uint64) {
	refused := &s.guesses.refused
	return refused.wrong.Load(), refused.limited.Load(), refused.disabled.Load()
}
