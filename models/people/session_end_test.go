package people_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// identify returns the id of the session with this token.
func (f *fixture) identify(t *testing.T, token string) uuid.UUID {
	t.Helper()
	session := f.Find(t, token)
	return session.ID
}

func ids(sessions []people.Session) (ids []uuid.UUID) {
	for _, session := range sessions {
		ids = append(ids, session.ID)
	}
	return ids
}

func TestSessionsOfAUser(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		idle := f.identify(t, f.Session(t, c))
		f.Clock.Advance(11 * time.Hour)
		token := f.Session(t, c)
		first := f.identify(t, token)
		f.Clock.Advance(time.Minute)
		second := f.identify(t, f.Session(t, c))
		f.Session(t, other)
		list := func(when string, want ...uuid.UUID) {
			t.Helper()
			sessions, err := f.Sessions.List(ctx, c.ID, c.User.ID)
			if err != nil || !slices.Equal(ids(sessions), want) {
				t.Errorf("%s: %v, want %v, %v", when, ids(sessions), want, err)
			}
		}
		list("the most recent first", second, first, idle)
		f.Clock.Advance(time.Hour)
		list("one expired, idle for 12 hours", second, first)
		// A request counts at once, before it is written.
		must(t, errOf(f.Sessions.Find(ctx, token, modelstest.Browser)))
		list("after the first was used", first, second)
		sessions := modelstest.Value(f.Sessions.List(ctx, c.ID, c.User.ID))(t)
		if len(sessions) != 2 {
			t.Fatalf("%+v", sessions)
		}
		modelstest.Facts(t, sessions, map[string]bool{
			"the first was seen now":      sessions[0].LastSeenAt.Equal(f.Clock.Now()),
			"user agent":                  sessions[0].UserAgent == modelstest.Browser.UserAgent,
			"first address":               sessions[0].FirstAddress == modelstest.Browser.Address,
			"the second was seen earlier": !sessions[1].LastSeenAt.Equal(f.Clock.Now()),
		})
		for name, pair := range map[string][2]uuid.UUID{
			"asked by another account": {other.ID, c.User.ID}, "of another account's user": {c.ID, other.User.ID}, "of nobody": {c.ID, newID()},
		} {
			if sessions, err := f.Sessions.List(ctx, pair[0], pair[1]); err != nil || sessions == nil || len(sessions) != 0 {
				t.Errorf("%s: %v, %v", name, sessions, err)
			}
		}
		f.Clock.Advance(720 * time.Hour)
		list("all expired")
	})
}

func TestSessionIsRevokedFromAnotherSession(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		kept, lost := f.Session(t, c), f.Session(t, c)
		id := f.identify(t, lost)
		otherID := f.identify(t, f.Session(t, other))
		for name, revoke := range map[string]func() error{
			"by another account":          func() error { return f.Sessions.Revoke(ctx, other.ID, other.User.ID, id, other.Actor) },
			"as another account's user's": func() error { return f.Sessions.Revoke(ctx, other.ID, c.User.ID, id, other.Actor) },
			"another account's":           func() error { return f.Sessions.Revoke(ctx, c.ID, c.User.ID, otherID, c.Actor) },
			"another user's":              func() error { return f.Sessions.Revoke(ctx, c.ID, newID(), id, c.Actor) },
			"none":                        func() error { return f.Sessions.Revoke(ctx, c.ID, c.User.ID, newID(), c.Actor) },
		} {
			checkError(t, name, revoke(), value.ErrSessionNotFound)
		}
		must(t, f.Sessions.Revoke(ctx, c.ID, c.User.ID, id, c.Actor))
		checkError(t, "the revoked session", errOf(f.Sessions.Find(ctx, lost, modelstest.Browser)), value.ErrSessionNotFound)
		checkError(t, "the other session", errOf(f.Sessions.Find(ctx, kept, modelstest.Browser)), nil)
		checkError(t, "revoked again", f.Sessions.Revoke(ctx, c.ID, c.User.ID, id, c.Actor), value.ErrSessionNotFound)
		latest := f.Activities(t, c)[0]
		if latest.Action != record.ActionSessionRevoked || *latest.SubjectID != id || latest.Label != modelstest.Browser.UserAgent {
			t.Errorf("recorded %+v", latest)
		}
	})
}

func TestOtherSessionsAreRevoked(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		kept, foreign := f.Session(t, c), f.Session(t, other)
		lost := []string{f.Session(t, c), f.Session(t, c)}
		id := f.identify(t, kept)
		checkError(t, "by another account", f.Sessions.RevokeOthers(ctx, other.ID, c.User.ID, uuid.Nil, other.Actor), nil)
		f.CheckCount(t, 3, "SELECT count(*) FROM sessions WHERE user_id = ?", c.User.ID)
		for range 2 { // the second call has nothing left to end
			must(t, f.Sessions.RevokeOthers(ctx, c.ID, c.User.ID, id, c.Actor))
		}
		for _, token := range lost {
			checkError(t, "a revoked session", errOf(f.Sessions.Find(ctx, token, modelstest.Browser)), value.ErrSessionNotFound)
		}
		for _, token := range []string{kept, foreign} {
			must(t, errOf(f.Sessions.Find(ctx, token, modelstest.Browser)))
		}
		revoked := f.Recorded(t, c, record.ActionSessionsRevoked)
		if len(revoked) != 1 || revoked[0].Count != 2 || *revoked[0].SubjectID != c.User.ID {
			t.Errorf("recorded %+v", revoked)
		}
	})
}

