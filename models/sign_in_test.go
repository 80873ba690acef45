package models_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models"
	"portal/models/modelstest"
)

// longPassword has the most characters that a password can have.
var longPassword = "A pass phrase of some words: " + strings.Repeat("0aZ", 33)

const wrongPassword = "correct horse battery stapler"

// The customers' hashes cost next to nothing until the first right password,
// with which they are upgraded: that comes late in these tests.

// signIn is a sign-in attempt whose outcome is known beforehand.
func signIn(t *testing.T, s *models.Store, email, password, address string, want error) {
	t.Helper()
	user, err := s.VerifyPassword(t.Context(), email, password, address)
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
	if err != nil && user.ID != uuid.Nil {
		t.Fatalf("a user with the error: %+v", user)
	}
}

// limited is a sign-in attempt that is refused unseen, until so much later.
func limited(t *testing.T, s *models.Store, email, password, address string, until time.Duration) {
	t.Helper()
	user, err := s.VerifyPassword(t.Context(), email, password, address)
	var limit *models.SignInLimitError
	if !errors.As(err, &limit) || errors.Is(err, models.ErrWrongCredentials) || user.ID != uuid.Nil {
		t.Fatalf("%+v, %v, want the limit", user, err)
	}
	if limit.RetryAfter != until {
		t.Fatalf("to be tried again in %s, not %s", limit.RetryAfter, until)
	}
}

func address(i int) string { return fmt.Sprintf("203.0.113.%d", i) }

func TestSignIn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		for _, email := range []string{c.user.Email, strings.ToLower(c.user.Email), strings.ToUpper(c.user.Email), " \t" + c.user.Email + "\n"} {
			user, err := f.VerifyPassword(t.Context(), email, password, address(1))
			if err != nil || user.ID != c.user.ID || user.AccountID != c.ID || user.Email != c.user.Email {
				t.Errorf("%q: %+v, %v", email, user, err)
			}
		}
		signIn(t, f.Store, c.user.Email, wrongPassword, address(1), models.ErrWrongCredentials)
		signIn(t, f.Store, c.user.Email, "", address(1), models.ErrWrongCredentials)
		signIn(t, f.Store, c.user.Email, other.user.PasswordHash, address(1), models.ErrWrongCredentials)
		for i, email := range []string{"nobody@example.com", "", "' OR 1=1; --", "a\x00b@example.com", "\xff@example.com", c.user.Email + "\x00", strings.Repeat("a", 1<<16)} {
			signIn(t, f.Store, email, password, address(2+i), models.ErrWrongCredentials)
		}
	})
}

func TestDisabledCannotSignIn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		for table, id := range map[string]uuid.UUID{"users": c.user.ID, "accounts": c.ID} {
			f.exec(t, "UPDATE "+table+" SET disabled_at = ? WHERE id = ?", f.clock.Now(), id)
			signIn(t, f.Store, c.user.Email, password, address(1), models.ErrSignInDisabled)
			signIn(t, f.Store, c.user.Email, wrongPassword, address(1), models.ErrWrongCredentials)
			f.exec(t, "UPDATE "+table+" SET disabled_at = NULL WHERE id = ?", id)
			signIn(t, f.Store, c.user.Email, password, address(1), nil)
		}
	})
}

func TestPasswordsAreTakenExactlyAsTyped(t *testing.T) {
	// Passwords reach no database, so one will do.
	t.Parallel()
	f := newFixture(t, modelstest.SQLiteURL(t), models.Options{})
	for i, test := range []struct {
		password string
		others   []string
	}{
		{" leading and trailing ", []string{"leading and trailing", " leading and trailing", " Leading and trailing "}},
		// The same to the eye, in two normal forms of Unicode.
		{"Zu\u0308rich 東京 👩‍💻", []string{"Z\u00fcrich 東京 👩‍💻"}},
		{"ünïcödé wörd", []string{"ünïcödé wör", "ünïcödé wördd", "UNÏCÖDÉ WÖRD"}}, // 12 characters
		{longPassword, []string{longPassword[:127], longPassword + "x"}},
		{"NUL\x00and after", []string{"NUL"}},
	} {
		email := fmt.Sprintf("user%d@example.com", i)
		if _, err := f.CreateAccount(t.Context(), models.NewAccount{Name: "Acme", Email: email, Password: test.password}); err != nil {
			t.Errorf("%q: %v", test.password, err)
			continue
		}
		signIn(t, f.Store, email, test.password, address(i), nil)
		for _, other := range test.others {
			signIn(t, f.Store, email, other, address(i), models.ErrWrongCredentials)
		}
	}
}

