package models_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

var browser = people.Client{Address: "203.0.113.7", UserAgent: "Mozilla/5.0"}

func (f *fixture) session(t *testing.T, c customer) (token string) {
	t.Helper()
	return modelstest.Value(f.SignIn.Start(t.Context(), c.user, browser))(t).Token
}

// signedIn starts a session and returns it.
func (f *fixture) signedIn(t *testing.T, c customer) people.Session {
	t.Helper()
	return f.find(t, f.session(t, c))
}

// linkSession starts a session with a link, as a user with a second factor can without a code.
func (f *fixture) linkSession(t *testing.T, c customer) (token string) {
	t.Helper()
	return modelstest.Value(f.SignIn.UseLink(t.Context(), f.link(t, c, c.user), browser))(t).Token
}

// find returns the session with this token.
func (f *fixture) find(t *testing.T, token string) people.Session {
	t.Helper()
	return modelstest.Value(f.Sessions.Find(t.Context(), token, browser))(t)
}

// lastSeen returns the stored last-seen time and address of the only session.
func (f *fixture) lastSeen(t *testing.T) (at time.Time, address string) {
	t.Helper()
	f.scan(t, "SELECT last_seen_at, last_address FROM sessions", nil, &at, &address)
	return at, address
}

func TestSessionTokenIsStoredAsAHash(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		token := f.session(t, c)
		session := f.find(t, token)
		modelstest.Facts(t, session, map[string]bool{
			"user":          session.UserID == c.user.ID,
			"email":         session.Email == c.user.Email,
			"account":       session.AccountID == c.ID,
			"account name":  session.AccountName == c.Name,
			"created now":   session.CreatedAt.Equal(f.clock.Now()),
			"seen now":      session.LastSeenAt.Equal(f.clock.Now()),
			"expiry":        session.ExpiresAt.Equal(f.clock.Now().Add(720 * time.Hour)),
			"first address": session.FirstAddress == browser.Address,
			"last address":  session.LastAddress == browser.Address,
			"user agent":    session.UserAgent == browser.UserAgent,
		})
		if random, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(random) != 32 {
			t.Errorf("%s is not 256 bits: %v", token, err)
		}
		var stored []byte
		f.scan(t, "SELECT token_hash FROM sessions", nil, &stored)
		if hash := sha256.Sum256([]byte(token)); string(stored) != string(hash[:]) {
			t.Errorf("stored %x, not %x", stored, hash)
		}
		for name, other := range map[string]string{
			"empty": "", "cut short": token[1:], "longer": token + "A", "other case": strings.ToUpper(token),
			"the hash": string(stored), "a NUL": "\x00", "not UTF-8": "\xff", "long": strings.Repeat("a", 1<<16),
		} {
			if session, err := f.Sessions.Find(t.Context(), other, browser); !errors.Is(err, value.ErrSessionNotFound) || session.ID != uuid.Nil {
				t.Errorf("%s: %+v, %v", name, session, err)
			}
		}
		if other := f.session(t, c); other == token {
			t.Error("two sessions have one token")
		}
	})
}

// Each request restarts the idle limit, also if it is shorter than the interval between writes. A
// refused request restarts nothing.
func TestSessionInUseEndsAtItsAbsoluteLimit(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		for name, test := range map[string]struct {
			options   models.Options
			idle, max time.Duration
		}{
			"by default":   {models.Options{}, 12 * time.Hour, 720 * time.Hour},
			"a short idle": {models.Options{SessionIdle: 30 * time.Second, SessionMax: 10 * time.Minute}, 30 * time.Second, 10 * time.Minute},
		} {
			f.Store = f.open(t, test.options)
			c := f.customer(t)
			find := func(token string) error { return errOf(f.Sessions.Find(t.Context(), token, browser)) }
			step := test.idle - time.Microsecond
			idle := f.session(t, c)
			f.clock.Advance(step)
			checkError(t, name+": just before the idle limit", find(idle), nil)
			f.clock.Advance(test.idle)
			for range 2 {
				checkError(t, name+": idle", find(idle), value.ErrSessionNotFound)
			}

			token, end := f.session(t, c), f.clock.Now().Add(test.max)
			for ; f.clock.Now().Add(step).Before(end); f.clock.Advance(step) {
				checkError(t, name+": in use", find(token), nil)
			}
			checkError(t, name+": in use", find(token), nil)
			f.clock.Advance(end.Sub(f.clock.Now()) - time.Microsecond)
			checkError(t, name+": just before its end", find(token), nil)
			f.clock.Advance(time.Microsecond)
			checkError(t, name+": at its end", find(token), value.ErrSessionNotFound)
		}
	})
}

