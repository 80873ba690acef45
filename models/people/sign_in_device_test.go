package people_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// guess enters wrong passwords for an email, each from another address or all from the client.
func guess(t *testing.T, s *models.Store, email string, times int, client func(i int) people.Client) {
	t.Helper()
	for i := range times {
		checkError(t, "a guess", errOf(s.SignIn.VerifyPassword(t.Context(), email, modelstest.WrongPassword, client(i))), value.ErrWrongCredentials)
	}
}

func (f *fixture) isLimited(t *testing.T, name, email, password string, client people.Client) {
	t.Helper()
	_, err := f.SignIn.VerifyPassword(t.Context(), email, password, client)
	if _, limited := err.(*value.SignInLimitError); !limited { //nolint:errorlint // the store returns it unwrapped
		t.Errorf("%s: %v, want the limit", name, err)
	}
}

func TestStrangersDoNotLockOutADeviceOrSession(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		known, session := people.Client{Address: modelstest.Address(99), Device: people.NewDevice(c.User)}, f.SignedIn(t, c)
		guess(t, f.Store, c.User.Email, 10, modelstest.Strangers)
		f.isLimited(t, "a stranger", c.User.Email, password, modelstest.Strangers(98))
		f.isLimited(t, "another user's device", c.User.Email, password, people.Client{Address: modelstest.Address(98), Device: people.NewDevice(other.User)})
		checkError(t, "a device of the user", errOf(f.SignIn.VerifyPassword(ctx, c.User.Email, password, known)), nil)

		for i := range 10 {
			guess(t, f.Store, fmt.Sprintf("%d@example.com", i), 1, func(int) people.Client { return modelstest.Strangers(99) })
		}
		f.isLimited(t, "another device at an address that guesses", other.User.Email, password, known)
		checkError(t, "a device at an address that guesses", errOf(f.SignIn.VerifyPassword(ctx, c.User.Email, password, known)), nil)
		checkError(t, "a change of the password", errOf(f.Credentials.ChangePassword(ctx, session, password, newPassword, c.Actor)), nil)
		f.Clock.Advance(time.Minute)
		checkError(t, "a sign-in after it", errOf(f.SignIn.VerifyPassword(ctx, c.User.Email, newPassword, modelstest.Strangers(98))), nil)
	})
}

func TestKnownBrowsersEndWithAChange(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		for name, change := range map[string]func(c customer) (email string, err error){
			"of the password": func(c customer) (string, error) {
				return c.User.Email, errOf(f.Credentials.ChangePassword(ctx, f.SignedIn(t, c), password, newPassword, c.Actor))
			},
			"of the password by an operator": func(c customer) (string, error) {
				return c.User.Email, f.Credentials.ResetPassword(ctx, c.User.Email, newPassword)
			},
			"of the email": func(c customer) (string, error) {
				email := modelstest.NewEmail()
				return email, f.Credentials.ChangeEmail(ctx, c.User.Email, email)
			},
		} {
			c := f.Customer(t)
			known := people.Client{Address: modelstest.Address(99), Device: people.NewDevice(c.User)}
			email := modelstest.Value(change(c))(t)
			guess(t, f.Store, email, 10, modelstest.Strangers)
			f.isLimited(t, "a device after a change "+name, email, newPassword, known)
			f.Clock.Advance(time.Minute)
		}
	})
}

func TestDeviceHasALimitOfItsOwn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		stolen := people.Client{Address: modelstest.Address(1), Device: people.NewDevice(c.User)}
		second := people.Client{Address: modelstest.Address(1), Device: people.NewDevice(c.User)}
		guess(t, f.Open(t, models.Options{}), c.User.Email, 10, func(int) people.Client { return stolen })
		f.isLimited(t, "the device", c.User.Email, password, stolen)
		f.isLimited(t, "a stranger elsewhere", c.User.Email, password, modelstest.Strangers(2))
		f.isLimited(t, "a stranger at its address", "nobody@example.com", password, modelstest.Strangers(1))
		checkError(t, "another device", errOf(f.SignIn.VerifyPassword(t.Context(), c.User.Email, password, second)), nil)
		guess(t, f.Store, c.User.Email, 10, func(int) people.Client { return second })
		f.isLimited(t, "any device", c.User.Email, password, people.Client{Address: modelstest.Address(1), Device: people.NewDevice(c.User)})
		f.Clock.Advance(time.Minute)
		for name, client := range map[string]people.Client{"the device": stolen, "a stranger": modelstest.Strangers(3)} {
			checkError(t, name+" a minute later", errOf(f.SignIn.VerifyPassword(t.Context(), c.User.Email, password, client)), nil)
		}
	})
}

// A session has one limit for all forms that ask for the current password.
func TestChangeOfPasswordIsLimited(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		session, other := f.SignedIn(t, c), f.SignedIn(t, c)
		forms := []func(s people.Session, current string) error{
			func(s people.Session, current string) error {
				return errOf(f.Credentials.ChangePassword(ctx, s, current, newPassword, c.Actor))
			},
			func(s people.Session, current string) error {
				return f.Credentials.RequestEmailChange(ctx, s, current, modelstest.NewEmail(), c.Actor)
			},
			func(s people.Session, current string) error {
				return errOf(f.Sessions.Reauthenticate(ctx, s, current, c.Actor))
			},
		}
		for i := range 10 {
			checkError(t, "a guess", forms[i%3](session, modelstest.WrongPassword), value.ErrWrongCredentials)
		}
		for i, form := range forms {
			if _, limited := form(session, password).(*value.SignInLimitError); !limited { //nolint:errorlint // the store returns it unwrapped
				t.Errorf("form %d is not limited", i)
			}
		}
		checkError(t, "in another session", forms[0](other, password), nil)
	})
}

