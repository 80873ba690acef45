package models_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
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
	for _, algorithm := range models.TokenAlgorithms() {
		for _, key := range keyring(t, newSecret, oldSecret).TokenKeys(algorithm) {
			if private := privateBytes(t, key); bytes.Equal(private, old[0]) || bytes.Equal(private, current[0]) {
				t.Errorf("a cookie key signs tokens with %s", algorithm)
			}
		}
	}
	for _, key := range rotation {
		if bytes.Contains([]byte(oldSecret+newSecret), key) {
			t.Error("a key is the secret itself")
		}
	}
}

// privateBytes returns the seed of an Ed25519 key or the number of a P-256 key.
func privateBytes(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	switch key := key.(type) {
	case ed25519.PrivateKey:
		return key.Seed()
	case *ecdsa.PrivateKey:
		private, err := key.Bytes()
		must(t, err)
		return private
	default:
		t.Fatalf("the key is a %T", key)
		return nil
	}
}

// Other instances, also those of later versions, must derive the same keys.
func TestTokenKeysOfASecretNeverChange(t *testing.T) {
	t.Parallel()
	for algorithm, want := range map[models.TokenAlgorithm]string{
		models.EdDSA: "63f9bb8d953e74d7ef5f65b9dc27073320071ad8065a675dd5af4cb9b548b052",
		models.ES256: "3d968fd4c69d2d1dac078e906f816fc1f8f569ce3e8881bca2ab2f957c07e8ee",
	} {
		keys := keyring(t, newSecret, oldSecret).TokenKeys(algorithm)
		if len(keys) != 2 || bytes.Equal(privateBytes(t, keys[0]), privateBytes(t, keys[1])) {
			t.Fatalf("%s: %d keys for two secrets", algorithm, len(keys))
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(privateBytes(t, keys[0]))); got != want {
			t.Errorf("%s: the hash of the private key is %s, want %s", algorithm, got, want)
		}
		old := keyring(t, oldSecret, "").TokenKeys(algorithm)
		if !bytes.Equal(privateBytes(t, old[0]), privateBytes(t, keys[1])) {
			t.Errorf("%s: the previous secret has another key than before the rotation", algorithm)
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
