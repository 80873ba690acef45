package keys_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/value"
)

func TestGeneratedKey(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, n := t.Context(), f.Customer(t), form("production")
		key, secret := f.Generate(t, c, n, c.Actor)
		hash := sha256.Sum256([]byte(secret))
		modelstest.Facts(t, key, map[string]bool{
			"account":     key.AccountID == c.ID,
			"label":       key.Label == "production",
			"form":        key.FormID == n.FormID,
			"created now": key.CreatedAt.Equal(f.Clock.Now()),
			"active":      key.RevokedAt == nil,
			"unused":      key.LastUsedAt == nil,
			"last four":   key.LastFour == secret[36:],
			"hash":        string(key.KeyHash) == string(hash[:]),
			"masked":      key.Masked() == "nas_..."+secret[36:],
			"UUIDv7":      key.ID.Version() == 7,
		})
		for how, find := range map[string]func() (keys.Key, error){
			"APIKey":             func() (keys.Key, error) { return f.Keys.Find(ctx, c.ID, key.ID) },
			"FindAPIKey":         func() (keys.Key, error) { return f.Keys.FindAsOperator(ctx, key.ID) },
			"FindAPIKeyBySecret": func() (keys.Key, error) { return f.Keys.FindBySecret(ctx, secret) },
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
		other := f.Customer(t)
		for name, id := range map[string]uuid.UUID{"another account's": key.ID, "an unknown": newID(), "the zero": uuid.Nil} {
			if found, err := f.Keys.Find(ctx, other.ID, id); !errors.Is(err, value.ErrKeyNotFound) || found.ID != uuid.Nil {
				t.Errorf("%s key: %+v, %v", name, found, err)
			}
		}
	})
}

func TestLabels(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
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
			"\u0915\u094d\u200d\u0937": "\u0915\u094d\u200d\u0937",
			strings.Repeat("é", 100):   strings.Repeat("é", 100),
			// Composed, as most keyboards write it, and decomposed, as macOS names
			// files.
			strings.Repeat("u\u0308", 100): strings.Repeat("ü", 100),
			" " + strings.Repeat("👩", 100): strings.Repeat("👩", 100),
		} {
			key, _, err := f.Keys.Generate(t.Context(), c.ID, form(label), c.Actor)
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
			key, secret, err := f.Keys.Generate(t.Context(), c.ID, form(label), c.Actor)
			checkInvalid(t, name, err, "label")
			if secret != "" || key.ID != uuid.Nil {
				t.Errorf("%s: %+v", name, key)
			}
		}
		f.CheckCount(t, 12, "SELECT count(*) FROM api_keys")
	})
}

func TestFormGeneratesOneKey(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
		n := form("production")
		first, _ := f.Generate(t, c, n, c.Actor)
		repeat := func(when string) keys.Key {
			t.Helper()
			key, secret, err := f.Keys.Generate(ctx, c.ID, keys.NewKey{Label: "another", FormID: n.FormID}, c.Actor)
			var repeated *keys.RepeatedFormError
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
		f.Revoke(t, first)
		if key := repeat("after it was revoked"); key.RevokedAt == nil {
			t.Errorf("not revoked: %+v", key)
		}
		// A form id is unique only within its account, so no account can use up another's.
		if _, _, err := f.Keys.Generate(ctx, other.ID, n, other.Actor); err != nil {
			t.Errorf("another account's form with this id: %v", err)
		}
		if n := len(f.Activities(t, c)); n != 2 {
			t.Errorf("%d activities for one key generated and revoked, want 2", n)
		}
	})
}

func TestConcurrentSubmissionsGenerateOneKey(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, n := f.Customer(t), form("production")
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		made, errs := modelstest.AtOnce(10, func(i int) error {
			_, _, err := stores[i%2].Keys.Generate(t.Context(), c.ID, n, c.Actor)
			return err
		})
		var repeated *keys.RepeatedFormError
		for _, err := range errs {
			if !errors.As(err, &repeated) {
				t.Error(err)
			}
		}
		if stored := f.Count(t, "SELECT count(*) FROM api_keys"); made != 1 || stored != 1 {
			t.Errorf("%d made, %d stored", made, stored)
		}
	})
}

func TestAccountHasAHundredActiveKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		f.ManyKeys(t, c, value.MaxActiveKeys-1)
		// Concurrent requests on two instances want the last key.
		stores := []*models.Store{f.Store, f.Open(t, models.Options{})}
		made, errs := modelstest.AtOnce(8, func(i int) error {
			_, _, err := stores[i%2].Keys.Generate(ctx, c.ID, form("last"), c.Actor)
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
		f.Key(t, f.Customer(t))
		f.Revoke(t, keys[50])
		f.Key(t, c)
		if _, _, err := f.Keys.Generate(ctx, c.ID, form("one too many"), c.Actor); !errors.Is(err, value.ErrKeyLimit) {
			t.Errorf("beyond the limit again: %v", err)
		}
	})
}

func TestKeysAreListedNewestFirst(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		if keys, err := f.Keys.Active(t.Context(), c.ID); keys == nil || len(keys) != 0 || err != nil {
			t.Errorf("an account without keys: %v, %v", keys, err)
		}
		var made []uuid.UUID
		for range 5 {
			key, _ := f.Key(t, c)
			f.Clock.Advance(time.Second)
			made = append(made, key.ID)
		}
		// Another account's key and a revoked key are not listed.
		f.Key(t, f.Customer(t))
		must(t, errOf(f.Keys.Revoke(t.Context(), c.ID, made[2], "", c.Actor)))
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
		key, secret := f.Key(t, f.Customer(t))
		f.Revoke(t, key)
		if found, err := f.Keys.FindBySecret(ctx, secret); err != nil || found.ID != key.ID || found.RevokedAt == nil {
			t.Errorf("a revoked key: %+v, %v", found, err)
		}
		for value, want := range map[string]error{
			secret[4:]:            value.ErrKeyMissingPrefix,
			secret[:39]:           value.ErrKeyMalformed,
			modelstest.UnknownKey: value.ErrKeyNotFound,
		} {
			if found, err := f.Keys.FindBySecret(ctx, value); !errors.Is(err, want) || found.ID != uuid.Nil {
				t.Errorf("%s: %+v, %v", value, found, err)
			}
		}
		checkError(t, "an unknown id", errOf(f.Keys.FindAsOperator(ctx, newID())), value.ErrKeyNotFound)
	})
}

// A filter of activities or calls offers them.
func TestChoicesAreActiveKeysAndTheLastEndedOnes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, stranger := t.Context(), f.Customer(t), f.Customer(t)
		foreign, _ := f.Key(t, stranger)
		name := map[uuid.UUID]string{}
		byName := map[string]uuid.UUID{"foreign": foreign.ID, "none": uuid.Nil}
		for _, label := range []string{"a", "old", "first", "b", "second", "third"} {
			key, _ := f.Key(t, c)
			name[key.ID], byName[label] = label, key.ID
			if len(label) == 1 {
				continue
			}
			f.Revoke(t, key)
			f.Clock.Advance(time.Minute)
			if label == "old" {
				f.Clock.Advance(keys.RevokedKeysKept)
			}
		}
		for chosen, want := range map[string]string{
			"none": "b a|third second", "a": "b a|third second", "third": "b a|third second",
			"first": "b a|third second first", "old": "b a|third second old",
		} {
			active, ended, err := f.Keys.Choices(ctx, c.ID, byName[chosen], 2)
			must(t, err)
			got := ""
			for i, key := range slices.Concat(active, ended) {
				separator := " "
				if i == len(active) {
					separator = "|"
				}
				got += separator + name[key.ID]
			}
			if strings.TrimSpace(got) != want {
				t.Errorf("with %s chosen: %s, want %s", chosen, got, want)
			}
		}
		_, _, err := f.Keys.Choices(ctx, c.ID, foreign.ID, 2)
		checkError(t, "another account's key", err, value.ErrKeyNotFound)
	})
}
