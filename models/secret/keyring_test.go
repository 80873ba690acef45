package secret_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"portal/models/secret"
)

const (
	oldSecret = "the secret of the year 2026, long enough"
	newSecret = "the secret of the year 2027, long enough"
)

func keyring(t *testing.T, current, previous string) secret.Keyring {
	t.Helper()
	k, err := secret.NewKeyring(current, previous)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSecretsHaveAtLeast32Bytes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 32)
	for _, test := range []struct{ secret, previous, refused string }{
		{long, "", ""},
		{long, long, ""},
		{strings.Repeat("é", 16), "", ""},
		{"", "", "the secret"},
		{long[1:], "", "the secret"},
		{long[1:], long, "the secret"},
		{long, long[1:], "the previous secret"},
		{"", long, "the secret"},
	} {
		_, err := secret.NewKeyring(test.secret, test.previous)
		switch {
		case test.refused == "" && err != nil:
			t.Errorf("%q, %q: %v", test.secret, test.previous, err)
		case test.refused != "" && (err == nil || !strings.HasPrefix(err.Error(), test.refused+" must") || strings.Contains(err.Error(), "xxx")):
			t.Errorf("%q, %q: %v", test.secret, test.previous, err)
		}
	}
}

func TestCookieKeys(t *testing.T) {
	t.Parallel()
	old, current := keyring(t, oldSecret, "").CookieKeys(), keyring(t, newSecret, "").CookieKeys()
	if len(old) != 1 || len(old[0]) != 32 || bytes.Equal(old[0], current[0]) {
		t.Errorf("%x and %x", old, current)
	}
	if again := keyring(t, oldSecret, "").CookieKeys(); !bytes.Equal(again[0], old[0]) {
		t.Error("two keyrings of one secret have different keys")
	}
	rotation := keyring(t, newSecret, oldSecret).CookieKeys()
	if len(rotation) != 2 || !bytes.Equal(rotation[0], current[0]) || !bytes.Equal(rotation[1], old[0]) {
		t.Errorf("during a rotation %x", rotation)
	}
	// Each purpose has its own key, so a leaked key does not reveal the others.
	for i, key := range keyring(t, newSecret, oldSecret).Derive("another purpose", 32) {
		if bytes.Equal(key, rotation[i]) {
			t.Error("two purposes have the same key")
		}
	}
	for _, key := range rotation {
		if bytes.Contains([]byte(oldSecret+newSecret), key) {
			t.Error("a key is the secret itself")
		}
	}
}

func TestKeyringPrintsNoSecret(t *testing.T) {
	t.Parallel()
	k := keyring(t, newSecret, oldSecret)
	within := struct{ Keyring secret.Keyring }{k}
	var text bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, value := range []any{k, &k, []secret.Keyring{k}, map[string]secret.Keyring{"k": k}, within, &within} {
			fmt.Fprintf(&text, verb+"\n", value)
		}
	}
	slog.New(slog.NewTextHandler(&text, nil)).Info("start", slog.Any("keyring", k), slog.Any("within", within))
	slog.New(slog.NewJSONHandler(&text, nil)).Info("start", slog.Any("keyring", k), slog.Any("within", within))
	printed := text.String()
	for _, value := range []string{"secret of the year", string(k.CookieKeys()[0])} {
		if strings.Contains(printed, value) || strings.Contains(printed, fmt.Sprintf("%x", value)) {
			t.Errorf("printed:\n%s", printed)
		}
	}
}

func TestSealedValue(t *testing.T) {
	t.Parallel()
	sealer := func(current, previous string) secret.Sealer {
		s, err := secret.NewSealer(keyring(t, current, previous))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	value, ada, bob := []byte("a value"), []byte("ada"), []byte("bob")
	old := sealer(oldSecret, "")
	sealed, id, err := old.Seal(value, ada)
	if err != nil || bytes.Contains(sealed, value) {
		t.Fatalf("%q, %v", sealed, err)
	}
	if again, _, _ := old.Seal(value, ada); bytes.Equal(again, sealed) {
		t.Error("a value is sealed the same way twice")
	}
	rotation := sealer(newSecret, oldSecret)
	if opened, err := rotation.Open(sealed, id, ada); err != nil || !bytes.Equal(opened, value) {
		t.Errorf("during a rotation: %q, %v", opened, err)
	}
	if ids := rotation.PreviousIDs(); len(ids) != 1 || !bytes.Equal(ids[0], id) || len(old.PreviousIDs()) != 0 {
		t.Errorf("previous ids %x", ids)
	}
	if opened, err := old.Open(sealed, id, bob); err == nil {
		t.Errorf("opened for another owner: %q", opened)
	}
	for name, s := range map[string]secret.Sealer{"another secret": sealer(newSecret, ""), "no secret": {}} {
		if opened, err := s.Open(sealed, id, ada); err == nil {
			t.Errorf("opened with %s: %q", name, opened)
		}
	}
	if _, _, err := (secret.Sealer{}).Seal(value, ada); err == nil {
		t.Error("sealed without a secret")
	}
}
