package people_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// linkSession starts a session with a link, as a user with a second factor can without a code.
func (f *fixture) linkSession(t *testing.T, c customer) (token string) {
	t.Helper()
	return modelstest.Value(f.SignIn.UseLink(t.Context(), f.link(t, c, c.User), modelstest.Browser))(t).Token
}

// lastSeen returns the stored last-seen time and address of the only session.
func (f *fixture) lastSeen(t *testing.T) (at time.Time, address string) {
	t.Helper()
	f.Scan(t, "SELECT last_seen_at, last_address FROM sessions", nil, &at, &address)
	return at, address
}

func TestSessionTokenIsStoredAsAHash(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		token := f.Session(t, c)
		session := f.Find(t, token)
		modelstest.Facts(t, session, map[string]bool{
			"user":          session.UserID == c.User.ID,
			"email":         session.Email == c.User.Email,
			"account":       session.AccountID == c.ID,
			"account name":  session.AccountName == c.Name,
			"created now":   session.CreatedAt.Equal(f.Clock.Now()),
			"seen now":      session.LastSeenAt.Equal(f.Clock.Now()),
			"expiry":        session.ExpiresAt.Equal(f.Clock.Now().Add(720 * time.Hour)),
			"first address": session.FirstAddress == modelstest.Browser.Address,
			"last address":  session.LastAddress == modelstest.Browser.Address,
			"user agent":    session.UserAgent == modelstest.Browser.UserAgent,
		})
		if random, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(random) != 32 {
			t.Errorf("%s is not 256 bits: %v", token, err)
		}
		var stored []byte
		f.Scan(t, "SELECT token_hash FROM sessions", nil, &stored)
		if hash := sha256.Sum256([]byte(token)); string(stored) != string(hash[:]) {
			t.Errorf("stored %x, not %x", stored, hash)
		}
		for name, other := range map[string]string{
			"empty": "", "cut short": token[1:], "longer": token + "A", "other case": strings.ToUpper(token),
			"the hash": string(stored), "a NUL": "\x00", "not UTF-8": "\xff", "long": strings.Repeat("a", 1<<16),
		} {
			if session, err := f.Sessions.Find(t.Context(), other, modelstest.Browser); !errors.Is(err, value.ErrSessionNotFound) || session.ID != uuid.Nil {
				t.Errorf("%s: %+v, %v", name, session, err)
			}
		}
		if other := f.Session(t, c); other == token {
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
			f.Store = f.Open(t, test.options)
			c := f.Customer(t)
			find := func(token string) error { return errOf(f.Sessions.Find(t.Context(), token, modelstest.Browser)) }
			step := test.idle - time.Microsecond
			idle := f.Session(t, c)
			f.Clock.Advance(step)
			checkError(t, name+": just before the idle limit", find(idle), nil)
			f.Clock.Advance(test.idle)
			for range 2 {
				checkError(t, name+": idle", find(idle), value.ErrSessionNotFound)
			}

			token, end := f.Session(t, c), f.Clock.Now().Add(test.max)
			for ; f.Clock.Now().Add(step).Before(end); f.Clock.Advance(step) {
				checkError(t, name+": in use", find(token), nil)
			}
			checkError(t, name+": in use", find(token), nil)
			f.Clock.Advance(end.Sub(f.Clock.Now()) - time.Microsecond)
			checkError(t, name+": just before its end", find(token), nil)
			f.Clock.Advance(time.Microsecond)
			checkError(t, name+": at its end", find(token), value.ErrSessionNotFound)
		}
	})
}

