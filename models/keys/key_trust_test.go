package keys_test

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/record"
	"portal/models/value"
	"portal/models/widget"
	"portal/models/workload"
)

// gitHubRule accepts the jobs of a repository.
func gitHubRule(environments ...string) workload.Rule {
	rule := workload.Rule{
		Provider: workload.GitHub, Issuer: "https://token.actions.githubusercontent.com", Audience: "https://portal.example.com",
		Claims: map[string][]string{"repository": {"acme/site"}},
	}
	if environments != nil {
		rule.Claims["environment"] = environments
	}
	return rule
}

func trusting(rule workload.Rule) keys.NewKey {
	n := form("deploy")
	n.Trust = &rule
	return n
}

func accessTo(key keys.Key) widget.AccessClaims {
	return widget.AccessClaims{AccountID: key.AccountID, KeyID: key.ID, Rule: *key.TrustVersion}
}

func accepted(id string) keys.WorkloadToken {
	return keys.WorkloadToken{
		Issuer: "https://token.actions.githubusercontent.com", ID: id, ExpiresAt: time.Now().Add(time.Hour),
		Check: func(map[string]string) string { return "" }, Address: "203.0.113.9",
	}
}

func TestKeyWithoutSecret(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, secret := f.Generate(t, c, trusting(gitHubRule("production")), c.Actor)
		found, err := f.Keys.Find(t.Context(), c.ID, key.ID)
		must(t, err)
		if secret != "" || found.Masked() != "Workload identity" || !found.Trust.Equal(gitHubRule("production")) || found.KeyHash != nil {
			t.Errorf("secret %q, key %+v", secret, found)
		}
		caller, err := f.API.AuthenticateAccessToken(t.Context(), accessTo(key), keys.Source{})
		if err != nil || caller.AccountID != c.ID || caller.KeyID != key.ID {
			t.Fatalf("%+v, %v", caller, err)
		}
		if listed, err := f.Keys.Active(t.Context(), c.ID); err != nil || listed[0].LastUsedAt == nil {
			t.Errorf("the use is not counted: %v", err)
		}
		_, _, err = f.Keys.Generate(t.Context(), c.ID, keys.NewKey{Label: "new", FormID: newID(), Replaces: key.ID}, c.Actor)
		checkError(t, "a rotation", err, value.ErrKeyWithoutSecret)
		_, _, err = f.Keys.Generate(t.Context(), c.ID, trusting(workload.Rule{}), c.Actor)
		checkInvalid(t, "no provider", err, "trust.provider")
		other, _ := f.Key(t, c)
		checkError(t, "a rule of a key with a secret", errOf(f.Workload.SetTrust(t.Context(), c.ID, other.ID, "", gitHubRule(), c.Actor)), value.ErrKeyNotFound)
		checkError(t, "another account", errOf(f.Workload.SetTrust(t.Context(), f.Customer(t).ID, key.ID, "", gitHubRule(), c.Actor)), value.ErrKeyNotFound)
		forged := accessTo(key)
		forged.KeyID = other.ID
		checkError(t, "a key with a secret", errOf(f.API.AuthenticateAccessToken(t.Context(), forged, keys.Source{})), value.ErrTrustChanged)
		forged = accessTo(key)
		forged.Rule = uuid.Nil
		checkError(t, "no rule", errOf(f.API.AuthenticateAccessToken(t.Context(), forged, keys.Source{})), widget.ErrInvalid)
	})
}

// A change of the rule ends access tokens on the next request, also on an instance that has them in
// memory, and saving the old rule does not revive them.
func TestTrustEndsAccessTokens(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, _ := f.Generate(t, c, trusting(gitHubRule("production")), c.Actor)
		elsewhere := f.Open(t, models.Options{})
		use := func(claims widget.AccessClaims) error {
			_, err := elsewhere.API.AuthenticateAccessToken(t.Context(), claims, keys.Source{})
			return err
		}
		old := accessTo(key)
		checkError(t, "before", use(old), nil)
		changed, err := f.Workload.SetTrust(t.Context(), c.ID, key.ID, "", gitHubRule("staging"), c.Actor)
		must(t, err)
		checkError(t, "after the change", use(old), value.ErrTrustChanged)
		restored, err := f.Workload.SetTrust(t.Context(), c.ID, key.ID, "", gitHubRule("production"), c.Actor)
		must(t, err)
		checkError(t, "of the first rule", use(old), value.ErrTrustChanged)
		checkError(t, "of the second rule", use(accessTo(changed)), value.ErrTrustChanged)
		checkError(t, "of the third rule", use(accessTo(restored)), nil)
		stale := func(rule workload.Rule) (keys.Key, error) {
			return f.Workload.SetTrust(t.Context(), c.ID, key.ID, changed.TrustVersion.String(), rule, c.Actor)
		}
		current, err := stale(gitHubRule("staging"))
		checkError(t, "a stale form", err, value.ErrTrustChanged)
		repeated, err := stale(gitHubRule("production"))
		checkError(t, "a double click", err, nil)
		if *current.TrustVersion != *restored.TrustVersion || *repeated.TrustVersion != *restored.TrustVersion {
			t.Errorf("a stale form made %v, a double click %v", current.Trust, repeated.Trust)
		}
		f.Revoke(t, key)
		checkError(t, "revoked", use(accessTo(restored)), value.ErrKeyRevoked)
		activities, err := f.Activity.List(t.Context(), c.ID, record.ActivityPage{Limit: 10})
		must(t, err)
		if detail := activities[2].Detail; !strings.Contains(detail, "in environment production") || !strings.Contains(detail, "in environment staging") {
			t.Errorf("the detail is %q", detail)
		}
	})
}

