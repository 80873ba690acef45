package models_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"portal/models"
)

const (
	oldSecret = "the secret of the year 2026, long enough"
	newSecret = "the secret of the year 2027, long enough"
)

func keyring(t *testing.T, secret, previous string) models.Keyring {
	t.Helper()
	k, err := models.NewKeyring(secret, previous)
	must(t, err)
	return k
}

func TestSecretsHaveAtLeast32Bytes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 32)
	for _, test := range []struct{ secret, previous, field string }{
		{long, "", ""},
		{long, long, ""},
		{strings.Repeat("é", 16), "", ""},
		{"", "", "secret"},
		{long[1:], "", "secret"},
		{long[1:], long, "secret"},
		{long, long[1:], "previous secret"},
		{"", long, "secret"},
	} {
		_, err := models.NewKeyring(test.secret, test.previous)
		var invalid *models.InvalidError
		switch {
		case test.field == "" && err != nil:
			t.Errorf("%q, %q: %v", test.secret, test.previous, err)
		case test.field != "" && (!errors.As(err, &invalid) || invalid.Field != test.field || strings.Contains(err.Error(), "xxx")):
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
	for _, key := range keyring(t, newSecret, oldSecret).SigningKeys() {
		if bytes.Equal(key.Seed(), old[0]) || bytes.Equal(key.Seed(), current[0]) {
			t.Error("a cookie key signs tokens")
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
	within := struct{ Keyring models.Keyring }{k}
	var text bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, value := range []any{k, &k, []models.Keyring{k}, map[string]models.Keyring{"k": k}, within, &within} {
			fmt.Fprintf(&text, verb+"\n", value)
		}
	}
	slog.New(slog.NewTextHandler(&text, nil)).Info("start", slog.Any("keyring", k), slog.Any("within", within))
	slog.New(slog.NewJSONHandler(&text, nil)).Info("start", slog.Any("keyring", k), slog.Any("within", within))
	if found := (secrets{"secret": "secret of the year", "keys": string(k.CookieKeys()[0])}).find(text.String()); found != nil {
		t.Errorf("printed %s:\n%s", found, &text)
	}
}
