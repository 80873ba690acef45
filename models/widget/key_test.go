package widget_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"strings"
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

func TestRotatedSecret(t *testing.T) {
	t.Parallel()
	clock := newClock()
	before := widgetTokens(t, clock, oldSecret, "")
	during := widgetTokens(t, clock, newSecret, oldSecret)
	after := widgetTokens(t, clock, newSecret, "")
	kid := func(token string) any { return decode(t, strings.Split(token, ".")[0])["kid"] }
	grant := newGrant()
	oldToken, newToken := issue(t, before, grant), issue(t, during, grant)
	if kid(newToken) != kid(issue(t, after, grant)) || kid(newToken) == kid(oldToken) {
		t.Error("the previous secret signs")
	}
	for name, test := range map[string]struct {
		tokens *widget.Tokens
		token  string
		want   error
	}{
		"old token, before":         {before, oldToken, nil},
		"old token, during":         {during, oldToken, nil},
		"old token, after":          {after, oldToken, widget.ErrInvalid},
		"new token, before":         {before, newToken, widget.ErrInvalid},
		"new token, during":         {during, newToken, nil},
		"new token, after":          {after, newToken, nil},
		"new token, other instance": {widgetTokens(t, clock, newSecret, oldSecret), newToken, nil},
	} {
		checkError(t, name, errOf(test.tokens.Verify(test.token)), test.want)
	}
	// A token with the id of the current key, but signed with the previous one.
	forged := forger{header: decode(t, strings.Split(newToken, ".")[0]), claims: decode(t, strings.Split(newToken, ".")[1]), key: widget.PrivateKeys(keyring(t, oldSecret, ""), widget.EdDSA)[0]}
	checkError(t, "signed with the previous key", errOf(during.Verify(forged.token(t))), widget.ErrInvalid)
}

// The steps of a change from EdDSA to ES256 for several instances.
func TestTokensOfEveryAlgorithmVerifyOnEveryInstance(t *testing.T) {
	t.Parallel()
	clock := newClock()
	lists := [][]widget.Algorithm{
		{widget.EdDSA}, {widget.EdDSA, widget.ES256}, {widget.ES256, widget.EdDSA}, {widget.ES256},
	}
	for _, signing := range lists {
		for _, secrets := range [][2]string{{newSecret, ""}, {newSecret, oldSecret}, {oldSecret, newSecret}} {
			token := issue(t, widgetTokens(t, clock, secrets[0], secrets[1], signing...), newGrant())
			if alg := decode(t, strings.Split(token, ".")[0])["alg"]; alg != string(signing[0]) {
				t.Errorf("%v: signed with %v", signing, alg)
			}
			for _, verifying := range lists {
				other := widgetTokens(t, clock, newSecret, oldSecret, verifying...)
				if _, err := other.Verify(token); err != nil {
					t.Errorf("signed by %v, verified by %v: %v", signing, verifying, err)
				}
			}
		}
	}
}