// While two instances are busy with an access token, no request that begins after its rule was
// saved or its key was revoked is accepted, and none before is refused.
func TestAccessTokensEndOnBusyInstances(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, _ := f.Generate(t, c, trusting(gitHubRule()), c.Actor)
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		for round := range 10 {
			want, end := value.ErrTrustChanged, func() (err error) {
				key, err = f.Workload.SetTrust(t.Context(), c.ID, key.ID, "", gitHubRule(), c.Actor)
				return err
			}
			if round == 9 {
				want, end = value.ErrKeyRevoked, func() error {
					f.Revoke(t, key)
					return nil
				}
			}
			claims := accessTo(key)
			var began, ended atomic.Bool
			var accepted atomic.Int64
			var group sync.WaitGroup
			for i := range 8 {
				group.Go(func() {
					for late := 0; late < 10; {
						early, after := !began.Load(), ended.Load()
						_, err := stores[i%2].API.AuthenticateAccessToken(t.Context(), claims, keys.Source{})
						// The request ended before the change began.
						early = early && !began.Load()
						switch {
						case err == nil && !after:
							accepted.Add(1)
						case !errors.Is(err, want) || early:
							t.Errorf("round %d, early %t, late %t: %v", round, early, after, err)
							return
						case after:
							late++
						}
					}
				})
			}
			for wait := time.Now(); accepted.Load() < 100 && time.Since(wait) < time.Minute; {
				time.Sleep(time.Millisecond)
			}
			began.Store(true)
			must(t, end())
			ended.Store(true)
			group.Wait()
		}
	})
}

func TestExchanges(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, _ := f.Generate(t, c, trusting(gitHubRule()), c.Actor)
		read, err := f.API.WorkloadKey(t.Context(), key.ID)
		must(t, err)
		exchange := func(s keys.WorkloadToken) string {
			reason, err := f.API.Exchange(t.Context(), read, s)
			must(t, err)
			return reason
		}
		first := accepted("job 1")
		first.Pins = map[string]string{"repository_id": "1"}
		first.Check = func(pins map[string]string) string {
			if pins != nil && !maps.Equal(pins, first.Pins) {
				return "repository_id is 1 instead of 2"
			}
			return ""
		}
		if reason := exchange(first); reason != "" {
			t.Fatal(reason)
		}
		if reason := exchange(first); reason != "the token was used before" {
			t.Error(reason)
		}
		refused := accepted("job 2")
		refused.Check = func(pins map[string]string) string {
			return "environment is staging, repository_id " + pins["repository_id"]
		}
		if reason := exchange(refused); reason != "environment is staging, repository_id 1" {
			t.Error(reason)
		}
		if reason := exchange(accepted("job 2")); reason != "" {
			t.Errorf("a refused token is used up: %s", reason)
		}
		for i := range 2 * keys.MaxExchanges {
			exchange(accepted("more " + strconv.Itoa(i)))
		}
		f.CheckCount(t, keys.MaxExchanges, "SELECT count(*) FROM exchanges")
		listed, err := f.Workload.Exchanges(t.Context(), c.ID, key.ID)
		if err != nil || len(listed) != keys.MaxExchanges || listed[0].Address != "203.0.113.9" {
			t.Errorf("%d exchanges, %v", len(listed), err)
		}
		if foreign, err := f.Workload.Exchanges(t.Context(), f.Customer(t).ID, key.ID); err != nil || len(foreign) > 0 {
			t.Errorf("another account sees %d exchanges, %v", len(foreign), err)
		}
		// Saving the rule clears the pins, and ends what was read before.
		must(t, errOf(f.Workload.SetTrust(t.Context(), c.ID, key.ID, "", gitHubRule(), c.Actor)))
		_, err = f.API.Exchange(t.Context(), read, accepted("late"))
		checkError(t, "a rule that was saved since", err, value.ErrKeyUnknown)
		if read, err = f.API.WorkloadKey(t.Context(), key.ID); err != nil || read.TrustPins != nil {
			t.Errorf("the pins are %v, %v", read.TrustPins, err)
		}
		f.Revoke(t, key)
		checkError(t, "a revoked key", errOf(f.API.WorkloadKey(t.Context(), key.ID)), value.ErrKeyUnknown)
		withSecret, _ := f.Key(t, c)
		checkError(t, "a key with a secret", errOf(f.API.WorkloadKey(t.Context(), withSecret.ID)), value.ErrKeyUnknown)
	})
}