func TestLastSeenIsWrittenBehind(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		token := f.session(t, f.customer(t))
		created := f.clock.Now()

		// Within a minute, a request writes nothing.
		f.briefly(t, models.Options{}, func(s *models.Store) {
			f.clock.Advance(time.Minute - time.Microsecond)
			must(t, errOf(s.Sessions.Find(ctx, token, browser)))
		})
		if at, _ := f.lastSeen(t); !at.Equal(created) {
			t.Errorf("within a minute of %v: written %v", created, at)
		}
		// Later requests are written in the background.
		f.clock.Advance(time.Microsecond)
		session := modelstest.Value(f.Sessions.Find(ctx, token, browser))(t)
		eventually(t, "it is written", func() bool { at, _ := f.lastSeen(t); return at.Equal(f.clock.Now()) })
		if again, err := f.Sessions.Find(ctx, token, browser); err != nil || !again.LastSeenAt.Equal(f.clock.Now()) || !again.ExpiresAt.Equal(session.ExpiresAt) {
			t.Errorf("%+v, %v", again, err)
		}
		// A new address is written at any time.
		f.briefly(t, models.Options{}, func(s *models.Store) {
			f.clock.Advance(time.Second)
			must(t, errOf(s.Sessions.Find(ctx, token, people.Client{Address: "2001:db8::7", UserAgent: "curl"})))
		})
		at, address := f.lastSeen(t)
		if !at.Equal(f.clock.Now()) || address != "2001:db8::7" {
			t.Errorf("seen at %v from %s", at, address)
		}
		session, err := f.Sessions.Find(ctx, token, browser)
		if err != nil || session.FirstAddress != browser.Address || session.UserAgent != browser.UserAgent {
			t.Errorf("%+v, %v", session, err)
		}
		// An instance whose clock is slow does not move the time back.
		latest := f.clock.Now().Add(time.Hour)
		f.briefly(t, models.Options{}, func(slow *models.Store) {
			f.clock.Advance(2 * time.Minute)
			must(t, errOf(slow.Sessions.Find(ctx, token, browser)))
			f.briefly(t, models.Options{Now: func() time.Time { return latest }}, func(fast *models.Store) {
				must(t, errOf(fast.Sessions.Find(ctx, token, browser)))
			})
		})
		if at, _ := f.lastSeen(t); !at.Equal(latest) {
			t.Errorf("seen at %v, not %v", at, latest)
		}
	})
}

// Disabling a user or account ends access at once in every browser. Enabling it again restores the
// old sessions.
func TestDisablingEndsAccessAtOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		token, otherToken := f.session(t, c), f.session(t, other)
		for table, id := range map[string]uuid.UUID{"users": c.user.ID, "accounts": c.ID} {
			f.exec(t, "UPDATE "+table+" SET disabled_at = ? WHERE id = ?", f.clock.Now(), id)
			if session, err := f.Sessions.Find(ctx, token, browser); !errors.Is(err, value.ErrSessionNotFound) || session.ID != uuid.Nil {
				t.Errorf("disabled in %s: %+v, %v", table, session, err)
			}
			checkError(t, "another account's session", errOf(f.Sessions.Find(ctx, otherToken, browser)), nil)
			signIn(t, f.Store, c.user.Email, password, address(1), value.ErrSignInDisabled)
			signIn(t, f.Store, c.user.Email, wrongPassword, address(1), value.ErrWrongCredentials)
			f.exec(t, "UPDATE "+table+" SET disabled_at = NULL WHERE id = ?", id)
			signIn(t, f.Store, c.user.Email, password, address(1), nil)
			checkError(t, "enabled again in "+table, errOf(f.Sessions.Find(ctx, token, browser)), nil)
		}
		// The operator's API and commands also end the sessions and the keys of an account.
		_, secret := f.key(t, c)
		elsewhere := f.open(t, models.Options{})
		must(t, f.Accounts.SetDisabled(ctx, c.ID, true, record.Operator()))
		checkError(t, "key", errOf(elsewhere.API.Authenticate(ctx, secret, models.Source{})), value.ErrAccountDisabled)
		must(t, f.Accounts.SetDisabled(ctx, c.ID, false, record.Operator()))
		use(t, elsewhere, secret, 1)
		checkError(t, "a session from before", errOf(elsewhere.Sessions.Peek(ctx, token)), value.ErrSessionNotFound)
	})
}