// manySessions adds sessions of a user, last seen now.
func (f *fixture) manySessions(t *testing.T, c customer, n int) {
	t.Helper()
	rows := "SELECT gen_random_uuid() AS id, sha256(uuid_send(gen_random_uuid())) AS hash FROM generate_series(1, ?)"
	if !f.Postgres() {
		rows = `SELECT lower(hex(randomblob(16))) AS id, randomblob(32) AS hash FROM
			(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n)`
	}
	now := f.Clock.Now()
	f.Exec(t, `INSERT INTO sessions (id, user_id, token_hash, created_at, last_seen_at, authenticated_at, expires_at, first_address, last_address, user_agent)
		SELECT id, ?, hash, ?, ?, ?, ?, '', '', 'curl' FROM (`+rows+`) AS many`, c.User.ID, now, now, now, now.Add(720*time.Hour), n)
}

func (f *fixture) sessionsOf(t *testing.T, c customer) int {
	t.Helper()
	return f.Count(t, "SELECT count(*) FROM sessions WHERE user_id = ?", c.User.ID)
}

// The work of the portal does not grow with the number of sessions: the database ends them all with
// the same few statements.
func TestManySessionsEndAtOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		for name, test := range map[string]struct {
			end func(context.Context, *models.Store, customer, people.Session) error
			// Of 500 sessions and one more; none recorded: no activity.
			left, recorded int
		}{
			"reset": {func(ctx context.Context, store *models.Store, c customer, _ people.Session) error {
				return store.Credentials.ResetPassword(ctx, c.User.Email, newPassword)
			}, 0, 501},
			"change": {func(ctx context.Context, store *models.Store, c customer, s people.Session) error {
				return errOf(store.Credentials.ChangePassword(ctx, s, password, newPassword, c.Actor))
			}, 1, 500},
			"revoke": {func(ctx context.Context, store *models.Store, c customer, s people.Session) error {
				return store.Sessions.RevokeOthers(ctx, c.ID, c.User.ID, s.ID, c.Actor)
			}, 1, 500},
			"sign in": {func(ctx context.Context, store *models.Store, c customer, _ people.Session) error {
				return errOf(store.SignIn.Start(ctx, c.User, modelstest.Browser))
			}, 100, 0},
		} {
			var few []string
			for _, many := range []int{110, 500} {
				c := f.Customer(t)
				session := f.SignedIn(t, c)
				f.manySessions(t, c, many)
				seen := &statements{}
				ctx := context.WithValue(t.Context(), requestKey{}, seen)
				checkError(t, name, test.end(ctx, f.WithQueryHook(seen), c, session), nil)
				if few == nil {
					few = seen.list()
					continue
				}
				if work := seen.list(); len(work) == 0 || !slices.Equal(work, few) {
					t.Errorf("%s: %q with %d sessions, %q with fewer", name, work, many, few)
				}
				ended := f.Recorded(t, c, record.ActionSessionsRevoked)
				if n := f.sessionsOf(t, c); n != test.left || test.recorded > 0 && (len(ended) != 1 || ended[0].Count != int64(test.recorded)) {
					t.Errorf("%s: %d sessions are left, want %d, recorded %+v", name, n, test.left, ended)
				}
			}
		}
	})
}

func TestUserHasAHundredSessions(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		foreign, used := f.Session(t, other), f.Session(t, c)
		f.Clock.Advance(time.Minute)
		unused := f.Session(t, c)
		f.Clock.Advance(time.Minute)
		must(t, errOf(f.Sessions.Find(ctx, used, modelstest.Browser)))
		eventually(t, "the use is written", func() bool {
			return f.Count(t, "SELECT count(*) FROM sessions WHERE last_seen_at = ?", f.Clock.Now()) == 1
		})
		f.manySessions(t, c, 97)
		must(t, errOf(f.Sessions.Find(ctx, f.Session(t, c), modelstest.Browser)))
		checkError(t, "the least recently used of 100", errOf(f.Sessions.Find(ctx, unused, modelstest.Browser)), nil)
		f.Session(t, c)
		checkError(t, "the least recently used of 101", errOf(f.Sessions.Find(ctx, unused, modelstest.Browser)), value.ErrSessionNotFound)
		for name, token := range map[string]string{"used": used, "another user's": foreign} {
			checkError(t, name, errOf(f.Sessions.Find(ctx, token, modelstest.Browser)), nil)
		}
		_, errs := modelstest.AtOnce(5, func(int) error { return errOf(f.SignIn.Start(ctx, c.User, modelstest.Browser)) })
		checkErrors(t, "each", errs, nil)
		if n := f.sessionsOf(t, c); n != 100 {
			t.Errorf("%d sessions, want 100", n)
		}
		if sessions, err := f.Sessions.List(ctx, c.ID, c.User.ID); err != nil || len(sessions) != 100 {
			t.Errorf("%d sessions are listed, want 100: %v", len(sessions), err)
		}
	})
}

func TestIdleSessionsArePurged(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, idle, c := t.Context(), f.Customer(t), f.Customer(t)
		f.manySessions(t, idle, 2500)
		f.Clock.Advance(12 * time.Hour)
		token := f.Session(t, c)
		must(t, f.Erasures.Purge(ctx))
		if n := f.sessionsOf(t, idle); n != 2500 {
			t.Errorf("%d sessions are left within an hour of the idle limit, want 2500", n)
		}
		f.Clock.Advance(time.Hour + time.Microsecond)
		must(t, f.Erasures.Purge(ctx))
		if n := f.sessionsOf(t, idle); n != 0 {
			t.Errorf("%d idle sessions are left", n)
		}
		checkError(t, "in use", errOf(f.Sessions.Find(ctx, token, modelstest.Browser)), nil)
	})
}