func TestTenWrongPasswordsForOneEmail(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		for i := range 10 {
			if i == 9 { // right ones never count: this would be the tenth
				signIn(t, f.Store, c.user.Email, password, address(99), nil)
			}
			email := []string{c.user.Email, strings.ToUpper(c.user.Email), " " + c.user.Email}[i%3]
			signIn(t, f.Store, email, wrongPassword, address(i), models.ErrWrongCredentials)
			f.clock.Advance(time.Second)
		}
		limited(t, f.Store, c.user.Email, wrongPassword, address(99), 50*time.Second)
		limited(t, f.Store, c.user.Email, password, address(99), 50*time.Second)
		limited(t, f.Store, " "+strings.ToUpper(c.user.Email), password, address(99), 50*time.Second)
		// Other users can sign in, also from that address.
		signIn(t, f.Store, other.user.Email, password, address(0), nil)
		signIn(t, f.Store, other.user.Email, password, address(99), nil)
		// It holds on every instance.
		elsewhere := f.open(t, models.Options{})
		limited(t, elsewhere, c.user.Email, password, address(99), 50*time.Second)

		f.clock.Advance(50*time.Second - time.Microsecond)
		limited(t, f.Store, c.user.Email, password, address(99), time.Microsecond)
		f.clock.Advance(time.Microsecond)
		signIn(t, f.Store, c.user.Email, password, address(99), nil)
		signIn(t, elsewhere, c.user.Email, password, address(99), nil)
		// There is room for one wrong password again, and then not.
		signIn(t, f.Store, c.user.Email, wrongPassword, address(99), models.ErrWrongCredentials)
		limited(t, f.Store, c.user.Email, password, address(99), time.Second)
	})
}

func TestTenWrongPasswordsFromOneAddress(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		guessed, victim := f.customer(t), f.customer(t)
		signIn(t, f.Store, guessed.user.Email, wrongPassword, address(1), models.ErrWrongCredentials)
		for range 9 {
			signIn(t, f.Store, f.customer(t).user.Email, wrongPassword, address(1), models.ErrWrongCredentials)
		}
		limited(t, f.Store, victim.user.Email, password, address(1), time.Minute)
		limited(t, f.Store, "nobody@example.com", password, address(1), time.Minute)
		limited(t, f.open(t, models.Options{}), victim.user.Email, password, address(1), time.Minute)
		// From elsewhere everybody signs in.
		for _, c := range []customer{guessed, victim} {
			signIn(t, f.Store, c.user.Email, password, address(2), nil)
		}
		f.clock.Advance(time.Minute)
		signIn(t, f.Store, victim.user.Email, password, address(1), nil)
	})
}

// The limit also applies to unknown emails, so it does not reveal whether an email is known.
func TestTenWrongPasswordsForAnUnknownEmail(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		for i := range 10 {
			signIn(t, f.Store, "nobody@example.com", wrongPassword, address(i), models.ErrWrongCredentials)
		}
		limited(t, f.Store, "Nobody@example.com", wrongPassword, address(99), time.Minute)
	})
}

// Guessing on while refused does not prolong the limit: the right password works
// a minute after the last guess that was looked at.
func TestRefusedGuessesDoNotProlongTheLimit(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		for range 10 {
			signIn(t, f.Store, c.user.Email, wrongPassword, address(1), models.ErrWrongCredentials)
		}
		for passed := range 59 {
			limited(t, f.Store, c.user.Email, wrongPassword, address(1), time.Minute-time.Duration(passed)*time.Second)
			f.clock.Advance(time.Second)
		}
		f.clock.Advance(time.Second)
		signIn(t, f.Store, c.user.Email, password, address(1), nil)
	})
}

