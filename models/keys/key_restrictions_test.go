package keys_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/value"
)

func prefixes(texts ...string) []netip.Prefix {
	networks := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		networks[i] = netip.MustParsePrefix(text)
	}
	return networks
}

func TestKeyIsRestricted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		first, second, foreign := f.Agent(t, c), f.Agent(t, c), f.Agent(t, other)
		n := restricted(keys.Restrictions{
			ExpiresAt: f.In(30 * value.Day), Agents: []uuid.UUID{second.ID, first.ID, first.ID}, Networks: prefixes("192.0.2.0/24", "2001:db8::/32"),
		})
		n.Note = " for the shop\r\nask Bob "
		key, _ := f.Generate(t, c, n, c.Actor)
		found := modelstest.Value(f.Keys.Find(ctx, c.ID, key.ID))(t)
		r := found.Restrictions()
		modelstest.Facts(t, found, map[string]bool{
			"expiry":   r.ExpiresAt != nil && r.ExpiresAt.Equal(*n.Restrictions.ExpiresAt),
			"agents":   slices.Equal(r.Agents, []uuid.UUID{first.ID, second.ID}),
			"networks": slices.Equal(r.Networks, n.Restrictions.Networks),
			"note":     found.Note == "for the shop\nask Bob",
			"lifetime": found.Lifetime == 30*value.Day,
		})
		before := f.epoch(t)
		if _, err := f.Keys.Restrict(ctx, c.ID, key.ID, "", found.Restrictions(), found.Note, c.Actor); err != nil || len(f.Activities(t, c)) != 3 {
			t.Errorf("unchanged: %v, %d activities", err, len(f.Activities(t, c)))
		}
		for field, r := range map[string]keys.Restrictions{
			"expires":  {ExpiresAt: f.In(0)},
			"agents":   {Agents: []uuid.UUID{foreign.ID}},
			"networks": {Networks: []netip.Prefix{}},
		} {
			checkInvalid(t, field, errOf(f.Keys.Restrict(ctx, c.ID, key.ID, "", r, "", c.Actor)), field)
		}
		checkError(t, "another account", errOf(f.Keys.Restrict(ctx, other.ID, key.ID, "", keys.Restrictions{}, "", other.Actor)), value.ErrKeyNotFound)
		if string(f.epoch(t)) != string(before) {
			t.Error("the epoch changed without a change")
		}
		changed := modelstest.Value(f.Keys.Restrict(ctx, c.ID, key.ID, "", keys.Restrictions{Agents: []uuid.UUID{first.ID}}, "none", c.Actor))(t)
		if changed.ExpiresAt != nil || changed.Lifetime != 0 || changed.Networks != nil || string(f.epoch(t)) == string(before) {
			t.Errorf("changed to %+v", changed)
		}
		detail := f.Activities(t, c)[0].Detail
		for _, want := range []string{"Expires: " + n.Restrictions.ExpiresAt.UTC().Format("2 Jan 2006, 15:04:05 UTC") + " → never\n", "(" + second.ID.String() + ") → " + first.Name, "Networks: 192.0.2.0/24, 2001:db8::/32 → any", `“for the shop\nask Bob” → “none”`} {
			if !strings.Contains(detail, want) {
				t.Errorf("the activity %q has no %q", detail, want)
			}
		}
		end := f.In(30 * value.Day).UTC().Truncate(value.Day)
		must(t, errOf(f.Keys.Restrict(ctx, c.ID, key.ID, "", keys.Restrictions{ExpiresAt: &end}, "", c.Actor)))
		if got, want := f.Activities(t, c)[0].Detail, "Expires: never → "+end.AddDate(0, 0, -1).Format("2 Jan 2006")+", end of day UTC\n"; !strings.HasPrefix(got, want) {
			t.Errorf("the activity is %q, want %q first", got, want)
		}
		for name, note := range map[string]string{"long": strings.Repeat("x", 501), "control": "a\x00b"} {
			if _, err := f.Keys.Restrict(ctx, c.ID, key.ID, "", keys.Restrictions{}, note, c.Actor); err == nil {
				t.Errorf("%s note: no error", name)
			}
			if _, err := f.Keys.Revoke(ctx, c.ID, key.ID, note, c.Actor); err == nil {
				t.Errorf("%s reason: no error", name)
			}
		}
		must(t, errOf(f.Keys.Revoke(ctx, c.ID, key.ID, "leaked", c.Actor)))
		if found := modelstest.Value(f.Keys.Find(ctx, c.ID, key.ID))(t); found.RevocationReason != "leaked" || f.Activities(t, c)[0].Detail != "leaked" {
			t.Errorf("the reason is %q", found.RevocationReason)
		}
		checkError(t, "revoked", errOf(f.Keys.Restrict(ctx, c.ID, key.ID, "", keys.Restrictions{}, "", c.Actor)), value.ErrKeyAlreadyRevoked)
	})
}

