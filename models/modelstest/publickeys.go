package modelstest

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"maps"
	"math/big"
	"testing"
)

// OddPublicKeys returns entries of sets of public keys (RFC 7517) with which readers have refused
// the whole set. They have the id "odd". Those with n as a text are right but for what is odd.
func OddPublicKeys(t testing.TB, key *rsa.PrivateKey) map[string]map[string]any {
	t.Helper()
	certificate := Value(x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(0x0102030405)},
		&x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key))(t)
	negative := bytes.Replace(certificate, []byte{2, 5, 1, 2, 3, 4, 5}, []byte{2, 5, 0x81, 2, 3, 4, 5}, 1)
	if _, err := x509.ParseCertificate(negative); err == nil {
		t.Fatal("the serial number is not negative")
	}
	encode, plain := base64.RawURLEncoding.EncodeToString, base64.StdEncoding.EncodeToString
	n := key.N.Bytes()
	of := func(own map[string]any) map[string]any {
		entry := map[string]any{"kid": "odd", "use": "sig"}
		maps.Copy(entry, own)
		return entry
	}
	like := func(own map[string]any) map[string]any {
		entry := of(map[string]any{"kty": "RSA", "n": encode(n), "e": "AQAB"})
		maps.Copy(entry, own)
		return entry
	}
	return map[string]map[string]any{
		"x5c with a negative serial number": like(map[string]any{"x5c": []string{plain(negative)}}),
		"x5c of another type":               like(map[string]any{"x5c": plain(certificate)}),
		"x5c alone":                         of(map[string]any{"kty": "RSA", "x5c": []string{plain(certificate)}}),
		"x5t of another length":             like(map[string]any{"x5t": encode(n[:7])}),
		"x5t that is not base64":            like(map[string]any{"x5t": "AB:CD:EF"}),
		"n in plain base64":                 like(map[string]any{"n": plain(n)}),
		"n a number":                        like(map[string]any{"n": 65537}),
		"secp256k1 without alg":             of(map[string]any{"kty": "EC", "crv": "secp256k1", "x": encode(n[:32]), "y": encode(n[32:64])}),
		"X448":                              of(map[string]any{"kty": "OKP", "crv": "X448", "x": encode(n[:56])}),
		"ML-DSA":                            of(map[string]any{"kty": "AKP", "alg": "ML-DSA-44", "pub": encode(n)}),
		"no type":                           of(nil),
	}
}
