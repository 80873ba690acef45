package models_test

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
	session := f.find(t, token)
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
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		idle := f.identify(t, f.session(t, c))
		f.clock.Advance(11 * time.Hour)
		token := f.session(t, c)
		first := f.identify(t, token)
		f.clock.Advance(time.Minute)
		second := f.identify(t, f.session(t, c))
		f.session(t, other)
		list := func(when string, want ...uuid.UUID) {
			t.Helper()
			sessions, err := f.Sessions.List(ctx, c.ID, c.user.ID)
			if err != nil || !slices.Equal(ids(sessions), want) {
				t.Errorf("%s: %v, want %v, %v", when, ids(sessions), want, err)
			}
		}
		list("the most recent first", second, first, idle)
		f.clock.Advance(time.Hour)
		list("one expired, idle for 12 hours", second, first)
		// A request counts at once, before it is written.
		must(t, errOf(f.Sessions.Find(ctx, token, browser)))
		list("after the first was used", first, second)
		sessions := modelstest.Value(f.Sessions.List(ctx, c.ID, c.user.ID))(t)
		if len(sessions) != 2 {
			t.Fatalf("%+v", sessions)
		}
		modelstest.Facts(t, sessions, map[string]bool{
			"the first was seen now":      sessions[0].LastSeenAt.Equal(f.clock.Now()),
			"user agent":                  sessions[0].UserAgent == browser.UserAgent,
			"first address":               sessions[0].FirstAddress == browser.Address,
			"the second was seen earlier": !sessions[1].LastSeenAt.Equal(f.clock.Now()),
		})
		for name, pair := range map[string][2]uuid.UUID{
			"asked by another account": {other.ID, c.user.ID}, "of another account's user": {c.ID, other.user.ID}, "of nobody": {c.ID, newID()},
		} {
			if sessions, err := f.Sessions.List(ctx, pair[0], pair[1]); err != nil || sessions == nil || len(sessions) != 0 {
				t.Errorf("%s: %v, %v", name, sessions, err)
			}
		}
		f.clock.Advance(720 * time.Hour)
		list("all expired")
	})
}

func TestSessionIsRevokedFromAnotherSession(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		kept, lost := f.session(t, c), f.session(t, c)
		id := f.identify(t, lost)
		otherID := f.identify(t, f.session(t, other))
		for name, revoke := range map[string]func() error{
			"by another account":          func() error { return f.Sessions.Revoke(ctx, other.ID, other.user.ID, id, other.actor) },
			"as another account's user's": func() error { return f.Sessions.Revoke(ctx, other.ID, c.user.ID, id, other.actor) },
			"another account's":           func() error { return f.Sessions.Revoke(ctx, c.ID, c.user.ID, otherID, c.actor) },
			"another user's":              func() error { return f.Sessions.Revoke(ctx, c.ID, newID(), id, c.actor) },
			"none":                        func() error { return f.Sessions.Revoke(ctx, c.ID, c.user.ID, newID(), c.actor) },
		} {
			checkError(t, name, revoke(), value.ErrSessionNotFound)
		}
		must(t, f.Sessions.Revoke(ctx, c.ID, c.user.ID, id, c.actor))
		checkError(t, "the revoked session", errOf(f.Sessions.Find(ctx, lost, browser)), value.ErrSessionNotFound)
		checkError(t, "the other session", errOf(f.Sessions.Find(ctx, kept, browser)), nil)
		checkError(t, "revoked again", f.Sessions.Revoke(ctx, c.ID, c.user.ID, id, c.actor), value.ErrSessionNotFound)
		latest := f.activities(t, c)[0]
		if latest.Action != record.ActionSessionRevoked || *latest.SubjectID != id || latest.Label != browser.UserAgent {
			t.Errorf("recorded %+v", latest)
		}
	})
}

func TestOtherSessionsAreRevoked(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		kept, foreign := f.session(t, c), f.session(t, other)
		lost := []string{f.session(t, c), f.session(t, c)}
		id := f.identify(t, kept)
		checkError(t, "by another account", f.Sessions.RevokeOthers(ctx, other.ID, c.user.ID, uuid.Nil, other.actor), nil)
		f.checkCount(t, 3, "SELECT count(*) FROM sessions WHERE user_id = ?", c.user.ID)
		for range 2 { // the second call has nothing left to end
			must(t, f.Sessions.RevokeOthers(ctx, c.ID, c.user.ID, id, c.actor))
		}
		for _, token := range lost {
			checkError(t, "a revoked session", errOf(f.Sessions.Find(ctx, token, browser)), value.ErrSessionNotFound)
		}
		for _, token := range []string{kept, foreign} {
			must(t, errOf(f.Sessions.Find(ctx, token, browser)))
		}
		revoked := f.recorded(t, c, record.ActionSessionsRevoked)
		if len(revoked) != 1 || revoked[0].Count != 2 || *revoked[0].SubjectID != c.user.ID {
			t.Errorf("recorded %+v", revoked)
		}
	})
}

