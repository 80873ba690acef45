package people_test

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
	"portal/models/people"
	"portal/models/value"
)

// longPassword has the maximum length.
var longPassword = "A pass phrase of some words: " + strings.Repeat("0aZ", 33)

// The first right password upgrades a customer's cheap hash to an expensive one, so most tests use
// right passwords late.

// limited attempts to sign in and fails the test unless the limit refuses it for this duration.
func limited(t *testing.T, s *models.Store, email, password, address string, retryAfter time.Duration) {
	t.Helper()
	user, err := s.SignIn.VerifyPassword(t.Context(), email, password, people.Client{Address: address})
	var limit *value.SignInLimitError
	if !errors.As(err, &limit) || errors.Is(err, value.ErrWrongCredentials) || user.ID != uuid.Nil {
		t.Fatalf("%+v, %v, want the limit", user, err)
	}
	if limit.RetryAfter != retryAfter {
		t.Fatalf("retry after %s, want %s", limit.RetryAfter, retryAfter)
	}
}

func TestSignIn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		for _, email := range []string{c.User.Email, strings.ToLower(c.User.Email), strings.ToUpper(c.User.Email), " \t" + c.User.Email + "\n"} {
			user, err := f.SignIn.VerifyPassword(t.Context(), email, password, people.Client{Address: modelstest.Address(1)})
			if err != nil || user.ID != c.User.ID || user.AccountID != c.ID || user.Email != c.User.Email {
				t.Errorf("%q: %+v, %v", email, user, err)
			}
		}
		modelstest.SignIn(t, f.Store, c.User.Email, modelstest.WrongPassword, modelstest.Address(1), value.ErrWrongCredentials)
		modelstest.SignIn(t, f.Store, c.User.Email, "", modelstest.Address(1), value.ErrWrongCredentials)
		modelstest.SignIn(t, f.Store, c.User.Email, other.User.PasswordHash, modelstest.Address(1), value.ErrWrongCredentials)
		for i, email := range []string{"nobody@example.com", "", "' OR 1=1; --", "a\x00b@example.com", "\xff@example.com", c.User.Email + "\x00", strings.Repeat("a", 1<<16)} {
			modelstest.SignIn(t, f.Store, email, password, modelstest.Address(2+i), value.ErrWrongCredentials)
		}
	})
}

// Accents match in both of their forms; see the package password.
func TestPasswordsAreComparedExactly(t *testing.T) {
	// Passwords never reach the database, so one kind of database is enough.
	t.Parallel()
	f := newFixture(t, modelstest.SQLiteURL(t), models.Options{})
	for i, test := range []struct {
		password string
		others   []string
	}{
		{" leading and trailing ", []string{"leading and trailing", " leading and trailing", " Leading and trailing ", " leading and trailing \x00and after"}},
		{"Zu\u0308rich 東京 👩‍💻", []string{"Zurich 東京 👩‍💻", "Zu\u0308rich 東京 👩💻"}},
		// 12 characters.
		{"ünïcödé wörd", []string{"ünïcödé wör", "ünïcödé wördd", "UNÏCÖDÉ WÖRD"}},
		{longPassword, []string{longPassword[:127], longPassword + "x"}},
	} {
		email := fmt.Sprintf("user%d@example.com", i)
		if _, err := f.Accounts.Create(t.Context(), people.NewAccount{Name: "Acme", Email: email, Password: test.password}); err != nil {
			t.Errorf("%q: %v", test.password, err)
			continue
		}
		modelstest.SignIn(t, f.Store, email, test.password, modelstest.Address(i), nil)
		for _, other := range test.others {
			modelstest.SignIn(t, f.Store, email, other, modelstest.Address(i), value.ErrWrongCredentials)
		}
	}
}

func TestTenWrongPasswordsForOneEmail(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.Customer(t), f.Customer(t)
		for i := range 10 {
			if i == 9 { // right passwords never count, or this would be the tenth
				modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(99), nil)
			}
			email := []string{c.User.Email, strings.ToUpper(c.User.Email), " " + c.User.Email}[i%3]
			modelstest.SignIn(t, f.Store, email, modelstest.WrongPassword, modelstest.Address(i), value.ErrWrongCredentials)
			f.Clock.Advance(time.Second)
		}
		limited(t, f.Store, c.User.Email, modelstest.WrongPassword, modelstest.Address(99), 50*time.Second)
		limited(t, f.Store, c.User.Email, password, modelstest.Address(99), 50*time.Second)
		limited(t, f.Store, " "+strings.ToUpper(c.User.Email), password, modelstest.Address(99), 50*time.Second)
		// Other users can sign in, also from that address.
		modelstest.SignIn(t, f.Store, other.User.Email, password, modelstest.Address(0), nil)
		modelstest.SignIn(t, f.Store, other.User.Email, password, modelstest.Address(99), nil)
		// The limit holds on every instance.
		elsewhere := f.Open(t, models.Options{})
		limited(t, elsewhere, c.User.Email, password, modelstest.Address(99), 50*time.Second)

		f.Clock.Advance(50*time.Second - time.Microsecond)
		limited(t, f.Store, c.User.Email, password, modelstest.Address(99), time.Microsecond)
		f.Clock.Advance(time.Microsecond)
		modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(99), nil)
		modelstest.SignIn(t, elsewhere, c.User.Email, password, modelstest.Address(99), nil)
		// One more wrong password reaches the limit again.
		modelstest.SignIn(t, f.Store, c.User.Email, modelstest.WrongPassword, modelstest.Address(99), value.ErrWrongCredentials)
		limited(t, f.Store, c.User.Email, password, modelstest.Address(99), time.Second)
	})
}

