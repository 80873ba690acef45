package models_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/value"
)

func TestGeneratedKey(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, n := t.Context(), f.customer(t), form("production")
		key, secret := f.generate(t, c, n, c.actor)
		hash := sha256.Sum256([]byte(secret))
		modelstest.Facts(t, key, map[string]bool{
			"account":     key.AccountID == c.ID,
			"label":       key.Label == "production",
			"form":        key.FormID == n.FormID,
			"created now": key.CreatedAt.Equal(f.clock.Now()),
			"active":      key.RevokedAt == nil,
			"unused":      key.LastUsedAt == nil,
			"last four":   key.LastFour == secret[36:],
			"hash":        string(key.KeyHash) == string(hash[:]),
			"masked":      key.Masked() == "nas_..."+secret[36:],
			"UUIDv7":      key.ID.Version() == 7,
		})
		for how, find := range map[string]func() (models.Key, error){
			"APIKey":             func() (models.Key, error) { return f.Keys.Find(ctx, c.ID, key.ID) },
			"FindAPIKey":         func() (models.Key, error) { return f.Keys.FindAsOperator(ctx, key.ID) },
			"FindAPIKeyBySecret": func() (models.Key, error) { return f.Keys.FindBySecret(ctx, secret) },
		} {
			found, err := find()
			modelstest.Facts(t, fmt.Sprintf("%s: %+v, %v", how, found, err), map[string]bool{
				"no error":   err == nil,
				"id":         found.ID == key.ID,
				"label":      found.Label == key.Label,
				"masked":     found.Masked() == key.Masked(),
				"created at": found.CreatedAt.Equal(key.CreatedAt),
				"active":     found.RevokedAt == nil,
				"unused":     found.LastUsedAt == nil,
			})
		}
		other := f.customer(t)
		for name, id := range map[string]uuid.UUID{"another account's": key.ID, "an unknown": newID(), "the zero": uuid.Nil} {
			if found, err := f.Keys.Find(ctx, other.ID, id); !errors.Is(err, value.ErrKeyNotFound) || found.ID != uuid.Nil {
				t.Errorf("%s key: %+v, %v", name, found, err)
			}
		}
	})
}

func TestLabels(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		for label, want := range map[string]string{
			"x":                             "x",
			"  production \t\n":             "production",
			"\u00a0a b\u2003":               "a b",
			"it's; DROP TABLE api_keys; --": "it's; DROP TABLE api_keys; --",
			`<b>"?0"</b> \ % _`:             `<b>"?0"</b> \ % _`,
			"Zürich 東京 👩‍💻":                 "Zürich 東京 👩‍💻",
			// An emoji, not the sign.
			"\u2764\ufe0f production": "\u2764\ufe0f production",
			// A joiner in a Persian word.
			"\u0645\u06cc\u200c\u062e\u0648": "\u0645\u06cc\u200c\u062e\u0648",
			// And in a Hindi one.
			"\u0915\u094d\u200d\u0937":     "\u0915\u094d\u200d\u0937",
			strings.Repeat("é", 100):       strings.Repeat("é", 100),
			" " + strings.Repeat("👩", 100): strings.Repeat("👩", 100),
		} {
			key, _, err := f.Keys.Generate(t.Context(), c.ID, form(label), c.actor)
			if err != nil {
				t.Errorf("%q: %v", label, err)
				continue
			}
			stored, err := f.Keys.Find(t.Context(), c.ID, key.ID)
			if err != nil || key.Label != want || stored.Label != want {
				t.Errorf("%q became %q, stored %q, %v", label, key.Label, stored.Label, err)
			}
		}
		for name, label := range map[string]string{
			"a zero width space alone":            "\u200b",
			"joiners alone":                       "\u200d\u200c",
			"a Hangul filler alone":               "\u3164",
			"a blank Braille pattern alone":       "\u2800",
			"a zero width space inside":           "a\u200bb",
			"a soft hyphen inside":                "pro\u00adduction",
			"a word joiner at the end":            "production\u2060",
			"a joiner in an English word":         "ad\u200cmin",
			"a joiner at the end":                 "\u0645\u06cc\u200c",
			"a variation selector after a letter": "production\ufe0f",
			"a right-to-left override":            "\u202enoitcudorp",
			"a bidi isolate":                      "a\u2066b\u2069",
			"a left-to-right mark":                "a\u200eb",
			"a tag character":                     "a\U000e0061",
			"a line separator inside":             "a\u2028b",
			"empty":                               "",
			"spaces alone":                        " \t\r\n\u00a0\u2003",
			"101 characters":                      strings.Repeat("a", 101),
			"101 wide characters":                 strings.Repeat("é", 101),
			"a line break inside":                 "a\nb",
			"a tab inside":                        "a\tb",
			"a NUL":                               "a\x00b",
			"an escape":                           "a\x1b[31mb",
			"DEL":                                 "a\x7fb",
			"a C1 control":                        "a\u0085b",
			"not UTF-8":                           "a\xffb",
			"a cut off UTF-8 rune":                "a\xc3",
		} {
			key, secret, err := f.Keys.Generate(t.Context(), c.ID, form(label), c.actor)
			checkInvalid(t, name, err, "label")
			if secret != "" || key.ID != uuid.Nil {
				t.Errorf("%s: %+v", name, key)
			}
		}
		f.checkCount(t, 11, "SELECT count(*) FROM api_keys")
	})
}