// manySessions adds sessions of a user, last seen now.
func (f *fixture) manySessions(t *testing.T, c customer, n int) {
	t.Helper()
	rows := "SELECT gen_random_uuid() AS id, sha256(uuid_send(gen_random_uuid())) AS hash FROM generate_series(1, ?)"
	if !f.postgres() {
		rows = `SELECT lower(hex(randomblob(16))) AS id, randomblob(32) AS hash FROM
			(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n)`
	}
	now := f.clock.Now()
	f.exec(t, `INSERT INTO sessions (id, user_id, token_hash, created_at, last_seen_at, authenticated_at, expires_at, first_address, last_address, user_agent)
		SELECT id, ?, hash, ?, ?, ?, ?, '', '', 'curl' FROM (`+rows+`) AS many`, c.user.ID, now, now, now, now.Add(720*time.Hour), n)
}

func (f *fixture) sessionsOf(t *testing.T, c customer) int {
	t.Helper()
	return f.count(t, "SELECT count(*) FROM sessions WHERE user_id = ?", c.user.ID)
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
				return store.Credentials.ResetPassword(ctx, c.user.Email, newPassword)
			}, 0, 501},
			"change": {func(ctx context.Context, store *models.Store, c customer, s people.Session) error {
				return errOf(store.Credentials.ChangePassword(ctx, s, password, newPassword, c.actor))
			}, 1, 500},
			"revoke": {func(ctx context.Context, store *models.Store, c customer, s people.Session) error {
				return store.Sessions.RevokeOthers(ctx, c.ID, c.user.ID, s.ID, c.actor)
			}, 1, 500},
			"sign in": {func(ctx context.Context, store *models.Store, c customer, _ people.Session) error {
				return errOf(store.SignIn.Start(ctx, c.user, browser))
			}, 100, 0},
		} {
			var few []string
			for _, many := range []int{110, 500} {
				c := f.customer(t)
				session := f.signedIn(t, c)
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
				ended := f.recorded(t, c, record.ActionSessionsRevoked)
				if n := f.sessionsOf(t, c); n != test.left || test.recorded > 0 && (len(ended) != 1 || ended[0].Count != int64(test.recorded)) {
					t.Errorf("%s: %d sessions are left, want %d, recorded %+v", name, n, test.left, ended)
				}
			}
		}
	})
}

func TestUserHasAHundredSessions(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		foreign, used := f.session(t, other), f.session(t, c)
		f.clock.Advance(time.Minute)
		unused := f.session(t, c)
		f.clock.Advance(time.Minute)
		must(t, errOf(f.Sessions.Find(ctx, used, browser)))
		eventually(t, "the use is written", func() bool {
			return f.count(t, "SELECT count(*) FROM sessions WHERE last_seen_at = ?", f.clock.Now()) == 1
		})
		f.manySessions(t, c, 97)
		must(t, errOf(f.Sessions.Find(ctx, f.session(t, c), browser)))
		checkError(t, "the least recently used of 100", errOf(f.Sessions.Find(ctx, unused, browser)), nil)
		f.session(t, c)
		checkError(t, "the least recently used of 101", errOf(f.Sessions.Find(ctx, unused, browser)), value.ErrSessionNotFound)
		for name, token := range map[string]string{"used": used, "another user's": foreign} {
			checkError(t, name, errOf(f.Sessions.Find(ctx, token, browser)), nil)
		}
		_, errs := atOnce(5, func(int) error { return errOf(f.SignIn.Start(ctx, c.user, browser)) })
		checkErrors(t, "each", errs, nil)
		if n := f.sessionsOf(t, c); n != 100 {
			t.Errorf("%d sessions, want 100", n)
		}
		if sessions, err := f.Sessions.List(ctx, c.ID, c.user.ID); err != nil || len(sessions) != 100 {
			t.Errorf("%d sessions are listed, want 100: %v", len(sessions), err)
		}
	})
}

func TestIdleSessionsArePurged(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, idle, c := t.Context(), f.customer(t), f.customer(t)
		f.manySessions(t, idle, 2500)
		f.clock.Advance(12 * time.Hour)
		token := f.session(t, c)
		must(t, f.Erasures.Purge(ctx))
		if n := f.sessionsOf(t, idle); n != 2500 {
			t.Errorf("%d sessions are left within an hour of the idle limit, want 2500", n)
		}
		f.clock.Advance(time.Hour + time.Microsecond)
		must(t, f.Erasures.Purge(ctx))
		if n := f.sessionsOf(t, idle); n != 0 {
			t.Errorf("%d idle sessions are left", n)
		}
		checkError(t, "in use", errOf(f.Sessions.Find(ctx, token, browser)), nil)
	})
}