// A change that was made from an older version does not undo a later one. If it changes nothing,
// such as the repeat of a form, it succeeds.
func TestStaleChangeOfRestrictionsIsRefused(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		ctx, c := t.Context(), f.Customer(t)
		agent := f.Agent(t, c)
		key, _ := f.Key(t, c)
		opened := modelstest.Value(f.Keys.Find(ctx, c.ID, key.ID))(t).RestrictionsVersion()
		narrow := keys.Restrictions{ExpiresAt: f.In(30 * value.Day), Agents: []uuid.UUID{agent.ID}, Networks: prefixes("192.0.2.0/24")}
		narrowed := modelstest.Value(f.Keys.Restrict(ctx, c.ID, key.ID, opened, narrow, "", c.Actor))(t)
		activities := len(f.Activities(t, c))

		found, err := f.Keys.Restrict(ctx, c.ID, key.ID, opened, keys.Restrictions{}, "a note", c.Actor)
		checkError(t, "stale", err, value.ErrKeyRestricted)
		if found.RestrictionsVersion() != narrowed.RestrictionsVersion() {
			t.Errorf("the current state is %+v", found)
		}
		repeat := narrow
		repeat.ExpiresAt = f.In(30*value.Day + time.Second)
		must(t, errOf(f.Keys.Restrict(ctx, c.ID, key.ID, opened, repeat, "", c.Actor)))
		repeat.ExpiresAt = f.In(31 * value.Day)
		checkError(t, "another day", errOf(f.Keys.Restrict(ctx, c.ID, key.ID, opened, repeat, "", c.Actor)), value.ErrKeyRestricted)
		same := modelstest.Value(f.Keys.Find(ctx, c.ID, key.ID))(t)
		if !same.ExpiresAt.Equal(*narrow.ExpiresAt) || len(same.Agents) != 1 || same.Note != "" || len(f.Activities(t, c)) != activities {
			t.Errorf("a stale change made %+v", same)
		}
		versions := map[string]bool{opened: true, same.RestrictionsVersion(): true}
		for _, next := range []keys.Restrictions{{ExpiresAt: narrow.ExpiresAt}, {Agents: narrow.Agents}, {Networks: narrow.Networks}, {}} {
			key = modelstest.Value(f.Keys.Restrict(ctx, c.ID, key.ID, same.RestrictionsVersion(), next, "a note", c.Actor))(t)
			same = modelstest.Value(f.Keys.Find(ctx, c.ID, key.ID))(t)
			if key.RestrictionsVersion() != same.RestrictionsVersion() || versions[same.RestrictionsVersion()] {
				t.Errorf("%+v has the version of another state", same)
			}
			versions[same.RestrictionsVersion()] = true
		}
	})
}

func TestExpiredKeyHasEnded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		ctx, c := t.Context(), f.Customer(t)
		key, _ := f.Generate(t, c, restricted(keys.Restrictions{ExpiresAt: f.In(time.Hour)}), c.Actor)
		f.ManyKeys(t, c, value.MaxActiveKeys-1)
		checkError(t, "at the limit", errOfGenerate(f.Keys.Generate(ctx, c.ID, form("more"), c.Actor)), value.ErrKeyLimit)
		f.expire(t, key)
		active := modelstest.Value(f.Keys.Active(ctx, c.ID))(t)
		revoked := modelstest.Value(f.Keys.Revoked(ctx, c.ID, value.Page{Limit: 10}))(t).Items
		if len(active) != value.MaxActiveKeys-1 || len(revoked) != 1 || revoked[0].ID != key.ID || !revoked[0].Expired(f.Clock.Now()) {
			t.Errorf("%d active, ended: %+v", len(active), revoked)
		}
		f.Key(t, c)
		checkError(t, "restrict", errOf(f.Keys.Restrict(ctx, c.ID, key.ID, "", keys.Restrictions{}, "", c.Actor)), value.ErrKeyAlreadyRevoked)
		checkError(t, "rename", errOf(f.Keys.Rename(ctx, c.ID, key.ID, "again", c.Actor)), value.ErrKeyAlreadyRevoked)
		must(t, errOf(f.Keys.Revoke(ctx, c.ID, active[0].ID, "", c.Actor)))
		rotation := form("anew")
		rotation.Replaces = key.ID
		checkError(t, "rotate", errOfGenerate(f.Keys.Generate(ctx, c.ID, rotation, c.Actor)), value.ErrKeyAlreadyRevoked)
		f.Clock.Advance(keys.RevokedKeysKept + time.Second)
		if revoked := modelstest.Value(f.Keys.Revoked(ctx, c.ID, value.Page{Limit: 10}))(t).Items; len(revoked) != 0 {
			t.Errorf("after 90 days: %+v", revoked)
		}
	})
}

