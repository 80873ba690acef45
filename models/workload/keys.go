package workload

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"

	"github.com/go-jose/go-jose/v4"
)

const (
	minRSA     = 2048 // bits
	maxRSA     = 8192
	maxKeys    = 100 // of a set; others are ignored
	maxKeyName = 256 // bytes of a kid
)

var errNoKeys = errors.New("no public key that verifies tokens")

// ParseKeys returns the public keys of a JWKS (RFC 7517) by their ids. It ignores keys of other
// kinds, without an id, or that are for encryption, and errs if none is left.
func ParseKeys(set []byte) (map[string]jose.JSONWebKey, error) {
	var list struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(set, &list); err != nil {
		return nil, err
	}
	keys := map[string]jose.JSONWebKey{}
	for _, text := range list.Keys {
		var key jose.JSONWebKey
		if len(keys) >= maxKeys || key.UnmarshalJSON(text) != nil {
			continue
		}
		if key.KeyID == "" || len(key.KeyID) > maxKeyName || key.Use != "" && key.Use != "sig" || !key.Valid() {
			continue
		}
		if key = key.Public(); usable(key.Key) {
			keys[key.KeyID] = key
		}
	}
	if len(keys) == 0 {
		return nil, errNoKeys
	}
	return keys, nil
}

func usable(key any) bool {
	switch key := key.(type) {
	case *rsa.PublicKey:
		bits := key.N.BitLen()
		return minRSA <= bits && bits <= maxRSA && key.E < 1<<31
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// hasPrivateKey reports whether a set has a key that must be secret.
func hasPrivateKey(set []byte) bool {
	var list struct {
		Keys []map[string]any `json:"keys"`
	}
	if err := json.Unmarshal(set, &list); err != nil {
		return false
	}
	for _, key := range list.Keys {
		if key["d"] != nil || key["k"] != nil {
			return true
		}
	}
	return false
}

// Metadata is the part of a discovery document (OpenID Connect Discovery) with which the public
// keys of an issuer are found.
type Metadata struct {
	Issuer  string `json:"issuer"`
	JWKSURI string `json:"jwks_uri"`
}
