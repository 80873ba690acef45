package models_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
)

// identify returns the id of the session with this token.
func (f *fixture) identify(t *testing.T, token string) uuid.UUID {
	t.Helper()
	session, err := f.Session(t.Context(), token, browser)
	must(t, err)
	return session.ID
}

func ids(sessions []models.Session) (ids []uuid.UUID) {
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
			sessions, err := f.Sessions(ctx, c.ID, c.user.ID)
			if err != nil || !slices.Equal(ids(sessions), want) {
				t.Errorf("%s: %v, want %v, %v", when, ids(sessions), want, err)
			}
		}
		list("the most recent first", second, first, idle)
		f.clock.Advance(time.Hour)
		list("one expired, idle for 12 hours", second, first)
		// A request counts at once, before it is written.
		must(t, errOf(f.Session(ctx, token, browser)))
		list("after the first was used", first, second)
		sessions, err := f.Sessions(ctx, c.ID, c.user.ID)
		if err != nil || !sessions[0].LastSeenAt.Equal(f.clock.Now()) || sessions[0].UserAgent != browser.UserAgent ||
			sessions[0].FirstAddress != browser.Address || sessions[1].LastSeenAt.Equal(f.clock.Now()) {
			t.Errorf("%+v, %v", sessions, err)
		}
		for name, pair := range map[string][2]uuid.UUID{
			"asked by another account": {other.ID, c.user.ID}, "of another account's user": {c.ID, other.user.ID}, "of nobody": {c.ID, newID()},
		} {
			if sessions, err := f.Sessions(ctx, pair[0], pair[1]); err != nil || sessions == nil || len(sessions) != 0 {
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
			"by another account":          func() error { return f.RevokeSession(ctx, other.ID, other.user.ID, id, other.actor) },
			"as another account's user's": func() error { return f.RevokeSession(ctx, other.ID, c.user.ID, id, other.actor) },
			"another account's":           func() error { return f.RevokeSession(ctx, c.ID, c.user.ID, otherID, c.actor) },
			"another user's":              func() error { return f.RevokeSession(ctx, c.ID, newID(), id, c.actor) },
			"none":                        func() error { return f.RevokeSession(ctx, c.ID, c.user.ID, newID(), c.actor) },
		} {
			checkError(t, name, revoke(), models.ErrSessionNotFound)
		}
		must(t, f.RevokeSession(ctx, c.ID, c.user.ID, id, c.actor))
		checkError(t, "the revoked session", errOf(f.Session(ctx, lost, browser)), models.ErrSessionNotFound)
		checkError(t, "the other session", errOf(f.Session(ctx, kept, browser)), nil)
		checkError(t, "revoked again", f.RevokeSession(ctx, c.ID, c.user.ID, id, c.actor), models.ErrSessionNotFound)
		latest := f.activities(t, c)[0]
		if latest.Action != models.ActionSessionRevoked || *latest.SubjectID != id || latest.Label != browser.UserAgent {
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
		checkError(t, "by another account", f.RevokeOtherSessions(ctx, other.ID, c.user.ID, uuid.Nil, other.actor), nil)
		if n := f.count(t, "SELECT count(*) FROM sessions WHERE user_id = ?", c.user.ID); n != 3 {
			t.Errorf("after another account's request the user has %d sessions, want 3", n)
		}
		for range 2 { // the second call has nothing left to end
			must(t, f.RevokeOtherSessions(ctx, c.ID, c.user.ID, id, c.actor))
		}
		for _, token := range lost {
			checkError(t, "a revoked session", errOf(f.Session(ctx, token, browser)), models.ErrSessionNotFound)
		}
		for _, token := range []string{kept, foreign} {
			must(t, errOf(f.Session(ctx, token, browser)))
		}
		if revoked := f.recorded(t, c, models.ActionSessionRevoked); len(revoked) != 2 {
			t.Errorf("recorded %+v", revoked)
		}
	})
}