func TestLastSeenIsWrittenBehind(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		token := f.Session(t, f.Customer(t))
		created := f.Clock.Now()

		// Within a minute, a request writes nothing.
		f.Briefly(t, models.Options{}, func(s *models.Store) {
			f.Clock.Advance(time.Minute - time.Microsecond)
			must(t, errOf(s.Sessions.Find(ctx, token, modelstest.Browser)))
		})
		if at, _ := f.lastSeen(t); !at.Equal(created) {
			t.Errorf("within a minute of %v: written %v", created, at)
		}
		// Later requests are written in the background.
		f.Clock.Advance(time.Microsecond)
		session := modelstest.Value(f.Sessions.Find(ctx, token, modelstest.Browser))(t)
		eventually(t, "it is written", func() bool { at, _ := f.lastSeen(t); return at.Equal(f.Clock.Now()) })
		if again, err := f.Sessions.Find(ctx, token, modelstest.Browser); err != nil || !again.LastSeenAt.Equal(f.Clock.Now()) || !again.ExpiresAt.Equal(session.ExpiresAt) {
			t.Errorf("%+v, %v", again, err)
		}
		// A new address is written at any time.
		f.Briefly(t, models.Options{}, func(s *models.Store) {
			f.Clock.Advance(time.Second)
			must(t, errOf(s.Sessions.Find(ctx, token, people.Client{Address: "2001:db8::7", UserAgent: "curl"})))
		})
		at, address := f.lastSeen(t)
		if !at.Equal(f.Clock.Now()) || address != "2001:db8::7" {
			t.Errorf("seen at %v from %s", at, address)
		}
		session, err := f.Sessions.Find(ctx, token, modelstest.Browser)
		if err != nil || session.FirstAddress != modelstest.Browser.Address || session.UserAgent != modelstest.Browser.UserAgent {
			t.Errorf("%+v, %v", session, err)
		}
		// An instance whose clock is slow does not move the time back.
		latest := f.Clock.Now().Add(time.Hour)
		f.Briefly(t, models.Options{}, func(slow *models.Store) {
			f.Clock.Advance(2 * time.Minute)
			must(t, errOf(slow.Sessions.Find(ctx, token, modelstest.Browser)))
			f.Briefly(t, models.Options{Now: func() time.Time { return latest }}, func(fast *models.Store) {
				must(t, errOf(fast.Sessions.Find(ctx, token, modelstest.Browser)))
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
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		token, otherToken := f.Session(t, c), f.Session(t, other)
		for table, id := range map[string]uuid.UUID{"users": c.User.ID, "accounts": c.ID} {
			f.Exec(t, "UPDATE "+table+" SET disabled_at = ? WHERE id = ?", f.Clock.Now(), id)
			if session, err := f.Sessions.Find(ctx, token, modelstest.Browser); !errors.Is(err, value.ErrSessionNotFound) || session.ID != uuid.Nil {
				t.Errorf("disabled in %s: %+v, %v", table, session, err)
			}
			checkError(t, "another account's session", errOf(f.Sessions.Find(ctx, otherToken, modelstest.Browser)), nil)
			modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(1), value.ErrSignInDisabled)
			modelstest.SignIn(t, f.Store, c.User.Email, modelstest.WrongPassword, modelstest.Address(1), value.ErrWrongCredentials)
			f.Exec(t, "UPDATE "+table+" SET disabled_at = NULL WHERE id = ?", id)
			modelstest.SignIn(t, f.Store, c.User.Email, password, modelstest.Address(1), nil)
			checkError(t, "enabled again in "+table, errOf(f.Sessions.Find(ctx, token, modelstest.Browser)), nil)
		}
		// The operator's API and commands also end the sessions and the keys of an account.
		_, secret := f.Key(t, c)
		elsewhere := f.Open(t, models.Options{})
		must(t, f.Accounts.SetDisabled(ctx, c.ID, true, record.Operator()))
		checkError(t, "key", errOf(elsewhere.API.Authenticate(ctx, secret, keys.Source{})), value.ErrAccountDisabled)
		must(t, f.Accounts.SetDisabled(ctx, c.ID, false, record.Operator()))
		modelstest.Use(t, elsewhere, secret, 1)
		checkError(t, "a session from before", errOf(elsewhere.Sessions.Peek(ctx, token)), value.ErrSessionNotFound)
	})
}

func TestSignOutEndsTheSession(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		token, kept := f.Session(t, c), f.Session(t, c)
		elsewhere := f.Open(t, models.Options{})
		f.Clock.Advance(2 * time.Minute)
		// Leaves a last-seen time to write.
		session := modelstest.Value(elsewhere.Sessions.Find(ctx, token, modelstest.Browser))(t)
		for name, end := range map[string]func() error{
			"another account's": func() error { return f.Sessions.End(ctx, other.ID, session.ID, other.Actor) },
			"an unknown":        func() error { return f.Sessions.End(ctx, c.ID, newID(), c.Actor) },
		} {
			if err := end(); !errors.Is(err, value.ErrSessionNotFound) {
				t.Errorf("%s session: %v", name, err)
			}
		}
		checkError(t, "after refused sign-outs", errOf(f.Sessions.Find(ctx, token, modelstest.Browser)), nil)
		if len(f.Activities(t, other)) != 0 || len(f.Activities(t, c)) != 2 {
			t.Error("a refused sign-out was recorded")
		}
		must(t, f.Sessions.End(ctx, c.ID, session.ID, c.Actor))
		checkError(t, "on another instance", errOf(elsewhere.Sessions.Find(ctx, token, modelstest.Browser)), value.ErrSessionNotFound)
		checkError(t, "ended again", f.Sessions.End(ctx, c.ID, session.ID, c.Actor), value.ErrSessionNotFound)
		checkError(t, "the other browser's", errOf(f.Sessions.Find(ctx, kept, modelstest.Browser)), nil)
	})
}

