package keyset

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

const (
	minRSA = 2048 // bits (RFC 7518, section 3.3)
	maxRSA = 8192
)

// errOtherUse means that a key is not for signatures.
var errOtherUse = errors.New("it is not for signatures")

// signs are the values of use of keys for signatures. SPIFFE has its own.
var signs = []string{"", "sig", "jwt-svid"}

// members are the public members of a key by its kty and crv, and the lengths in bytes of those
// that are numbers of a fixed length.
var members = map[string]map[string]int{
	"RSA ":        {"n": 0, "e": 0},
	"EC P-256":    {"x": 32, "y": 32},
	"EC P-384":    {"x": 48, "y": 48},
	"EC P-521":    {"x": 66, "y": 66},
	"OKP Ed25519": {"x": 0},
}

type entry map[string]any

func readEntry(text []byte) (e entry, err error) {
	if err := json.Unmarshal(text, &e); err != nil || e == nil {
		return nil, errors.New("it is no object")
	}
	return e, nil
}

// name returns the id, as far as it has one.
func (e entry) name() string {
	id, _ := e["kid"].(string)
	return id
}

// private reports whether the entry has a private or a symmetric key.
func (e entry) private() bool { return e["d"] != nil || e["k"] != nil }

// key returns the public key. It uses the members that make up the key and ignores all others,
// because certificates and thumbprints of others are often wrong.
func (e entry) key() (key jose.JSONWebKey, err error) {
	public := map[string]string{}
	for _, name := range []string{"kty", "kid", "use", "alg"} {
		value, isText := e[name].(string)
		if !isText && e[name] != nil {
			return key, fmt.Errorf("%s is no text", name)
		}
		public[name] = value
	}
	if !slices.Contains(signs, public["use"]) {
		return key, errOtherUse
	}
	kind := public["kty"] + " "
	if public["kty"] != "RSA" {
		public["crv"], _ = e["crv"].(string)
		kind += public["crv"]
	}
	lengths, known := members[kind]
	if !known {
		return key, fmt.Errorf("a key of the type %.50q is not supported", strings.TrimSpace(kind))
	}
	for name, length := range lengths {
		if public[name], err = e.bytes(name, length); err != nil {
			return key, err
		}
	}
	public["alg"] = string(Algorithm(public["alg"]))
	text, err := json.Marshal(public)
	if err != nil {
		return key, err
	}
	if err := key.UnmarshalJSON(text); err != nil {
		return key, errors.New(strings.TrimPrefix(err.Error(), "go-jose/go-jose: "))
	}
	return key, check(key.Key)
}

// bytes returns a member of a key as unpadded base64url. It accepts padding and plain base64, and a
// number of a fixed length, unless that is 0, with more or fewer zeros at its start.
func (e entry) bytes(name string, length int) (string, error) {
	text, isText := e[name].(string)
	if !isText || text == "" {
		return "", fmt.Errorf("%s is missing", name)
	}
	value, err := base64.RawURLEncoding.DecodeString(strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(text))
	if err != nil {
		return "", fmt.Errorf("%s is not base64", name)
	}
	for length > 0 && len(value) > length && value[0] == 0 {
		value = value[1:]
	}
	value = append(make([]byte, max(0, length-len(value))), value...)
	return base64.RawURLEncoding.EncodeToString(value), nil
}

// check returns an error for a key that is too weak, or that would take too long.
func check(key any) error {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSA || bits > maxRSA {
			return fmt.Errorf("an RSA key must have %d to %d bits, not %d", minRSA, maxRSA, bits)
		}
		if key.E < 3 || key.E >= 1<<31 {
			return errors.New("e is out of range")
		}
	case *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		return errors.New("the type is not supported")
	}
	return nil
}