// The limit also applies to unknown emails, so it does not reveal whether an email is known.
func TestConcurrentGuessesDoNotExceedTheLimit(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		stores := []*models.Store{f.Store}
		for range 3 {
			stores = append(stores, f.Open(t, models.Options{}))
		}
		for name, guess := range map[string]func(i int, email string) error{
			"one instance, an unknown email": func(i int, email string) error {
				return errOf(stores[0].SignIn.VerifyPassword(t.Context(), "un"+email, modelstest.WrongPassword, people.Client{Address: modelstest.Address(i)}))
			},
			"four instances": func(i int, email string) error {
				return errOf(stores[i%4].SignIn.VerifyPassword(t.Context(), email, modelstest.WrongPassword, people.Client{Address: modelstest.Address(100 + i)}))
			},
			"from one address": func(i int, email string) error {
				return errOf(stores[i%4].SignIn.VerifyPassword(t.Context(), fmt.Sprintf("%d.%s", i, email), modelstest.WrongPassword, people.Client{Address: modelstest.Address(200)}))
			},
		} {
			c := f.Customer(t)
			_, errs := modelstest.AtOnce(20, func(i int) error { return guess(i, c.User.Email) })
			var checked, refused int
			for _, err := range errs {
				var limit *value.SignInLimitError
				switch {
				case errors.Is(err, value.ErrWrongCredentials):
					checked++
				case errors.As(err, &limit):
					refused++
				default:
					t.Error(err)
				}
			}
			if checked != 10 || refused != 10 {
				t.Errorf("%s: %d checked, %d refused", name, checked, refused)
			}
		}
	})
}

// If other instances reach the limit while one instance hashes a password, that password is refused
// too, right or wrong.
func TestLimitReachedDuringHashing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		elsewhere := f.Open(t, models.Options{})
		for _, current := range []string{password, modelstest.WrongPassword} {
			for _, guess := range []func(c customer, i int){
				func(c customer, i int) { // for one email
					modelstest.SignIn(t, elsewhere, c.User.Email, modelstest.WrongPassword, modelstest.Address(i), value.ErrWrongCredentials)
				},
				func(customer, int) { // from one address
					modelstest.SignIn(t, elsewhere, f.Customer(t).User.Email, modelstest.WrongPassword, modelstest.Address(99), value.ErrWrongCredentials)
				},
			} {
				c := f.Customer(t)
				var once sync.Once
				// The first query of a user runs after the check of the limit and
				// before the hashing.
				store := f.WithQueryHook(modelstest.Before(func(ctx context.Context, event *bun.QueryEvent) context.Context {
					if event.IQuery != nil && event.IQuery.GetTableName() == "users" {
						once.Do(func() {
							for i := range 10 {
								guess(c, i)
							}
						})
					}
					// The guesses do not count against its deadline.
					return context.WithoutCancel(ctx)
				}))
				limited(t, store, c.User.Email, current, modelstest.Address(99), time.Minute)
				// Two for each password.
				f.CheckCount(t, 20, "SELECT count(*) FROM sign_in_failures")
				f.Exec(t, "DELETE FROM sign_in_failures")
			}
		}
	})
}

// A guess that cannot be counted fails with another error. Otherwise guesses would have no limit
// while the table cannot be written.
func TestGuessThatCannotBeCountedFails(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		create := "CREATE TRIGGER refuse BEFORE INSERT ON sign_in_failures BEGIN SELECT RAISE(ABORT, 'full'); END"
		if f.Postgres() {
			f.Exec(t, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'full'; END $$")
			create = "CREATE TRIGGER refuse BEFORE INSERT ON sign_in_failures EXECUTE FUNCTION refuse()"
		}
		f.Exec(t, create)
		if _, err := f.SignIn.VerifyPassword(t.Context(), c.User.Email, modelstest.WrongPassword, people.Client{Address: modelstest.Address(1)}); err == nil || errors.Is(err, value.ErrWrongCredentials) {
			t.Errorf("%v", err)
		}
	})
}

func TestRefusedPasswordsAreCountedByReason(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.SQLiteURL(t), models.Options{SignInLimit: 2})
	c, disabled := f.Customer(t), f.Customer(t)
	must(t, errOf(f.DB.NewUpdate().Model(&disabled.User).Set("disabled_at = created_at").WherePK().Exec(t.Context())))
	for _, attempt := range []struct{ email, password, address string }{
		{disabled.User.Email, password, "192.0.2.1"},
		{c.User.Email, modelstest.WrongPassword, "192.0.2.2"},
		{c.User.Email, modelstest.WrongPassword, "192.0.2.3"},
		{c.User.Email, password, "192.0.2.4"},
	} {
		if _, err := f.SignIn.VerifyPassword(t.Context(), attempt.email, attempt.password, people.Client{Address: attempt.address}); err == nil {
			t.Errorf("%v signs in", attempt)
		}
	}
	if got := f.Stats(); got.RefusedWrong != 2 || got.RefusedLimited != 1 || got.RefusedDisabled != 1 {
		t.Errorf("%+v", got)
	}
}
