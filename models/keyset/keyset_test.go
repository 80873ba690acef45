package keyset_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"portal/models/keyset"
	"portal/models/modelstest"
)

var encode = base64.RawURLEncoding.EncodeToString

func document(t *testing.T, entries ...any) []byte {
	t.Helper()
	return modelstest.Value(json.Marshal(map[string]any{"keys": entries}))(t)
}

func rsaKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	return modelstest.Value(rsa.GenerateKey(rand.Reader, 2048))(t)
}

func ecKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	return modelstest.Value(ecdsa.GenerateKey(curve, rand.Reader))(t)
}

// published returns the entry of a key with the id "1".
func published(t *testing.T, key crypto.Signer, own map[string]any) (entry map[string]any) {
	t.Helper()
	text := modelstest.Value(jose.JSONWebKey{Key: key.Public(), KeyID: "1"}.MarshalJSON())(t)
	modelstest.Must(t, json.Unmarshal(text, &entry))
	maps.Copy(entry, own)
	return entry
}

// sign returns a token of the key with the id "1".
func sign(t *testing.T, algorithm string, key crypto.Signer) string {
	t.Helper()
	text := encode(fmt.Appendf(nil, `{"alg":%q,"kid":"1"}`, algorithm)) + "." + encode([]byte(`{"sub":"ada"}`))
	method := jwt.GetSigningMethod(string(keyset.Algorithm(algorithm)))
	return text + "." + encode(modelstest.Value(method.Sign(text, key))(t))
}

// An entry that cannot be used keeps no other out and is named.
func TestOddEntries(t *testing.T) {
	t.Parallel()
	good := rsaKey(t)
	for name, odd := range modelstest.OddPublicKeys(t, rsaKey(t)) {
		set, err := keyset.Parse(document(t, odd, published(t, good, nil)))
		modelstest.Must(t, err)
		if payload, err := set.Verify(sign(t, "RS256", good)); err != nil || string(payload) != `{"sub":"ada"}` {
			t.Errorf("%s: %s, %v", name, payload, err)
		}
		if _, usable := odd["n"].(string); usable {
			if len(set.Keys) != 2 || set.Skipped != nil {
				t.Errorf("%s: %+v", name, set)
			}
			continue
		}
		if len(set.Keys) != 1 || len(set.Skipped) != 1 || !strings.HasPrefix(set.Skipped[0], `entry 1 ("odd"): `) {
			t.Errorf("%s: %+v", name, set)
		}
	}
}