// expire lets a key expire by every clock.
func (f *fixture) expire(t *testing.T, key keys.Key) {
	t.Helper()
	f.Exec(t, "UPDATE api_keys SET expires_at = ? WHERE id = ?", f.Clock.Now().Add(-time.Second), key.ID)
}

func errOfGenerate(_ keys.Key, _ string, err error) error { return err }

func TestRevocationOfAnExpiredKeyChangesNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.InRealTime()
		ctx, c := t.Context(), f.Customer(t)
		key, secret := f.Key(t, c)
		f.expire(t, key)
		expired, err := f.Keys.Revoke(ctx, c.ID, key.ID, "", record.Operator())
		checkError(t, "revoke", err, value.ErrKeyAlreadyRevoked)
		if expired.ID != key.ID || expired.RevokedAt != nil || len(f.Recorded(t, c, record.ActionKeyRevoked)) > 0 {
			t.Errorf("revoked %+v", expired)
		}
		checkError(t, "authenticate", errOf(f.API.Authenticate(ctx, secret, keys.Source{})), value.ErrKeyExpired)
	})
}

// keyForAnHour returns a key that expires in an hour, on a PostgreSQL whose clock is the process's.
func keyForAnHour(t *testing.T) (f *fixture, c customer, key keys.Key) {
	t.Helper()
	t.Parallel()
	f = newFixture(t, modelstest.PostgresURL(t), models.Options{})
	f.InRealTime()
	c = f.Customer(t)
	key, _ = f.Generate(t, c, restricted(keys.Restrictions{ExpiresAt: f.In(time.Hour)}), c.Actor)
	return f, c, key
}

// A key that works can be revoked even if the clock of the process is ahead of the database's.
func TestRevocationWithAClockAhead(t *testing.T) {
	f, c, key := keyForAnHour(t)
	f.Clock.Advance(2 * time.Hour)
	must(t, errOf(f.Keys.Revoke(t.Context(), c.ID, key.ID, "", c.Actor)))
}

// A process whose clock is behind the database's cannot change a key that has expired.
func TestExpiredKeyStaysExpiredWithAClockBehind(t *testing.T) {
	f, c, key := keyForAnHour(t)
	f.Exec(t, "UPDATE api_keys SET expires_at = now() - interval '1 second'")
	f.Clock.Advance(-time.Hour)
	err := errOf(f.Keys.Restrict(t.Context(), c.ID, key.ID, "", keys.Restrictions{}, "", c.Actor))
	checkError(t, "restrict", err, value.ErrKeyAlreadyRevoked)
}