func TestFormGeneratesOneKey(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		n := form("production")
		first, _ := f.generate(t, c, n, c.actor)
		repeat := func(when string) models.Key {
			t.Helper()
			key, secret, err := f.Keys.Generate(ctx, c.ID, models.NewKey{Label: "another", FormID: n.FormID}, c.actor)
			var repeated *models.RepeatedFormError
			if !errors.As(err, &repeated) {
				t.Fatalf("%s: %+v, %v", when, key, err)
			}
			modelstest.Facts(t, fmt.Sprintf("%s: %+v", when, repeated), map[string]bool{
				"id":        repeated.Key.ID == first.ID,
				"label":     repeated.Key.Label == "production",
				"masked":    repeated.Key.Masked() == first.Masked(),
				"no secret": secret == "",
				"no key":    key.ID == uuid.Nil,
			})
			return repeated.Key
		}
		if key := repeat("while the key is active"); key.RevokedAt != nil {
			t.Errorf("revoked: %+v", key)
		}
		f.revoke(t, first)
		if key := repeat("after it was revoked"); key.RevokedAt == nil {
			t.Errorf("not revoked: %+v", key)
		}
		// A form id is unique only within its account, so no account can use up another's.
		if _, _, err := f.Keys.Generate(ctx, other.ID, n, other.actor); err != nil {
			t.Errorf("another account's form with this id: %v", err)
		}
		if n := len(f.activities(t, c)); n != 2 {
			t.Errorf("%d activities for one key generated and revoked, want 2", n)
		}
	})
}

func TestConcurrentSubmissionsGenerateOneKey(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, n := f.customer(t), form("production")
		stores := []*models.Store{f.Store, f.open(t, models.Options{})}
		made, errs := atOnce(10, func(i int) error {
			_, _, err := stores[i%2].Keys.Generate(t.Context(), c.ID, n, c.actor)
			return err
		})
		var repeated *models.RepeatedFormError
		for _, err := range errs {
			if !errors.As(err, &repeated) {
				t.Error(err)
			}
		}
		if stored := f.count(t, "SELECT count(*) FROM api_keys"); made != 1 || stored != 1 {
			t.Errorf("%d made, %d stored", made, stored)
		}
	})
}

func TestAccountHasAHundredActiveKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		f.manyKeys(t, c, value.MaxActiveKeys-1)
		// Concurrent requests on two instances want the last key.
		stores := []*models.Store{f.Store, f.open(t, models.Options{})}
		made, errs := atOnce(8, func(i int) error {
			_, _, err := stores[i%2].Keys.Generate(ctx, c.ID, form("last"), c.actor)
			return err
		})
		checkErrors(t, "a key beyond the limit", errs, value.ErrKeyLimit)
		keys, err := f.Keys.Active(ctx, c.ID)
		if err != nil || made != 1 || len(keys) != value.MaxActiveKeys {
			t.Fatalf("%d made, %d active, %v", made, len(keys), err)
		}
		if !strings.Contains(value.ErrKeyLimit.Error(), "100") {
			t.Errorf("the error does not name the limit: %v", value.ErrKeyLimit)
		}
		// Revoked keys and keys of other accounts do not count.
		f.key(t, f.customer(t))
		f.revoke(t, keys[50])
		f.key(t, c)
		if _, _, err := f.Keys.Generate(ctx, c.ID, form("one too many"), c.actor); !errors.Is(err, value.ErrKeyLimit) {
			t.Errorf("beyond the limit again: %v", err)
		}
	})
}

