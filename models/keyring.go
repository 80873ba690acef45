package models

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"math/big"
)

// MinSecretLength is the minimum length of the portal's secret in bytes.
const MinSecretLength = 32

// Keyring derives one key per purpose from the portal's secret (HKDF, RFC 5869). Instances with the
// same secret derive the same keys. During a rotation it also holds the previous secret, whose keys
// only verify.
type Keyring struct {
	// secrets returns the current secret first. It is a function, because fmt and slog print
	// the values of fields.
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

// IsZero reports whether the keyring has no secret.
func (k Keyring) IsZero() bool { return k.secrets == nil }

func newKeyring(secrets ...string) Keyring {
	return Keyring{func() []string { return secrets }}
}

// CookieKeys returns the 32-byte keys that authenticate cookies, the signing key first.
func (k Keyring) CookieKeys() [][]byte { return k.derive("portal session cookie v1", 32) }

// tokenKeys returns the key pairs of widget tokens for an algorithm, that of the current secret
// first.
func (k Keyring) tokenKeys(algorithm TokenAlgorithm) []crypto.Signer {
	var keys []crypto.Signer
	if algorithm == ES256 {
		for _, seed := range k.derive("portal widget token ES256 v1", p256SeedSize) {
			keys = append(keys, p256Key(seed))
		}
		return keys
	}
	for _, seed := range k.derive("portal widget token v1", ed25519.SeedSize) {
		keys = append(keys, ed25519.NewKeyFromSeed(seed))
	}
	return keys
}

// p256SeedSize is 16 bytes more than a private key, so that the reduction in [p256Key] has no
// measurable bias.
const p256SeedSize = 48

// p256Key returns the key pair of a random seed. The private key is the seed as a big-endian
// number, modulo the order of the curve minus 1, plus 1 (FIPS 186-5, appendix A.2.1).
func p256Key(seed []byte) *ecdsa.PrivateKey {
	curve, one := elliptic.P256(), big.NewInt(1)
	d := new(big.Int).SetBytes(seed)
	d.Mod(d, new(big.Int).Sub(curve.Params().N, one)).Add(d, one)
	key, err := ecdsa.ParseRawPrivateKey(curve, d.FillBytes(make([]byte, 32)))
	if err != nil {
		// It fails only for numbers outside 1 to the order minus 1.
		panic(err)
	}
	return key
}

func (k Keyring) derive(purpose string, length int) [][]byte {
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