func TestUnusualUserAgents(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		for _, agent := range []string{"", "a\x00b", "\xff\xfe", "'; --", strings.Repeat("é", 1000), strings.Repeat("a", 1<<16), "x" + strings.Repeat("👩", 100)} {
			signedIn, err := f.SignIn.Start(t.Context(), c.User, people.Client{UserAgent: agent})
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
	c := f.Customer(t)
	lastSeen := func(token string) time.Time {
		t.Helper()
		session := modelstest.Value(f.Sessions.Peek(t.Context(), token))(t)
		var at time.Time
		f.Scan(t, "SELECT last_seen_at FROM sessions WHERE id = ?", []any{session.ID}, &at)
		return at
	}
	locked, token := f.Session(t, c), f.Session(t, c)
	session := modelstest.Value(f.Sessions.Peek(t.Context(), locked))(t)
	tx := modelstest.Value(f.DB.BeginTx(t.Context(), nil))(t)
	defer func() { _ = tx.Rollback() }()
	must(t, errOf(tx.ExecContext(t.Context(), "UPDATE sessions SET user_agent = '' WHERE id = ?", session.ID)))
	f.Clock.Advance(10 * time.Minute)
	for _, one := range []string{locked, token} {
		must(t, errOf(f.Sessions.Find(t.Context(), one, modelstest.Browser)))
	}
	eventually(t, "the other session is written", func() bool { return lastSeen(token).Equal(f.Clock.Now()) })
	must(t, f.Sessions.Flush(t.Context()))
}

func TestPasswordMakesTheSignInFreshAgain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		token := f.Session(t, c)
		session := modelstest.Value(f.Sessions.Find(ctx, token, modelstest.Browser))(t)
		if f.Clock.Advance(10*time.Minute - time.Second); !session.Fresh(f.Clock.Now()) {
			t.Error("not fresh before ten minutes")
		}
		if f.Clock.Advance(time.Second); session.Fresh(f.Clock.Now()) {
			t.Error("fresh after ten minutes")
		}
		checkError(t, "a wrong password", errOf(f.Sessions.Reauthenticate(ctx, session, newPassword, c.Actor)), value.ErrWrongCredentials)
		renewed := modelstest.Value(f.Sessions.Reauthenticate(ctx, session, password, c.Actor))(t)
		checkError(t, "the old token", errOf(f.Sessions.Find(ctx, token, modelstest.Browser)), value.ErrSessionNotFound)
		for _, fresh := range []bool{true, false} {
			found, err := f.Sessions.Find(ctx, renewed, modelstest.Browser)
			if err != nil || found.Fresh(f.Clock.Now()) != fresh {
				t.Errorf("%+v, %v, want fresh %t", found, err, fresh)
			}
			f.Clock.Advance(10 * time.Minute)
		}
		_, token = f.newMember(t, c)
		member := modelstest.Value(f.Sessions.Find(ctx, token, modelstest.Browser))(t)
		checkError(t, "without a password", errOf(f.Sessions.Reauthenticate(ctx, member, "", c.Actor)), value.ErrSignInTooOld)
	})
}
