// Package secret derives keys from the portal's secret and encrypts values with them. It imports
// nothing of ours.
package secret

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// MinLength is the minimum length of the portal's secret in bytes.
const MinLength = 32

// Keyring derives one key per purpose from the portal's secret (HKDF, RFC 5869). Instances with the
// same secret derive the same keys. During a rotation it also holds the previous secret, whose keys
// only verify.
type Keyring struct {
	// secrets returns the current secret first. Because fmt and slog print the values of
	// fields, it is a function.
	secrets func() []string
}

// NewKeyring returns a keyring for a secret and, unless it is empty, the previous one. If one has
// fewer than [MinLength] bytes, NewKeyring returns an error that contains neither.
func NewKeyring(secret, previous string) (Keyring, error) {
	if len(secret) < MinLength {
		return Keyring{}, fmt.Errorf("the secret must be at least %d bytes long", MinLength)
	}
	secrets := []string{secret}
	if previous != "" {
		if len(previous) < MinLength {
			return Keyring{}, fmt.Errorf("the previous secret must be at least %d bytes long", MinLength)
		}
		secrets = append(secrets, previous)
	}
	return Keyring{func() []string { return secrets }}, nil
}

// IsZero reports whether the keyring has no secret.
func (k Keyring) IsZero() bool { return k.secrets == nil }

// CookieKeys returns the 32-byte keys that authenticate cookies, the signing key first.
func (k Keyring) CookieKeys() [][]byte { return k.Derive("portal session cookie v1", 32) }

// Derive returns a key of this many bytes for a purpose, from each secret, that of the current
// secret first.
func (k Keyring) Derive(purpose string, length int) [][]byte {
	secrets := k.secrets()
	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		key, err := hkdf.Key(sha256.New, []byte(secret), nil, purpose, length)
		if err != nil {
			// hkdf fails only if the length exceeds 255 hashes. Ours are small
			// constants.
			panic(err)
		}
		keys[i] = key
	}
	return keys
}
