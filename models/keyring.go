package models

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// MinSecretLength is the minimum length of the portal's secret in bytes.
const MinSecretLength = 32

// Keyring derives one key per purpose from the portal's secret (HKDF, RFC 5869). Instances with the
// same secret derive the same keys. During a rotation it also holds the previous secret, whose keys
// only verify.
type Keyring struct {
	// secrets returns the current secret first. It is a function, because fmt and slog print the
	// values of fields.
	secrets func() []string
}

// NewKeyring returns a keyring for a secret and, unless it is empty, the previous one. If one has
// fewer than [MinSecretLength] bytes, the error is an [*InvalidError] for the field "secret" or
// "previous secret". The error never contains a secret.
func NewKeyring(secret, previous string) (Keyring, error) {
	if len(secret) < MinSecretLength {
		return Keyring{}, &InvalidError{"secret", fmt.Sprintf("The secret must be at least %d bytes long.", MinSecretLength)}
	}
	if previous == "" {
		return newKeyring(secret), nil
	}
	if len(previous) < MinSecretLength {
		return Keyring{}, &InvalidError{"previous secret", fmt.Sprintf("The previous secret must be at least %d bytes long.", MinSecretLength)}
	}
	return newKeyring(secret, previous), nil
}

func newKeyring(secrets ...string) Keyring {
	return Keyring{func() []string { return secrets }}
}

// CookieKeys returns the 32-byte keys that authenticate cookies, the signing key first.
func (k Keyring) CookieKeys() [][]byte { return k.derive("portal session cookie v1", 32) }

// signingKeys returns the key pairs of widget tokens, the signing key first.
func (k Keyring) signingKeys() []ed25519.PrivateKey {
	seeds := k.derive("portal widget token v1", ed25519.SeedSize)
	keys := make([]ed25519.PrivateKey, len(seeds))
	for i, seed := range seeds {
		keys[i] = ed25519.NewKeyFromSeed(seed)
	}
	return keys
}

func (k Keyring) derive(purpose string, length int) [][]byte {
	secrets := k.secrets()
	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		key, err := hkdf.Key(sha256.New, []byte(secret), nil, purpose, length)
		if err != nil {
			// hkdf fails only for lengths beyond 255 hashes; ours are small constants.
			panic(err)
		}
		keys[i] = key
	}
	return keys
}
