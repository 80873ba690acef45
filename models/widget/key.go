package widget

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"math/big"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"portal/models/secret"
)

// Algorithm is a signature algorithm of tokens.
type Algorithm string

// The algorithms by their names in JOSE.
const (
	EdDSA Algorithm = "EdDSA" // Ed25519 (RFC 8037)
	ES256 Algorithm = "ES256" // P-256 with SHA-256 (RFC 7518, section 3.4)
)

// Algorithms returns all algorithms.
func Algorithms() []Algorithm { return []Algorithm{EdDSA, ES256} }

func (a Algorithm) method() jwt.SigningMethod {
	if a == ES256 {
		return jwt.SigningMethodES256
	}
	return jwt.SigningMethodEdDSA
}

type keyPair struct {
	jwk    jose.JSONWebKey   // public
	method jwt.SigningMethod // the only one for this key
	// A closure, so that no field holds the private key.
	sign func(text []byte) ([]byte, error)
}

func newKeyPair(algorithm Algorithm, private crypto.Signer) keyPair {
	method := algorithm.method()
	jwk := jose.JSONWebKey{Key: private.Public(), Algorithm: method.Alg(), Use: "sig"}
	jwk.KeyID = thumbprint(jwk)
	sign := func(text []byte) ([]byte, error) { return method.Sign(string(text), private) }
	if key, ok := private.(ed25519.PrivateKey); ok {
		// The method of the library copies the text and the public key.
		sign = func(text []byte) ([]byte, error) { return ed25519.Sign(key, text), nil }
	}
	return keyPair{jwk: jwk, method: method, sign: sign}
}

// header returns the first part of every token that the key pair signs.
func (p keyPair) header() string {
	header, err := json.Marshal(struct {
		Type      string `json:"typ"`
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}{Type: tokenType, Algorithm: p.jwk.Algorithm, KeyID: p.jwk.KeyID})
	if err != nil {
		panic(err) // encoding three strings cannot fail
	}
	return base64.RawURLEncoding.EncodeToString(header)
}

// thumbprint returns the id of a key (RFC 7638).
func thumbprint(jwk jose.JSONWebKey) string {
	sum, err := jwk.Thumbprint(crypto.SHA256)
	if err != nil {
		// go-jose fails only for key types that it does not support.
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}

// privateKeys returns the private keys of an algorithm, that of the current secret first.
func privateKeys(keyring secret.Keyring, algorithm Algorithm) []crypto.Signer {
	var keys []crypto.Signer
	if algorithm == ES256 {
		for _, seed := range keyring.Derive("portal widget token ES256 v1", p256SeedSize) {
			keys = append(keys, p256Key(seed))
		}
		return keys
	}
	for _, seed := range keyring.Derive("portal widget token v1", ed25519.SeedSize) {
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