func TestReplacementHasTheRestrictionsAnew(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		f := newFixture(t, url, models.Options{})
		f.InRealTime()
		ctx, c := t.Context(), f.Customer(t)
		agent := f.Agent(t, c)
		free, _ := f.Key(t, c)
		n := restricted(keys.Restrictions{ExpiresAt: f.In(30 * value.Day), Agents: []uuid.UUID{agent.ID}, Networks: prefixes("192.0.2.1/32")})
		n.Note = "a note"
		old, _ := f.Generate(t, c, n, c.Actor)
		f.Clock.Advance(20 * value.Day)
		limited := f.Open(t, models.Options{KeyMaxLifetime: 7 * value.Day})
		for _, rotation := range []struct {
			store    *models.Store
			key      keys.Key
			lifetime time.Duration
		}{{f.Store, old, 30 * value.Day}, {limited, old, 7 * value.Day}, {limited, free, 7 * value.Day}, {f.Store, free, 0}} {
			n := form("new")
			n.Replaces = rotation.key.ID
			made, _, err := rotation.store.Keys.Generate(ctx, c.ID, n, c.Actor)
			must(t, err)
			if !slices.Equal(made.Agents, rotation.key.Agents) || !slices.Equal(made.Networks, rotation.key.Networks) || made.Note != rotation.key.Note {
				t.Errorf("the replacement is %+v", made)
			}
			if (made.ExpiresAt == nil) != (rotation.lifetime == 0) || made.ExpiresAt != nil && !made.ExpiresAt.Equal(*f.In(rotation.lifetime)) {
				t.Errorf("it expires at %v, want in %v", made.ExpiresAt, rotation.lifetime)
			}
		}
		for name, r := range map[string]keys.Restrictions{"no expiry": {}, "a long expiry": {ExpiresAt: f.In(7*value.Day + time.Second)}} {
			err := errOfGenerate(limited.Keys.Generate(ctx, c.ID, restricted(r), c.Actor))
			checkInvalid(t, name+" with a maximum", err, "expires")
		}
		// Existing keys keep their expiry, or do without.
		for _, key := range []keys.Key{old, free} {
			r := key.Restrictions()
			r.Networks = prefixes("198.51.100.0/24")
			if changed, err := limited.Keys.Restrict(ctx, c.ID, key.ID, "", r, "", c.Actor); err != nil || (changed.ExpiresAt == nil) != (key.ExpiresAt == nil) {
				t.Errorf("%+v, %v", changed, err)
			}
		}
	})
}

func TestRemovedAgentLeavesTheLists(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		agent := f.Agent(t, c)
		key, _ := f.Generate(t, c, restricted(keys.Restrictions{Agents: []uuid.UUID{agent.ID}}), c.Actor)
		must(t, errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.Actor)))
		must(t, errOf(f.Agents.Create(ctx, c.ID, agents.NewAgent{ID: agent.ID, Name: "Anew"}, c.Actor)))
		found := modelstest.Value(f.Keys.Find(ctx, c.ID, key.ID))(t)
		if found.Agents == nil || len(found.Agents) != 0 {
			t.Errorf("the list is %v", found.Agents)
		}
		if _, err := f.Keys.Restrict(ctx, c.ID, key.ID, "", found.Restrictions(), "a note", c.Actor); err != nil {
			t.Errorf("annotate: %v", err)
		}
	})
}

func TestNetworksAreCanonical(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", " 192.0.2.0/24 ": "192.0.2.0/24", "2001:DB8:0:0::1": "2001:db8::1/128", "0.0.0.0/0": "0.0.0.0/0", "::/0": "::/0", //nolint:gocritic // spaces are trimmed
		"::ffff:192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.0/120": "192.0.2.0/24", "::ffff:0.0.0.0/96": "0.0.0.0/0",
	} {
		if networks, err := value.ParseNetworks([]string{"", input, input}); err != nil || len(networks) != 1 || networks[0].String() != want {
			t.Errorf("%q: %v, %v", input, networks, err)
		}
	}
	for _, input := range []string{
		"", "example.com", "192.0.2.1/24", "192.0.02.1", "192.0.2.0/024", "fe80::1%eth0", "fe80::%eth0/64", "2001:db8::1/32", "192.0.2.0/33", "192.0.2",
		"::ffff:0.0.0.0/95", "192.0.2.0/-1", "192.0.2.1:80", "[2001:db8::1]", "\xff",
	} {
		checkInvalid(t, input, errOf(value.ParseNetworks([]string{input})), "networks")
	}
	const named = `networks: "here", "there" are not IP addresses or networks, such as 192.0.2.0/24 or 2001:db8::1. ` +
		"192.0.2.1/24 isn’t a network address. Did you mean 192.0.2.0/24? 198.51.100.9/25 isn’t a network address. Did you mean 198.51.100.0/25?"
	if _, err := value.ParseNetworks([]string{"here", "192.0.2.1/24", "203.0.113.1", "there", "198.51.100.9/25"}); err == nil || err.Error() != named {
		t.Errorf("several wrong networks: %v", err)
	}
	if _, err := value.ParseNetworks(strings.Split(strings.Repeat("x ", 25), " ")); err == nil || !strings.Contains(err.Error(), `"x", and 5 more are not`) {
		t.Errorf("many wrong networks: %v", err)
	}
	if _, err := value.ParseNetworks(strings.Split(strings.Repeat("192.0.2.1 ", 21), " ")); err != nil {
		t.Errorf("repetitions count: %v", err)
	}
	var many []string
	for i := range 21 {
		many = append(many, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}).String())
	}
	if _, err := value.ParseNetworks(many); err == nil {
		t.Error("21 networks: no error")
	}
}