// Several sessions of a user allow no more guesses than known browsers do.
func TestGuessesInSessionsCountTogether(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		wrong := 0
		for i := range 5 {
			session := f.SignedIn(t, c)
			for range 10 {
				err := errOf(f.Sessions.Reauthenticate(ctx, session, modelstest.WrongPassword, c.Actor))
				if errors.Is(err, value.ErrWrongCredentials) {
					wrong++
				}
			}
			if i == 0 {
				f.isLimited(t, "a stranger", c.User.Email, modelstest.WrongPassword, modelstest.Strangers(1))
			}
		}
		if wrong != 20 {
			t.Errorf("%d guesses a minute in five sessions", wrong)
		}
		f.isLimited(t, "a known browser", c.User.Email, modelstest.WrongPassword, people.Client{Address: modelstest.Address(2), Device: people.NewDevice(c.User)})
		f.Clock.Advance(time.Minute)
		checkError(t, "a minute later", errOf(f.Sessions.Reauthenticate(ctx, f.SignedIn(t, c), password, c.Actor)), nil)
	})
}

func TestWrongCurrentPasswordIsRecordedAsTheUsers(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		session := f.SignedIn(t, c)
		for range 2 {
			checkError(t, "a guess", errOf(f.Credentials.ChangePassword(t.Context(), session, modelstest.WrongPassword, newPassword, c.Actor)), value.ErrWrongCredentials)
		}
		eventually(t, "both are recorded", func() bool {
			r := f.Recorded(t, c, record.ActionPasswordRefused)
			return len(r) == 1 && r[0].Repeats == 1 && r[0].ActorName == c.User.Email && r[0].Address == c.Actor.Address
		})
		if r := f.Recorded(t, c, record.ActionSignInFailed); len(r) != 0 {
			t.Errorf("recorded as a sign-in: %+v", r)
		}
	})
}

// Attempts from many networks of one /48 are not limited by their addresses. They must not make
// another network wait for all of them. The queue knows no database, so one kind is enough, also
// for the next test.
func TestFloodFromOneSiteDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	const flood = 12
	// Hashing takes time.
	f := newFixture(t, modelstest.SQLiteURL(t), models.Options{PasswordMemory: modelstest.DefaultPasswordMemory})
	c := f.Customer(t)
	var answered atomic.Int64
	var flooding sync.WaitGroup
	for i := range flood {
		flooding.Go(func() {
			from := people.Client{Address: fmt.Sprintf("2001:db8:1:%x::1", i)}
			_, _ = f.SignIn.VerifyPassword(t.Context(), fmt.Sprintf("%d@example.com", i), modelstest.WrongPassword, from)
			answered.Add(1)
		})
	}
	eventually(t, "the flood is under way", func() bool { return answered.Load() > 0 })
	before := answered.Load()
	checkError(t, "another network", errOf(f.SignIn.VerifyPassword(t.Context(), c.User.Email, password, modelstest.Strangers(1))), nil)
	if n := answered.Load() - before; n > flood/2 {
		t.Errorf("%d of %d attempts of the flood went first", n, flood)
	}
	flooding.Wait()
}

// One user signs in again and again on several connections, each with another device.
func TestRightPasswordsDoNotKeepStrangersOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.SQLiteURL(t), models.Options{PasswordMemory: modelstest.DefaultPasswordMemory, SignInLimit: 10_000})
	c, other := f.Customer(t), f.Customer(t)
	ctx, stop := context.WithCancel(t.Context())
	var signedIn atomic.Int64
	var repeating sync.WaitGroup
	for range 3 {
		client := people.Client{Address: modelstest.Address(1), Device: people.NewDevice(c.User)}
		repeating.Go(func() {
			for ctx.Err() == nil {
				if _, err := f.SignIn.VerifyPassword(t.Context(), c.User.Email, password, client); err == nil {
					signedIn.Add(1)
				}
			}
		})
	}
	eventually(t, "they sign in", func() bool { return signedIn.Load() > 3 })
	before := signedIn.Load()
	checkError(t, "a stranger", errOf(f.SignIn.VerifyPassword(t.Context(), other.User.Email, password, modelstest.Strangers(2))), nil)
	if n := signedIn.Load() - before; n > 20 {
		t.Errorf("%d sign-ins of the user went first", n)
	}
	stop()
	repeating.Wait()
}

func TestRightPasswordsOfAUserAreLimited(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		session := f.SignedIn(t, c)
		for i := range 15 {
			client := people.Client{Address: modelstest.Address(i), Device: people.NewDevice(c.User)}
			checkError(t, "a sign-in with a device", errOf(f.SignIn.VerifyPassword(ctx, c.User.Email, password, client)), nil)
			checkError(t, "a sign-in without one", errOf(f.SignIn.VerifyPassword(ctx, c.User.Email, password, modelstest.Strangers(i))), nil)
		}
		f.isLimited(t, "a device", c.User.Email, password, people.Client{Device: people.NewDevice(c.User)})
		f.isLimited(t, "a stranger", c.User.Email, modelstest.WrongPassword, modelstest.Strangers(20))
		if _, limited := errOf(f.Sessions.Reauthenticate(ctx, session, password, c.Actor)).(*value.SignInLimitError); !limited { //nolint:errorlint // the store returns it unwrapped
			t.Error("a session is not limited")
		}
		checkError(t, "another user", errOf(f.SignIn.VerifyPassword(ctx, other.User.Email, password, modelstest.Strangers(1))), nil)
		f.Clock.Advance(time.Minute)
		checkError(t, "a minute later", errOf(f.SignIn.VerifyPassword(ctx, c.User.Email, password, modelstest.Strangers(1))), nil)
	})
}
