package models

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// MinSecretLength is the least length of the portal's secret, in bytes.
const MinSecretLength = 32

// Keyring derives the portal's keys from its secret (HKDF, RFC 5869), each
// purpose a key of its own, so that instances which share the secret agree on
// all of them. During a rotation it also holds the keys of the secret before,
// which verify and never sign.
type Keyring struct {
	// secrets returns the current one first. A function, because fmt prints
	// whatever it finds in a field.
	secrets func() []string
}

// NewKeyring returns the keyring of a secret of at least [MinSecretLength]
// bytes and, unless empty, the one before it. It returns an [*InvalidError]
// for the field "secret" or "previous secret", which never holds either.
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

// CookieKeys returns the 32-byte keys that authenticate session cookies, the
// one that signs first.
func (k Keyring) CookieKeys() [][]byte { return k.derive("portal session cookie v1", 32) }

// signingKeys returns the keys of widget tokens, the one that signs first.
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
			// Only for lengths beyond 255 hashes, and ours are constants.
			panic(err)
		}
		keys[i] = key
	}
	return keys
}
