package keyset

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// ed25519Name is the newer name of the algorithm EdDSA with the curve Ed25519 (RFC 9864), and the
// name of the curve.
const ed25519Name = "Ed25519"

// Ed25519 is [jose.EdDSA] with the curve Ed25519 (RFC 9864).
const Ed25519 = jose.SignatureAlgorithm(ed25519Name)

// ErrSignature means that a signature is wrong, or that no key verifies it.
var ErrSignature = errors.New("no public key verifies the signature")

// Algorithms returns the algorithms of signatures that keys verify. None is symmetric.
func Algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
		jose.ES256, jose.ES384, jose.ES512, jose.EdDSA, Ed25519,
	}
}

// Algorithm returns an algorithm by its older name.
func Algorithm(name string) jose.SignatureAlgorithm {
	if name == ed25519Name {
		return jose.EdDSA
	}
	return jose.SignatureAlgorithm(name)
}

// Verify returns the payload of a signed token if a key of the set verifies it, or [ErrSignature].
// A token or a key without an id may fit any.
func (s Set) Verify(token string) (payload []byte, err error) {
	parsed, err := jose.ParseSignedCompact(token, Algorithms())
	if err != nil {
		return nil, err
	}
	id := parsed.Signatures[0].Header.KeyID
	for _, key := range s.Keys {
		if id != "" && key.KeyID != "" && key.KeyID != id {
			continue
		}
		if payload, err := Verify(key, token, parsed); err == nil {
			return payload, nil
		}
	}
	return nil, ErrSignature
}

// Verify returns the payload of a token, which parsed is, if the key verifies its signature.
// Otherwise the error is [ErrSignature].
func Verify(key jose.JSONWebKey, token string, parsed *jose.JSONWebSignature) (payload []byte, err error) {
	signature := parsed.Signatures[0]
	algorithm := Algorithm(signature.Header.Algorithm)
	method := jwt.GetSigningMethod(string(algorithm))
	if method == nil || !fits(key.Key, algorithm) {
		return nil, ErrSignature
	}
	signed := token[:max(0, strings.LastIndexByte(token, '.'))]
	if err := method.Verify(signed, signature.Signature, key.Key); err != nil {
		return nil, ErrSignature
	}
	return parsed.UnsafePayloadWithoutVerification(), nil
}

// fits reports whether a key is of the kind that an algorithm needs.
func fits(key any, algorithm jose.SignatureAlgorithm) bool {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return slices.Contains([]jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}, algorithm)
	case *ecdsa.PublicKey:
		bits := key.Curve.Params().BitSize
		return algorithm == jose.ES256 && bits == 256 || algorithm == jose.ES384 && bits == 384 || algorithm == jose.ES512 && bits == 521
	case ed25519.PublicKey:
		return algorithm == jose.EdDSA
	}
	return false
}
