package models

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

// TokenAlgorithm is a signature algorithm of widget tokens.
type TokenAlgorithm string

// The algorithms by their names in JOSE.
const (
	EdDSA TokenAlgorithm = "EdDSA" // Ed25519 (RFC 8037)
	ES256 TokenAlgorithm = "ES256" // P-256 with SHA-256 (RFC 7518, section 3.4)
)

// TokenAlgorithms returns all algorithms.
func TokenAlgorithms() []TokenAlgorithm { return []TokenAlgorithm{EdDSA, ES256} }

func (a TokenAlgorithm) method() jwt.SigningMethod {
	if a == ES256 {
		return jwt.SigningMethodES256
	}
	return jwt.SigningMethodEdDSA
}

// tokenKey is a key pair of widget tokens.
type tokenKey struct {
	jwk    jose.JSONWebKey                   // public
	method jwt.SigningMethod                 // the only one for this key
	sign   func(text string) ([]byte, error) // a closure, so that no field holds the private key
}

func newTokenKey(algorithm TokenAlgorithm, private crypto.Signer) tokenKey {
	method := algorithm.method()
	jwk := jose.JSONWebKey{Key: private.Public(), Algorithm: method.Alg(), Use: "sig"}
	jwk.KeyID = thumbprint(jwk)
	return tokenKey{jwk, method, func(text string) ([]byte, error) { return method.Sign(text, private) }}
}

// header returns the first part of every token that the key signs.
func (k tokenKey) header() string {
	header, err := json.Marshal(struct {
		Type      string `json:"typ"`
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}{widgetTokenType, k.jwk.Algorithm, k.jwk.KeyID})
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

// tokenKeys returns the key pairs of widget tokens for an algorithm, that of the current secret
// first.
func tokenKeys(keyring secret.Keyring, algorithm TokenAlgorithm) []crypto.Signer {
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
