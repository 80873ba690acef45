package keys_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

const leakURL = "https://git.example.com/modelstest.Acme/site/.env#L3"

func leakedAt(url string, ofAccount ...string) (texts []keys.LeakedText) {
	for _, key := range ofAccount {
		texts = append(texts, keys.NewLeakedText(key, url))
	}
	return texts
}

func TestReportedKeysAreRevokedOfAnyAccount(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.Store = f.Open(t, models.Options{Mail: true})
		ctx, c, disabled := t.Context(), f.Customer(t), f.Customer(t)
		member, outsider := f.Member(t, c, people.RoleMember), f.Member(t, c, people.RoleMember)
		key, secret := f.Generate(t, c, form("production"), record.UserActor(member.ID, ""))
		_, kept := f.Key(t, c)
		revoked, revokedSecret := f.Key(t, c)
		f.Revoke(t, revoked)
		_, ofDisabled := f.Key(t, disabled)
		f.Exec(t, "UPDATE accounts SET disabled_at = created_at WHERE id = ?", disabled.ID)
		f.Exec(t, "DELETE FROM outbox")

		texts := leakedAt(leakURL, secret, "nas_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz4YgeBw", revokedSecret, "", ofDisabled, secret[:39]+"!", secret)
		want := []keys.LeakOutcome{
			keys.LeakRevoked, keys.LeakUnknown, keys.LeakInactive, keys.LeakUnknown, keys.LeakRevoked,
			keys.LeakUnknown, keys.LeakInactive,
		}
		for _, want := range [][]keys.LeakOutcome{want, {
			keys.LeakInactive, keys.LeakUnknown, keys.LeakInactive, keys.LeakUnknown, keys.LeakInactive,
			keys.LeakUnknown, keys.LeakInactive,
		}} {
			if got := modelstest.Value(f.Leaks.Revoke(ctx, texts, record.LeakGitHub, ""))(t); !slices.Equal(got, want) {
				t.Errorf("outcomes %s, want %s", got, want)
			}
			f.Clock.Advance(time.Hour)
		}
		checkError(t, "the key", errOf(f.API.Authenticate(ctx, secret, keys.Source{})), value.ErrKeyRevoked)
		checkError(t, "the key of a disabled account", errOf(f.API.Authenticate(ctx, ofDisabled, keys.Source{})), value.ErrKeyRevoked)
		checkError(t, "another key", errOf(f.API.Authenticate(ctx, kept, keys.Source{})), nil)
		found := modelstest.Value(f.Keys.Find(ctx, c.ID, key.ID))(t)
		if found.Leak.Reporter != record.LeakGitHub || found.Leak.URL != leakURL || found.LastUsedAt != nil {
			t.Errorf("found %+v", found)
		}
		if before := modelstest.Value(f.Keys.Find(ctx, c.ID, revoked.ID))(t); before.Leak.String() != "" || before.RevokedAt.After(*found.RevokedAt) {
			t.Errorf("the key that was revoked before changed: %+v", before)
		}
		activities := f.Recorded(t, c, record.ActionKeyLeaked)
		if len(activities) != 1 || activities[0].Leak().String() != "Reported as leaked by GitHub: "+leakURL || activities[0].ActorName != "Someone" {
			t.Errorf("recorded %+v", activities)
		}
		for recipient, want := range map[string]int{c.User.Email: 1, member.Email: 1, outsider.Email: 0, disabled.User.Email: 1} {
			f.CheckCount(t, want, "SELECT count(*) FROM outbox WHERE recipient = ? AND kind = ?", recipient, record.ActionKeyLeaked)
		}
	})
}

// People report the line that they have found.
func TestKeysAreFoundInReportedTexts(t *testing.T) {
	f := newFixture(t, modelstest.SQLiteURL(t), models.Options{})
	c := f.Customer(t)
	_, first := f.Key(t, c)
	_, second := f.Key(t, c)
	lines := keys.LeakedTexts("ONE=" + first + "\nOTHER=nas_example\nTWO=" + second)
	if got := modelstest.Value(f.Leaks.Revoke(t.Context(), lines, record.LeakPublic, ""))(t); !slices.Equal(got, []keys.LeakOutcome{keys.LeakRevoked, keys.LeakRevoked}) {
		t.Errorf("two lines of a file: %s", got)
	}
	for _, text := range []string{"%s\n", " %s", "Bearer %s", "API_KEY=%s", `"%s",`, "https://example.com/?key=%s&x=1", "\u200b%s", "nas_old and %s"} {
		key, secret := f.Key(t, c)
		text = strings.Replace(text, "%s", secret, 1)
		got := modelstest.Value(f.Leaks.Revoke(t.Context(), leakedAt("", text), record.LeakPublic, ""))(t)
		if !slices.Equal(got, []keys.LeakOutcome{keys.LeakRevoked}) {
			t.Errorf("%q: %s", strings.Replace(text, secret, key.Masked(), 1), got)
		}
	}
}