// A token is accepted once, by whichever instance and key.
func TestTokenIsUsedOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		var keys []keys.Key
		for range 4 {
			c := f.Customer(t)
			key, _ := f.Generate(t, c, trusting(gitHubRule()), c.Actor)
			keys = append(keys, key)
		}
		var group sync.WaitGroup
		reasons := make([]string, 8)
		errs := make([]error, 8)
		for i := range reasons {
			group.Go(func() { reasons[i], errs[i] = stores[i%2].API.Exchange(t.Context(), keys[i/2], accepted("once")) })
		}
		group.Wait()
		must(t, errors.Join(errs...))
		uses := 0
		for _, reason := range reasons {
			if reason == "" {
				uses++
			}
		}
		if uses != 1 {
			t.Errorf("the token was accepted %d times: %q", uses, reasons)
		}
	})
}

// Anyone can paste keys for an issuer and sign any jti with them.
func TestATokenOfPastedKeysIsUsedInItsAccountOnly(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		rule := gitHubRule()
		rule.Issuer = "https://github.acme.com/_services/token"
		rule.JWKS = []byte(`{"keys":[{"kty":"EC","kid":"1","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`)
		token := accepted("once")
		token.Issuer = rule.Issuer
		c := f.Customer(t)
		for _, first := range []customer{f.Customer(t), c} {
			key, _ := f.Generate(t, first, trusting(rule), first.Actor)
			if reason, err := f.API.Exchange(t.Context(), key, token); err != nil || reason != "" {
				t.Errorf("the first use in an account: %q, %v", reason, err)
			}
		}
		key, _ := f.Generate(t, c, trusting(rule), c.Actor)
		if reason, err := f.API.Exchange(t.Context(), key, token); err != nil || reason != "the token was used before" {
			t.Errorf("again, with another key of its account: %q, %v", reason, err)
		}
	})
}

func TestPutKey(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, id := f.Customer(t), newID()
		put := keys.PutKey{Label: "deploy", Trust: gitHubRule("production", "canary"), Restrict: func(*keys.Restrictions) {}}
		key, created, err := f.Workload.Put(t.Context(), c.ID, id, put, record.Operator())
		must(t, err)
		if !created || key.ID != id {
			t.Errorf("created %t, %+v", created, key)
		}
		must(t, errOf(f.API.Exchange(t.Context(), key, keys.WorkloadToken{Pins: map[string]string{"a": "1"}, Check: accepted("").Check})))
		put.Trust = gitHubRule("canary", "production")
		same, created, err := f.Workload.Put(t.Context(), c.ID, id, put, record.Operator())
		if err != nil || created || *same.TrustVersion != *key.TrustVersion || same.TrustPins["a"] != "1" {
			t.Errorf("a repeat: created %t, %+v, %v", created, same, err)
		}
		f.CheckCount(t, 1, "SELECT count(*) FROM activities WHERE subject_id = ?", id)
		until := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
		put.Label, put.Trust, put.Restrict = "release", gitHubRule("staging"), func(r *keys.Restrictions) { r.ExpiresAt = &until }
		changed, _, err := f.Workload.Put(t.Context(), c.ID, id, put, record.Operator())
		must(t, err)
		if changed.Label != "release" || changed.ExpiresAt == nil || changed.TrustPins != nil || *changed.TrustVersion == *key.TrustVersion {
			t.Errorf("%+v", changed)
		}
		f.CheckCount(t, 4, "SELECT count(*) FROM activities WHERE subject_id = ?", id)
		foreign := f.Customer(t)
		withSecret, _ := f.Key(t, foreign)
		put.Restrict = func(*keys.Restrictions) {}
		for name, attempt := range map[string]struct{ account, id uuid.UUID }{
			"another account's": {foreign.ID, id}, "a key with a secret": {foreign.ID, withSecret.ID},
		} {
			_, _, err := f.Workload.Put(t.Context(), attempt.account, attempt.id, put, record.Operator())
			checkError(t, name, err, value.ErrKeyIDTaken)
		}
		_, _, err = f.Workload.Put(t.Context(), newID(), newID(), put, record.Operator())
		checkError(t, "an unknown account", err, value.ErrAccountNotFound)
		f.Revoke(t, key)
		_, _, err = f.Workload.Put(t.Context(), c.ID, id, put, record.Operator())
		checkError(t, "a revoked key", err, value.ErrKeyIDTaken)
	})
}
