package widget_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"testing"

	"portal/models/modelstest"
	"portal/models/secret"
	"portal/models/widget"
)

const (
	oldSecret = "the secret of the year 2026, long enough"
	newSecret = "the secret of the year 2027, long enough"
)

func keyring(t *testing.T, current, previous string) secret.Keyring {
	t.Helper()
	return modelstest.Value(secret.NewKeyring(current, previous))(t)
}

// privateBytes returns the seed of an Ed25519 key or the number of a P-256 key.
func privateBytes(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	switch key := key.(type) {
	case ed25519.PrivateKey:
		return key.Seed()
	case *ecdsa.PrivateKey:
		return modelstest.Value(key.Bytes())(t)
	default:
		t.Fatalf("the key is a %T", key)
		return nil
	}
}

// Other instances, also those of later versions, must derive the same keys.
func TestTokenKeysOfASecretNeverChange(t *testing.T) {
	t.Parallel()
	for algorithm, want := range map[widget.Algorithm]string{
		widget.EdDSA: "63f9bb8d953e74d7ef5f65b9dc27073320071ad8065a675dd5af4cb9b548b052",
		widget.ES256: "3d968fd4c69d2d1dac078e906f816fc1f8f569ce3e8881bca2ab2f957c07e8ee",
	} {
		keys := widget.PrivateKeys(keyring(t, newSecret, oldSecret), algorithm)
		if len(keys) != 2 || bytes.Equal(privateBytes(t, keys[0]), privateBytes(t, keys[1])) {
			t.Fatalf("%s: %d keys for two secrets", algorithm, len(keys))
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(privateBytes(t, keys[0]))); got != want {
			t.Errorf("%s: the hash of the private key is %s, want %s", algorithm, got, want)
		}
		old := widget.PrivateKeys(keyring(t, oldSecret, ""), algorithm)
		if !bytes.Equal(privateBytes(t, old[0]), privateBytes(t, keys[1])) {
			t.Errorf("%s: the previous secret has another key than before the rotation", algorithm)
		}
	}
}