func TestSignOutEndsTheSession(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		token, kept := f.session(t, c), f.session(t, c)
		elsewhere := f.open(t, models.Options{})
		f.clock.Advance(2 * time.Minute)
		// Leaves a last-seen time to write.
		session := modelstest.Value(elsewhere.Sessions.Find(ctx, token, browser))(t)
		for name, end := range map[string]func() error{
			"another account's": func() error { return f.Sessions.End(ctx, other.ID, session.ID, other.actor) },
			"an unknown":        func() error { return f.Sessions.End(ctx, c.ID, newID(), c.actor) },
		} {
			if err := end(); !errors.Is(err, value.ErrSessionNotFound) {
				t.Errorf("%s session: %v", name, err)
			}
		}
		checkError(t, "after refused sign-outs", errOf(f.Sessions.Find(ctx, token, browser)), nil)
		if len(f.activities(t, other)) != 0 || len(f.activities(t, c)) != 2 {
			t.Error("a refused sign-out was recorded")
		}
		must(t, f.Sessions.End(ctx, c.ID, session.ID, c.actor))
		checkError(t, "on another instance", errOf(elsewhere.Sessions.Find(ctx, token, browser)), value.ErrSessionNotFound)
		checkError(t, "ended again", f.Sessions.End(ctx, c.ID, session.ID, c.actor), value.ErrSessionNotFound)
		checkError(t, "the other browser's", errOf(f.Sessions.Find(ctx, kept, browser)), nil)
	})
}

func TestUnusualUserAgents(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		for _, agent := range []string{"", "a\x00b", "\xff\xfe", "'; --", strings.Repeat("é", 1000), strings.Repeat("a", 1<<16), "x" + strings.Repeat("👩", 100)} {
			signedIn, err := f.SignIn.Start(t.Context(), c.user, people.Client{UserAgent: agent})
			if err != nil {
				t.Errorf("%.20q: %v", agent, err)
				continue
			}
			session, err := f.Sessions.Find(t.Context(), signedIn.Token, people.Client{})
			if err != nil || len(session.UserAgent) > 256 || !strings.HasPrefix(strings.ReplaceAll(agent, "\x00", ""), session.UserAgent) {
				t.Errorf("%.20q is stored as %.20q, %v", agent, session.UserAgent, err)
			}
		}
	})
}

// If a transaction holds the row of one session, the flush does not wait for it.
func TestLockedSessionDelaysNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{})
	c := f.customer(t)
	lastSeen := func(token string) time.Time {
		t.Helper()
		session := modelstest.Value(f.Sessions.Peek(t.Context(), token))(t)
		var at time.Time
		f.scan(t, "SELECT last_seen_at FROM sessions WHERE id = ?", []any{session.ID}, &at)
		return at
	}
	locked, token := f.session(t, c), f.session(t, c)
	session := modelstest.Value(f.Sessions.Peek(t.Context(), locked))(t)
	tx := modelstest.Value(f.db.BeginTx(t.Context(), nil))(t)
	defer func() { _ = tx.Rollback() }()
	must(t, errOf(tx.ExecContext(t.Context(), "UPDATE sessions SET user_agent = '' WHERE id = ?", session.ID)))
	f.clock.Advance(10 * time.Minute)
	for _, one := range []string{locked, token} {
		must(t, errOf(f.Sessions.Find(t.Context(), one, browser)))
	}
	eventually(t, "the other session is written", func() bool { return lastSeen(token).Equal(f.clock.Now()) })
	must(t, f.Sessions.Flush(t.Context()))
}

func TestPasswordMakesTheSignInFreshAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		token := f.session(t, c)
		session := modelstest.Value(f.Sessions.Find(ctx, token, browser))(t)
		if f.clock.Advance(10*time.Minute - time.Second); !session.Fresh(f.clock.Now()) {
			t.Error("not fresh before ten minutes")
		}
		if f.clock.Advance(time.Second); session.Fresh(f.clock.Now()) {
			t.Error("fresh after ten minutes")
		}
		checkError(t, "a wrong password", errOf(f.Sessions.Reauthenticate(ctx, session, newPassword, c.actor)), value.ErrWrongCredentials)
		renewed := modelstest.Value(f.Sessions.Reauthenticate(ctx, session, password, c.actor))(t)
		checkError(t, "the old token", errOf(f.Sessions.Find(ctx, token, browser)), value.ErrSessionNotFound)
		for _, fresh := range []bool{true, false} {
			found, err := f.Sessions.Find(ctx, renewed, browser)
			if err != nil || found.Fresh(f.clock.Now()) != fresh {
				t.Errorf("%+v, %v, want fresh %t", found, err, fresh)
			}
			f.clock.Advance(10 * time.Minute)
		}
		_, token = f.newMember(t, c)
		member := modelstest.Value(f.Sessions.Find(ctx, token, browser))(t)
		checkError(t, "without a password", errOf(f.Sessions.Reauthenticate(ctx, member, "", c.actor)), value.ErrSignInTooOld)
	})
}