// An entry is what its key is made of, in the forms in which others write it.
func TestFormsOfEntries(t *testing.T) {
	t.Parallel()
	wide, curved, ed := rsaKey(t), ecKey(t, elliptic.P521()), modelstest.Value(ed25519Key())(t)
	short := ecKey(t, elliptic.P256())
	for short.X.BitLen() > 248 {
		short = ecKey(t, elliptic.P256())
	}
	padded := base64.URLEncoding.EncodeToString
	plain := base64.StdEncoding.EncodeToString
	for name, test := range map[string]struct {
		key        crypto.Signer
		algorithms string
		own        map[string]any
	}{
		"RSA":                         {wide, "RS256 RS384 RS512 PS256 PS384 PS512", nil},
		"padded":                      {wide, "RS256", map[string]any{"n": padded(wide.N.Bytes()), "e": padded([]byte{1, 0, 1})}},
		"plain base64":                {wide, "RS256", map[string]any{"n": plain(wide.N.Bytes())}},
		"plain base64, not padded":    {wide, "RS256", map[string]any{"n": base64.RawStdEncoding.EncodeToString(wide.N.Bytes())}},
		"a zero before n":             {wide, "RS256", map[string]any{"n": encode(append([]byte{0}, wide.N.Bytes()...))}},
		"wrong certificates":          {wide, "RS256", map[string]any{"x5c": []string{"AAAA"}, "x5t": "AAAA", "x5u": "://", "x5t#S256": 7}},
		"private members of others":   {wide, "RS256", map[string]any{"d": "AQ", "p": "AQ", "D": "AQ"}},
		"EC P-521":                    {curved, "ES512", nil},
		"EC without a zero":           {short, "ES256", map[string]any{"x": encode(short.X.Bytes())}},
		"EC with a zero more":         {short, "ES256", map[string]any{"y": encode(append([]byte{0}, short.Y.FillBytes(make([]byte, 32))...))}},
		"EC of SPIFFE":                {short, "ES256", map[string]any{"use": "jwt-svid"}},
		"Ed25519":                     {ed, "EdDSA Ed25519", nil},
		"Ed25519, by its older name":  {ed, "EdDSA Ed25519", map[string]any{"alg": "EdDSA"}},
		"Ed25519, by its newer name":  {ed, "EdDSA Ed25519", map[string]any{"alg": "Ed25519"}},
		"Ed25519, padded":             {ed, "EdDSA", map[string]any{"x": padded(ed.Public().(ed25519.PublicKey))}},
		"an empty use and no key_ops": {wide, "RS256", map[string]any{"use": "", "key_ops": 7}},
	} {
		set, err := keyset.ParseNamed(document(t, published(t, test.key, test.own)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again := modelstest.Value(keyset.ParseNamed(modelstest.Value(set.JSON())(t)))(t)
		for algorithm := range strings.FieldsSeq(test.algorithms) {
			token := sign(t, algorithm, test.key)
			for _, set := range []keyset.Set{set, again} {
				if _, err := set.Verify(token); err != nil {
					t.Errorf("%s, %s: %v", name, algorithm, err)
				}
			}
		}
	}
}

func ed25519Key() (crypto.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return key, err
}

func TestEntriesThatAreNotUsed(t *testing.T) {
	t.Parallel()
	good, curved, ed := rsaKey(t), ecKey(t, elliptic.P256()), modelstest.Value(ed25519Key())(t)
	small := modelstest.Value(rsa.GenerateKey(rand.Reader, 1024))(t)
	for name, test := range map[string]struct {
		entry  any
		reason string // empty: a usual entry, which is not named
	}{
		"for encryption":       {published(t, good, map[string]any{"use": "enc"}), ""},
		"symmetric":            {map[string]any{"kty": "oct", "kid": "1", "k": "AAAA"}, `entry 2 ("1"): a key of the type "oct" is not supported`},
		"weak":                 {published(t, small, nil), `entry 2 ("1"): an RSA key must have 2048 to 8192 bits, not 1024`},
		"huge":                 {published(t, good, map[string]any{"n": strings.Repeat("_", 2000)}), `entry 2 ("1"): `},
		"e too small":          {published(t, good, map[string]any{"e": "AQ"}), `entry 2 ("1"): `},
		"not on the curve":     {published(t, curved, map[string]any{"x": encode(make([]byte, 32))}), `entry 2 ("1"): `},
		"another curve":        {published(t, curved, map[string]any{"crv": "P-384"}), `entry 2 ("1"): `},
		"too long a number":    {published(t, curved, map[string]any{"x": encode(make([]byte, 0, 33)) + strings.Repeat("A", 43) + "B"}), `entry 2 ("1"): `},
		"Ed25519 of 31 bytes":  {published(t, ed, map[string]any{"x": encode(make([]byte, 31))}), `entry 2 ("1"): `},
		"a point of low order": {published(t, ed, map[string]any{"x": encode(make([]byte, 32))}), `entry 2 ("1"): `},
		"not base64":           {published(t, good, map[string]any{"n": "!"}), `entry 2 ("1"): n is not base64`},
		"other case":           {map[string]any{"KTY": "RSA", "kid": "1"}, `entry 2 ("1"): `},
		"a hostile id":         {map[string]any{"kid": "\u202e\n"}, `entry 2 ("\u202e\n"): `},
		"a text":               {"key", "entry 2: it is no object"},
		"null":                 {nil, "entry 2: it is no object"},
		"no id":                {published(t, good, map[string]any{"kid": ""}), "entry 2: it has no kid"},
	} {
		set, err := keyset.ParseNamed(document(t, published(t, good, map[string]any{"kid": "good"}), test.entry))
		if err != nil || len(set.Keys) != 1 {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
		if text := strings.Join(set.Skipped, "\n"); !strings.HasPrefix(text, test.reason) || test.reason == "" && text != "" {
			t.Errorf("%s: %s", name, text)
		}
		if test.reason == "" {
			continue
		}
		if _, err := keyset.ParseNamed(document(t, "first", test.entry)); err == nil || !strings.Contains(err.Error(), test.reason) {
			t.Errorf("%s alone: %v", name, err)
		}
	}
	for _, text := range []string{"", "{}", "[]", `{"keys":{}}`, `{"keys":[]}`, "<html>"} {
		if _, err := keyset.Parse([]byte(text)); err == nil {
			t.Errorf("%q is a set of keys", text)
		}
	}
	entries := make([]any, 200)
	for i := range entries {
		entries[i] = published(t, curved, nil)
	}
	if set, err := keyset.Parse(document(t, entries...)); err != nil || len(set.Keys) != 100 || len(set.Skipped) != 11 || set.Skipped[10] != "and 90 more" {
		t.Errorf("%d keys of 200, skipped %q, %v", len(set.Keys), set.Skipped, err)
	}
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	key, curved := rsaKey(t), ecKey(t, elliptic.P256())
	set := modelstest.Value(keyset.Parse(document(t, published(t, key, nil), published(t, curved, map[string]any{"kid": "2"}))))(t)
	good := sign(t, "RS256", key)
	rest := good[strings.IndexByte(good, '.'):]
	der := modelstest.Value(x509.MarshalPKIXPublicKey(key.Public()))(t)
	hmac := encode([]byte(`{"alg":"HS256","kid":"1"}`)) + "." + encode([]byte(`{"sub":"ada"}`))
	for name, token := range map[string]string{
		"another key":              sign(t, "RS256", rsaKey(t)),
		"the key of another id":    sign(t, "ES256", curved),
		"none":                     encode([]byte(`{"alg":"none","kid":"1"}`)) + "." + encode([]byte(`{"sub":"ada"}`)) + ".",
		"none with a signature":    encode([]byte(`{"alg":"none","kid":"1"}`)) + rest,
		"another algorithm":        encode([]byte(`{"alg":"RS384","kid":"1"}`)) + rest,
		"the algorithm of another": encode([]byte(`{"alg":"ES256","kid":"1"}`)) + rest,
		"HMAC with the public key": hmac + "." + encode(modelstest.Value(jwt.SigningMethodHS256.Sign(hmac, der))(t)),
		"other claims":             strings.Replace(good, encode([]byte(`{"sub":"ada"}`)), encode([]byte(`{"sub":"eve"}`)), 1),
		"words":                    "a token", "dots": "..",
	} {
		if payload, err := set.Verify(token); err == nil {
			t.Errorf("%s: %s", name, payload)
		}
	}
	if _, err := set.Verify(good); err != nil {
		t.Error(err)
	}
}

func TestParseScanner(t *testing.T) {
	t.Parallel()
	encoded := func(key crypto.Signer) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: modelstest.Value(x509.MarshalPKIXPublicKey(key.Public()))(t)}))
	}
	good := map[string]any{"key_identifier": "good", "key": encoded(ecKey(t, elliptic.P256())), "is_current": false}
	for name, odd := range map[string]any{
		"RSA":            map[string]any{"key_identifier": "odd", "key": encoded(rsaKey(t))},
		"another curve":  map[string]any{"key_identifier": "odd", "key": encoded(ecKey(t, elliptic.P384()))},
		"not PEM":        map[string]any{"key_identifier": "odd", "key": "AAAA"},
		"another type":   map[string]any{"key_identifier": "odd", "key": 7, "is_current": "yes"},
		"an odd id":      map[string]any{"key_identifier": 7, "key": good["key"]},
		"no identifier":  map[string]any{"key": good["key"]},
		"a text":         "odd",
		"a certificate":  map[string]any{"key_identifier": "odd", "key": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
		"not an SPKI":    map[string]any{"key_identifier": "odd", "key": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"},
		"null for a key": map[string]any{"key_identifier": "odd", "key": nil},
	} {
		text := modelstest.Value(json.Marshal(map[string]any{"public_keys": []any{odd, good}}))(t)
		keys, skipped, err := keyset.ParseScanner(text)
		if err != nil || len(keys) != 1 || keys["good"] == nil {
			t.Errorf("%s: %v, %v", name, keys, err)
		}
		if len(skipped) != 1 || !strings.HasPrefix(skipped[0], "entry 1") {
			t.Errorf("%s: %q", name, skipped)
		}
		if _, _, err := keyset.ParseScanner(modelstest.Value(json.Marshal(map[string]any{"public_keys": []any{odd}}))(t)); err == nil {
			t.Errorf("%s alone is a set", name)
		}
	}
}

func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	key := ecKey(t, elliptic.P256())
	if set, err := keyset.Parse(append([]byte("\ufeff"), document(t, published(t, key, nil))...)); err != nil || len(set.Keys) != 1 {
		t.Errorf("%+v, %v", set, err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: modelstest.Value(x509.MarshalPKIXPublicKey(key.Public()))(t)})
	list := modelstest.Value(json.Marshal(map[string]any{"public_keys": []any{map[string]any{"key_identifier": "1", "key": string(text)}}}))(t)
	if keys, _, err := keyset.ParseScanner(append([]byte("\ufeff"), list...)); err != nil || len(keys) != 1 {
		t.Errorf("%+v, %v", keys, err)
	}
}