func TestManyOwnersKeepNoMailFromTheUserWhoGeneratedTheKey(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.Store = f.Open(t, models.Options{Mail: true})
		c := f.Customer(t)
		owners := []string{c.User.Email}
		for range 50 {
			owners = append(owners, f.Member(t, c, people.RoleOwner).Email)
		}
		for _, creator := range []people.User{f.Member(t, c, people.RoleMember), f.Member(t, c, people.RoleOwner)} {
			_, secret := f.Generate(t, c, form("production"), record.UserActor(creator.ID, ""))
			f.Exec(t, "DELETE FROM outbox")
			must(t, errOf(f.Leaks.Revoke(t.Context(), leakedAt("", secret), record.LeakGitHub, "")))
			for i, email := range append(owners, creator.Email) {
				want := 1
				if i == 50 {
					want = 0 // of more than 50 owners, the first ones
				}
				f.CheckCount(t, want, "SELECT count(*) FROM outbox WHERE recipient = ?", email)
			}
		}
	})
}

// Anyone can repeat a report of a key that is public.
func TestPublicReportOfARevokedKeyWaitsForNoLock(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.Store = f.Open(t, models.Options{Timeout: models.Timeout})
		c := f.Customer(t)
		key, secret := f.Key(t, c)
		f.Revoke(t, key)
		conn, lock := modelstest.Value(f.DB.Conn(t.Context()))(t), "BEGIN IMMEDIATE"
		if f.Postgres() {
			lock = "BEGIN; LOCK TABLE api_keys IN EXCLUSIVE MODE"
		}
		must(t, errOf(conn.ExecContext(t.Context(), lock)))
		defer func() { must(t, errOf(conn.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK"))) }()
		got, err := f.Leaks.Revoke(t.Context(), leakedAt("", secret), record.LeakPublic, "203.0.113.9")
		if err != nil || !slices.Equal(got, []keys.LeakOutcome{keys.LeakInactive}) {
			t.Errorf("%s, %v", got, err)
		}
	})
}

func TestReportOfAnExpiredKeyChangesNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		tomorrow := time.Now().Add(value.Day) // PostgreSQL has a clock of its own
		key, secret := f.Generate(t, c, restricted(keys.Restrictions{ExpiresAt: &tomorrow}), c.Actor)
		f.Exec(t, "UPDATE api_keys SET expires_at = created_at WHERE id = ?", key.ID)
		f.Clock.Advance(time.Hour)
		got := modelstest.Value(f.Leaks.Revoke(t.Context(), leakedAt("", secret), record.LeakGitHub, ""))(t)
		found := modelstest.Value(f.Keys.Find(t.Context(), c.ID, key.ID))(t)
		if got[0] != keys.LeakInactive || found.RevokedAt != nil || found.Leak.String() != "" {
			t.Errorf("%s: %+v", got, found)
		}
	})
}

func TestReportOfOneKeyToTwoInstancesCountsOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		_, secret := f.Key(t, c)
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		var mu sync.Mutex
		outcomes := map[keys.LeakOutcome]int{}
		_, errs := modelstest.AtOnce(8, func(i int) error {
			got, err := stores[i%2].Leaks.Revoke(t.Context(), leakedAt("", secret), record.LeakPublic, "203.0.113.9")
			mu.Lock()
			defer mu.Unlock()
			for _, outcome := range got {
				outcomes[outcome]++
			}
			return err
		})
		recorded := f.Recorded(t, c, record.ActionKeyLeaked)
		if len(errs) > 0 || outcomes[keys.LeakRevoked] != 1 || outcomes[keys.LeakInactive] != 7 || len(recorded) != 1 {
			t.Errorf("outcomes %v, recorded %+v, errors %v", outcomes, recorded, errs)
		}
		if len(recorded) == 1 && (recorded[0].Address != "203.0.113.9" || recorded[0].Leak().String() != "Reported as leaked") {
			t.Errorf("recorded %+v", recorded[0])
		}
	})
}