func TestGuessesAtOnceDoNotExceedTheLimit(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		stores := []*models.Store{f.Store}
		for range 3 {
			stores = append(stores, f.open(t, models.Options{}))
		}
		for name, guess := range map[string]func(i int, email string) error{
			"one instance": func(i int, email string) error {
				return errOf(stores[0].VerifyPassword(t.Context(), email, wrongPassword, address(i)))
			},
			"four instances": func(i int, email string) error {
				return errOf(stores[i%4].VerifyPassword(t.Context(), email, wrongPassword, address(100+i)))
			},
			"from one address": func(i int, email string) error {
				return errOf(stores[i%4].VerifyPassword(t.Context(), fmt.Sprintf("%d.%s", i, email), wrongPassword, address(200)))
			},
		} {
			c := f.customer(t)
			_, errs := atOnce(40, func(i int) error { return guess(i, c.user.Email) })
			var looked, refused int
			for _, err := range errs {
				var limit *models.SignInLimitError
				switch {
				case errors.Is(err, models.ErrWrongCredentials):
					looked++
				case errors.As(err, &limit):
					refused++
				default:
					t.Error(err)
				}
			}
			if looked != 10 || refused != 30 {
				t.Errorf("%s: %d looked at, %d refused", name, looked, refused)
			}
		}
	})
}

// While one instance hashes a password, others go on counting: when they have
// reached the limit it says no more of that password, right or wrong.
func TestLimitReachedElsewhereMeanwhileHoldsForThePasswordInHand(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		elsewhere := f.open(t, models.Options{})
		for _, inHand := range []string{password, wrongPassword} {
			for name, guess := range map[string]func(c customer, i int){
				"for one email": func(c customer, i int) {
					signIn(t, elsewhere, c.user.Email, wrongPassword, address(i), models.ErrWrongCredentials)
				},
				"from one address": func(customer, int) {
					signIn(t, elsewhere, f.customer(t).user.Email, wrongPassword, address(99), models.ErrWrongCredentials)
				},
			} {
				c := f.customer(t)
				store := f.Watched(&onUser{do: func() {
					for i := range 10 {
						guess(c, i)
					}
				}})
				limited(t, store, c.user.Email, inHand, address(99), time.Minute)
				if n := f.count(t, "SELECT count(*) FROM sign_in_failures"); n != 20 {
					t.Errorf("%s: %d rows are counted, of ten passwords", name, n)
				}
				f.exec(t, "DELETE FROM sign_in_failures")
			}
		}
	})
}

// onUser does something the first time that a user is looked for, which is after
// the limit was asked and before the password is hashed.
type onUser struct {
	once sync.Once
	do   func()
}

func (o *onUser) BeforeQuery(ctx context.Context, event *bun.QueryEvent) context.Context {
	if event.IQuery != nil && event.IQuery.GetTableName() == "users" {
		o.once.Do(o.do)
	}
	return ctx
}

func (o *onUser) AfterQuery(context.Context, *bun.QueryEvent) {}

// A guess that cannot be counted gets no answer, or guessing would be free for
// as long as the table cannot be written.
func TestGuessThatCannotBeCountedGetsNoAnswer(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		create := "CREATE TRIGGER refuse BEFORE INSERT ON sign_in_failures BEGIN SELECT RAISE(ABORT, 'full'); END"
		if f.postgres() {
			f.exec(t, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'full'; END $$")
			create = "CREATE TRIGGER refuse BEFORE INSERT ON sign_in_failures EXECUTE FUNCTION refuse()"
		}
		f.exec(t, create)
		if _, err := f.VerifyPassword(t.Context(), c.user.Email, wrongPassword, address(1)); err == nil || errors.Is(err, models.ErrWrongCredentials) {
			t.Errorf("%v", err)
		}
		signIn(t, f.Store, c.user.Email, password, address(1), nil)
	})
}
