package widget_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"portal/models/modelstest"
	"portal/models/widget"
)

// forger creates tokens with any header and claims, signed with key.
type forger struct {
	header, claims map[string]any
	key            crypto.Signer
}

func (f forger) token(t *testing.T) string {
	t.Helper()
	signed := encode(t, f.header) + "." + encode(t, f.claims)
	return signed + "." + base64.RawURLEncoding.EncodeToString(sign(t, f.key, signed))
}

// sign returns the signature of a text in the form of JOSE.
func sign(t *testing.T, key crypto.Signer, text string) []byte {
	t.Helper()
	switch key := key.(type) {
	case ed25519.PrivateKey:
		return ed25519.Sign(key, []byte(text))
	case *ecdsa.PrivateKey:
		sum := sha256.Sum256([]byte(text))
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		must(t, err)
		signature := make([]byte, 64)
		r.FillBytes(signature[:32])
		s.FillBytes(signature[32:])
		return signature
	default:
		t.Fatalf("the key is a %T", key)
		return nil
	}
}

func TestForgedWidgetTokens(t *testing.T) {
	t.Parallel()
	for _, algorithm := range widget.Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			checkForgeries(t, algorithm)
		})
	}
}

func checkForgeries(t *testing.T, algorithm widget.Algorithm) {
	t.Helper()
	clock := newClock()
	tokens := widgetTokens(t, clock, newSecret, "", algorithm)
	key := widget.PrivateKeys(keyring(t, newSecret, ""), algorithm)[0]
	other := widget.ES256
	if algorithm == widget.ES256 {
		other = widget.EdDSA
	}
	otherKey := widget.PrivateKeys(keyring(t, newSecret, ""), other)[0]
	otherKid := widgetTokens(t, clock, newSecret, "", other).JWKS().Keys[0].KeyID
	foreign := widget.PrivateKeys(keyring(t, strings.Repeat("another secret ", 3), ""), algorithm)[0]
	now := clock.Now().Unix()
	good := issue(t, tokens, newGrant())
	parts := strings.Split(good, ".")
	public := modelstest.Value(x509.MarshalPKIXPublicKey(key.Public()))(t)
	forge := func(change func(*forger)) string {
		f := forger{header: decode(t, parts[0]), claims: decode(t, parts[1]), key: key}
		change(&f)
		return f.token(t)
	}
	header := func(name string, value any) string { return forge(func(f *forger) { f.header[name] = value }) }
	claim := func(name string, value any) string { return forge(func(f *forger) { f.claims[name] = value }) }
	symmetric := func(key []byte) string {
		h := decode(t, parts[0])
		h["alg"] = "HS256"
		signed := encode(t, h) + "." + parts[1]
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(signed))
		return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	unsigned := func(alg string) string {
		h := decode(t, parts[0])
		h["alg"] = alg
		return encode(t, h) + "." + parts[1] + "."
	}

	checkError(t, "an unchanged token", errOf(tokens.Verify(forge(func(*forger) {}))), nil)
	for name, token := range map[string]string{
		"empty":                        "",
		"an API key":                   "nas_" + strings.Repeat("0", 36),
		"no parts":                     "..",
		"one part too few":             parts[0] + "." + parts[1],
		"one part too many":            good + ".",
		"no JSON":                      "e30." + parts[1] + "." + parts[2],
		"without a signature":          parts[0] + "." + parts[1] + ".",
		"a signature cut short":        good[:len(good)-2],
		"algorithm none":               unsigned("none"),
		"algorithm None":               unsigned("None"),
		"unsigned":                     unsigned(string(algorithm)),
		"none, with the signature":     unsigned("none") + parts[2],
		"HMAC with the public key":     symmetric(public),
		"HMAC with it in base64":       symmetric([]byte(base64.RawURLEncoding.EncodeToString(public))),
		"HMAC with nothing":            symmetric(nil),
		"algorithm missing":            forge(func(f *forger) { delete(f.header, "alg") }),
		"another algorithm":            header("alg", string(other)),
		"another curve":                header("alg", "ES384"),
		"signature of zeros":           parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)),
		"the other algorithm's key":    forge(func(f *forger) { f.header["alg"], f.key = string(other), otherKey }),
		"its id, but our algorithm":    forge(func(f *forger) { f.header["kid"], f.key = otherKid, otherKey }),
		"its id, but our key":          header("kid", otherKid),
		"its id and name, our key":     forge(func(f *forger) { f.header["kid"], f.header["alg"] = otherKid, string(other) }),
		"signed by another key":        forge(func(f *forger) { f.key = foreign }),
		"unknown key":                  header("kid", "x"),
		"no key":                       forge(func(f *forger) { delete(f.header, "kid") }),
		"key no string":                header("kid", 1),
		"typ JWT":                      header("typ", "JWT"),
		"typ no string":                header("typ", 1),
		"no typ":                       forge(func(f *forger) { delete(f.header, "typ") }),
		"critical exp":                 header("crit", []string{"exp"}),
		"critical something":           forge(func(f *forger) { f.header["crit"], f.header["b64"] = []string{"b64"}, false }),
		"critical nothing":             header("crit", []string{}),
		"critical null":                header("crit", nil),
		"expired":                      claim("exp", now),
		"expired long ago":             claim("exp", 1),
		"expires never":                forge(func(f *forger) { delete(f.claims, "exp") }),
		"expires at zero":              claim("exp", 0),
		"expires before 1970":          claim("exp", -1),
		"expires in words":             claim("exp", "tomorrow"),
		"not yet valid":                claim("nbf", now+6),
		"another audience":             claim("aud", "portal"),
		"no audience":                  forge(func(f *forger) { delete(f.claims, "aud") }),
		"empty audience":               claim("aud", ""),
		"another issuer":               claim("iss", "https://portal.example.org"),
		"issuer with a slash":          claim("iss", issuer+"/"),
		"no issuer":                    forge(func(f *forger) { delete(f.claims, "iss") }),
		"claims changed":               parts[0] + "." + encode(t, map[string]any{"iss": issuer}) + "." + parts[2],
		"claims no object":             parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte("[]")) + "." + parts[2],
		"longer than any":              claim("jti", strings.Repeat("x", 5000)),
		"very long":                    strings.Repeat("x", 1<<20),
		"last character not canonical": good[:len(good)-1] + string(sibling(good[len(good)-1])),
		"padded":                       good + "==",
		"a line break after":           good + "\n",
		"a line break inside":          good[:len(good)-10] + "\r\n" + good[len(good)-10:],
		"a space after":                good + " ",
		"standard base64":              parts[0] + "." + parts[1] + "." + strings.NewReplacer("-", "+", "_", "/").Replace(withURLCharacters(t, parts[2])),
	} {
		claims, err := tokens.Verify(token)
		if !errors.Is(err, widget.ErrInvalid) || !errors.Is(err, widget.ErrExpired) && claims != (widget.Claims{}) {
			t.Errorf("%s: %+v, %v", name, claims, err)
		}
	}
	checkError(t, "the token itself", errOf(tokens.Verify(good)), nil)
}

// sibling returns another base64url character with the same leading bits. Only these bits count at
// the end of a signature.
func sibling(c byte) byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return alphabet[strings.IndexByte(alphabet, c)^1]
}

// withURLCharacters returns a signature with a character that standard base64 does not have. It may
// be another signature, because the token must be refused in any case.
func withURLCharacters(t *testing.T, signature string) string {
	t.Helper()
	if strings.ContainsAny(signature, "-_") {
		return signature
	}
	return "-" + signature[1:]
}