func TestURLOfALeakIsSafeToShow(t *testing.T) {
	t.Parallel()
	secret := "nas_" + strings.Repeat("aB3", 12)
	f := newFixture(t, modelstest.SQLiteURL(t), models.Options{})
	c := f.Customer(t)
	long, cut := strings.Repeat("x", 480), strings.Repeat("\u00e9", 486)
	const masked = "nas_...3aB3"
	for reported, want := range map[string]string{
		"":                                       "",
		leakURL:                                  leakURL,
		"http://example.com/a\x00\u202eb\n":      "http://example.com/ab",
		"javascript:alert(1)":                    "javascript:alert(1)",
		"config/prod.env":                        "config/prod.env",
		"https:nothing":                          "https:nothing",
		"https://e.com/nas_tools/x":              "https://e.com/nas_tools/x",
		"https://e.com/?k=" + secret + "&l":      "https://e.com/?k=" + masked + "&l",
		"https://e.com/%6e%61s%5f" + secret[4:]:  "https://e.com/" + masked,
		"https://e.com/100%/%6eas_" + secret[4:]: "https://e.com/100%/" + masked,
		"https://e.com/" + secret[:20] + "%E2%80%8B" + secret[20:]: "https://e.com/" + masked,
		"https://e.com/100%/%2f":                                   "https://e.com/100%/%2f",
		"https://e.com/" + secret[:20] + "\u200b" + secret[20:]:    "https://e.com/" + masked,
		"https://e.com/" + strings.Repeat("\u00e9", 600):           "https://e.com/" + cut,
		"https://e.com/" + long + "/" + secret:                     "https://e.com/" + long + "/nas_.",
	} {
		link := ""
		if strings.Contains(want, "://") && !strings.Contains(want, "%/") {
			link = want
		}
		key, value := f.Key(t, c)
		must(t, errOf(f.Leaks.Revoke(t.Context(), leakedAt(reported, value), record.LeakGitHub, "")))
		found := modelstest.Value(f.Keys.Find(t.Context(), c.ID, key.ID))(t)
		if found.Leak.URL != want || found.Leak.Link() != link {
			t.Errorf("%q: %q with the link %q, want %q and %q", reported, found.Leak.URL, found.Leak.Link(), want, link)
		}
	}
}

func TestOneMailListsKeysThatLeakWithinMinutes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.Store = f.Open(t, models.Options{Mail: true})
		c := f.Customer(t)
		member := f.Member(t, c, people.RoleMember)
		leak := func(label string, by people.User) {
			t.Helper()
			_, secret := f.Generate(t, c, form(label), record.UserActor(by.ID, ""))
			must(t, errOf(f.Leaks.Revoke(t.Context(), leakedAt(leakURL, secret), record.LeakGitHub, "")))
		}
		// reported returns the labels of the keys in the mails that are due.
		reported := func() map[string][]string {
			t.Helper()
			f.Exec(t, "DELETE FROM outbox WHERE kind <> ?", record.ActionKeyLeaked)
			all := map[string][]string{}
			for {
				mail, _, err := f.Outbox.Claim(t.Context())
				if errors.Is(err, value.ErrNoMail) {
					return all
				}
				must(t, err)
				must(t, f.Outbox.Sent(t.Context(), mail))
				if all[mail.Recipient] != nil {
					t.Errorf("a second mail to %s", mail.Recipient)
				}
				for _, key := range mail.Keys {
					all[mail.Recipient] = append(all[mail.Recipient], key.Label)
				}
			}
		}
		check := func(name string, want map[string][]string) {
			t.Helper()
			if got := reported(); !maps.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		leak("1", c.User)
		leak("2", member)
		leak("3", c.User)
		check("immediately", map[string][]string{})
		f.Clock.Advance(10 * time.Second)
		check("after a moment", map[string][]string{c.User.Email: {"1", "2", "3"}, member.Email: {"2"}})
		var later []string
		for i := range 20 { // more than the mails of other kinds in an hour
			later = append(later, strconv.Itoa(10+i))
			leak(later[i], c.User)
			f.Clock.Advance(time.Second)
		}
		check("within five minutes", map[string][]string{})
		f.Clock.Advance(5 * time.Minute)
		check("after five minutes", map[string][]string{c.User.Email: later})
		for i := range 12 {
			leak("hour", c.User)
			f.Clock.Advance(5*time.Minute + 10*time.Second)
			if got := reported()[c.User.Email]; len(got) != 1 {
				t.Errorf("mail %d of an hour: %v", i, got)
			}
		}
	})
}

// A report that comes while the mail about an earlier one is claimed is in another mail.
func TestKeyThatLeaksWhileAMailIsSentIsInTheNext(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.Store = f.Open(t, models.Options{Mail: true})
		c := f.Customer(t)
		_, first := f.Key(t, c)
		second, secret := f.Key(t, c)
		f.Exec(t, "DELETE FROM outbox")
		must(t, errOf(f.Leaks.Revoke(t.Context(), leakedAt("", first), record.LeakGitHub, "")))
		f.Clock.Advance(10 * time.Second)
		mail, _, err := f.Outbox.Claim(t.Context())
		must(t, err)
		must(t, errOf(f.Leaks.Revoke(t.Context(), leakedAt("", secret), record.LeakGitHub, "")))
		must(t, f.Outbox.Sent(t.Context(), mail))
		f.Clock.Advance(5 * time.Minute)
		if mail, _, err = f.Outbox.Claim(t.Context()); err != nil || len(mail.Keys) != 1 || mail.Keys[0].Masked != second.Masked() {
			t.Errorf("%+v, %v", mail.Keys, err)
		}
	})
}
