package models_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/uptrace/bun"

	"portal/models"
	"portal/models/modelstest"
)

// oneHash is the memory that hashing one password takes, in bytes.
const oneHash = 46 << 20

// The response time must not reveal whether an email is known. So every attempt costs one hash with
// the current parameters and the same statements in the same order. Because measured times would
// also depend on the machine's load, the test compares that work.
func TestUnknownEmailIsAsMuchWork(t *testing.T) {
	// This test does not run in parallel, because memory is measured for the whole process.
	modelstest.Databases(t, func(t *testing.T, url string) {
		f := newFixture(t, url, models.Options{PasswordMemory: models.DefaultPasswordMemory})
		for _, email := range []string{"ada@example.com", "disabled@example.com"} {
			must(t, errOf(f.Accounts.Create(t.Context(), acme(email))))
		}
		f.exec(t, "UPDATE users SET disabled_at = ? WHERE email = 'disabled@example.com'", f.clock.Now())
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
			return f.count(t, "SELECT count(*) FROM activities WHERE action = 'session.refused'") == 2
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
	store := f.Watched(seen)
	ctx := context.WithValue(t.Context(), requestKey{}, seen)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := store.SignIn.VerifyPassword(ctx, email, wrongPassword, models.Client{Address: address(1)})
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
