package people_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/value"
)

// Sign-ins and a reset run concurrently, and the reset leaves no session with the old password.
func TestResetLeavesNoOldSession(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		user := modelstest.Value(f.SignIn.VerifyPassword(t.Context(), c.User.Email, password, people.Client{Address: modelstest.Address(1)}))(t)
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		_, errs := modelstest.AtOnce(9, func(i int) error {
			if i == 4 {
				return f.Credentials.ResetPassword(t.Context(), c.User.Email, newPassword)
			}
			_, err := stores[i%2].SignIn.Start(t.Context(), user, modelstest.Browser)
			return err
		})
		checkErrors(t, "sign in", errs, value.ErrWrongCredentials)
		f.CheckCount(t, 0, "SELECT count(*) FROM sessions")
		checkError(t, "after the reset", errOf(f.SignIn.Start(t.Context(), user, modelstest.Browser)), value.ErrWrongCredentials)
	})
}

// A session that ends while a request is handled cannot change the password.
func TestEndedSessionCannotChangeThePassword(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		session := f.SignedIn(t, c)
		must(t, f.Sessions.End(t.Context(), c.ID, session.ID, c.Actor))
		if token, err := f.Credentials.ChangePassword(t.Context(), session, password, newPassword, c.Actor); !errors.Is(err, value.ErrSessionNotFound) || token != "" {
			t.Errorf("%q, %v", token, err)
		}
		modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(1), nil)
	})
}

// Two concurrent sign-ins that upgrade the same old hash both succeed.
func TestConcurrentUpgradesBothSignIn(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		_, errs := modelstest.AtOnce(2, func(i int) error {
			user, err := stores[i].SignIn.VerifyPassword(t.Context(), c.User.Email, password, people.Client{Address: modelstest.Address(i)})
			if err != nil {
				return err
			}
			_, err = stores[i].SignIn.Start(t.Context(), user, modelstest.Browser)
			return err
		})
		checkErrors(t, "each", errs, nil)
	})
}

// An IPv6 client can choose any address in its network of 64 bits, so the whole network counts as
// one address. An IPv4 address counts alone, in either spelling.
func TestWrongPasswordsFromOneNetwork(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		for _, test := range []struct{ sameNetwork, otherNetworks []string }{
			{
				[]string{
					"2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2:0:5efe::",
					"2001:DB8:1:2::3", "2001:db8:1:2::4%eth0",
				},
				[]string{"2001:db8:1:3::1", "203.0.113.1", "::ffff:203.0.113.2", "no address"},
			},
			{[]string{"203.0.113.1", "::ffff:203.0.113.1"}, []string{"203.0.113.2"}},
		} {
			from := func(i int) string { return test.sameNetwork[i%len(test.sameNetwork)] }
			for i := range 10 {
				modelstest.SignIn(t, f.Store, f.Customer(t).User.Email, modelstest.WrongPassword, from(i), value.ErrWrongCredentials)
			}
			c := f.Customer(t)
			limited(t, f.Store, c.User.Email, password, from(10), time.Minute)
			limited(t, f.Open(t, models.Options{}), "nobody@example.com", password, from(10), time.Minute)
			for _, other := range test.otherNetworks {
				modelstest.SignIn(t, f.Store, c.User.Email, password, other, nil)
			}
			f.Clock.Advance(time.Minute)
			modelstest.SignIn(t, f.Store, c.User.Email, password, from(10), nil)
		}
	})
}

// oneHash is the memory that hashing one password takes in the next test, in bytes: much more than
// the rest of an attempt.
const oneHash = 8 << 20

// The response time must not reveal whether an email is known. So every attempt costs one hash with
// the current parameters and the same statements in the same order. Because measured times would
// also depend on the machine's load, the test compares that work.
func TestUnknownEmailIsAsMuchWork(t *testing.T) {
	// This test does not run in parallel, because memory is measured for the whole process.
	modelstest.Databases(t, func(t *testing.T, url string) {
		f := newFixture(t, url, models.Options{PasswordMemory: oneHash >> 10})
		for _, email := range []string{"ada@example.com", "disabled@example.com"} {
			must(t, errOf(f.Accounts.Create(t.Context(), modelstest.Acme(email))))
		}
		f.Exec(t, "UPDATE users SET disabled_at = ? WHERE email = 'disabled@example.com'", f.Clock.Now())
		known := f.workOf(t, "ada@example.com")
		if known.memory < oneHash || known.memory >= 2*oneHash {
			t.Errorf("a wrong password for a known email takes %d MiB, and one hash %d", known.memory>>20, oneHash>>20)
		}
		if len(known.statements) == 0 {
			t.Fatal("no statement was seen")
		}
		for _, email := range []string{"nobody@example.com", "disabled@example.com", "", "not an email"} {
			got := f.workOf(t, email)
			if !slices.Equal(got.statements, known.statements) {
				t.Errorf("%q: the statements %q, for a known email %q", email, got.statements, known.statements)
			}
			if got.memory < oneHash || got.memory >= 2*oneHash {
				t.Errorf("%q: %d MiB, one hash takes %d", email, got.memory>>20, oneHash>>20)
			}
		}
		// Refusals are recorded after the response, and only for known emails.
		eventually(t, "the refusals are recorded", func() bool {
			return f.Count(t, "SELECT count(*) FROM activities WHERE action = 'session.refused'") == 2
		})
	})
}

// work is the cost of a sign-in attempt.
type work struct {
	memory     uint64 // allocated, in bytes
	statements []string
}

func (f *fixture) workOf(t *testing.T, email string) work {
	t.Helper()
	seen := &statements{}
	store := f.WithQueryHook(seen)
	ctx := context.WithValue(t.Context(), requestKey{}, seen)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := store.SignIn.VerifyPassword(ctx, email, modelstest.WrongPassword, people.Client{Address: modelstest.Address(1)})
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Fatal("signed in")
	}
	return work{after.TotalAlloc - before.TotalAlloc, seen.list()}
}

// statements is a query hook that collects the operations and tables of the statements of one
// request.
type statements struct {
	mu   sync.Mutex
	seen []string
}

// requestKey marks the context of the request.
type requestKey struct{}

func (s *statements) BeforeQuery(ctx context.Context, event *bun.QueryEvent) context.Context {
	if ctx.Value(requestKey{}) == s {
		s.mu.Lock()
		defer s.mu.Unlock()
		table := ""
		if event.IQuery != nil {
			table = event.IQuery.GetTableName()
		}
		s.seen = append(s.seen, event.Operation()+" "+table)
	}
	return ctx
}

func (s *statements) AfterQuery(context.Context, *bun.QueryEvent) {}

func (s *statements) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}