func TestKeysAreListedNewestFirst(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		if keys, err := f.Keys.Active(t.Context(), c.ID); keys == nil || len(keys) != 0 || err != nil {
			t.Errorf("an account without keys: %v, %v", keys, err)
		}
		var made []uuid.UUID
		for range 5 {
			key, _ := f.key(t, c)
			f.clock.Advance(time.Second)
			made = append(made, key.ID)
		}
		// Another account's key and a revoked key are not listed.
		f.key(t, f.customer(t))
		must(t, errOf(f.Keys.Revoke(t.Context(), c.ID, made[2], "", c.actor)))
		keys, err := f.Keys.Active(t.Context(), c.ID)
		var listed []uuid.UUID
		for _, key := range keys {
			listed = append(listed, key.ID)
		}
		if want := []uuid.UUID{made[4], made[3], made[1], made[0]}; err != nil || !slices.Equal(listed, want) {
			t.Errorf("listed %v, want %v, %v", listed, want, err)
		}
	})
}

func TestKeyIsFoundByItsValue(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		key, secret := f.key(t, f.customer(t))
		f.revoke(t, key)
		if found, err := f.Keys.FindBySecret(ctx, secret); err != nil || found.ID != key.ID || found.RevokedAt == nil {
			t.Errorf("a revoked key: %+v, %v", found, err)
		}
		for value, want := range map[string]error{
			secret[4:]:  value.ErrKeyMissingPrefix,
			secret[:39]: value.ErrKeyMalformed,
			unknownKey:  value.ErrKeyNotFound,
		} {
			if found, err := f.Keys.FindBySecret(ctx, value); !errors.Is(err, want) || found.ID != uuid.Nil {
				t.Errorf("%s: %+v, %v", value, found, err)
			}
		}
		checkError(t, "an unknown id", errOf(f.Keys.FindAsOperator(ctx, newID())), value.ErrKeyNotFound)
	})
}

// unknownKey is well-formed, but no account has it.
const unknownKey = "nas_0123456789ABCDEFGHIJKLMNOPQRST49UbFO"

// manyKeys stores n active keys with random hashes.
func (f *fixture) manyKeys(t *testing.T, c customer, n int) {
	t.Helper()
	keys := make([]models.Key, n)
	for i := range keys {
		hash := sha256.Sum256([]byte(newID().String()))
		keys[i] = models.Key{
			ID: newID(), AccountID: c.ID, Label: fmt.Sprint(i), KeyHash: hash[:], LastFour: "0000",
			FormID: newID(), CreatedAt: f.clock.Now(), Access: models.AccessAgents, Credential: models.CredentialSecret,
		}
	}
	must(t, errOf(f.db.NewInsert().Model(&keys).Exec(t.Context())))
}

// activities returns the account's activity log, the newest first.
func (f *fixture) activities(t *testing.T, c customer) []record.Activity {
	t.Helper()
	return f.recorded(t, c)
}

// recorded returns the account's activities with these actions, or all, the newest first.
func (f *fixture) recorded(t *testing.T, c customer, actions ...record.Action) []record.Activity {
	t.Helper()
	activities := modelstest.Value(f.Activity.List(t.Context(), c.ID, record.ActivityPage{Limit: 1000, Actions: actions}))(t)
	return activities
}

// atOnce calls do n times concurrently. It returns the number of successes and the errors of the
// other calls.
func atOnce(n int, do func(i int) error) (succeeded int, failures []error) {
	start, results := make(chan struct{}), make(chan error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			<-start
			results <- do(i)
		})
	}
	close(start)
	running.Wait()
	close(results)
	for err := range results {
		if err == nil {
			succeeded++
		} else {
			failures = append(failures, err)
		}
	}
	return succeeded, failures
}
