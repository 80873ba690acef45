package widget_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"portal/models/modelstest"
	"portal/models/secret"
	"portal/models/widget"
)

// The header and claims of the only token that the fuzzed service has issued. They are constant, so
// every fuzzing process has the same token.
const (
	fuzzedHeader = `{"typ":"at+jwt","alg":"EdDSA","kid":"$KID"}`
	fuzzedClaims = `{"iss":"https://portal.example.com","aud":"widget",` +
		`"sub":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c001",` +
		`"client_id":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c002","agent_id":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c003",` +
		`"scope":"widget:connect","iat":1800000000,"nbf":1799999940,"exp":1800000600,"jti":"0198c2f4-7a31-7c6e-9d52-3f8be6a1c004"}`
)

// signer issues and verifies tokens with one secret at a fixed time.
type signer struct {
	*widget.Tokens
	private ed25519.PrivateKey
	kid     string
}

func newSigner(f *testing.F) signer {
	f.Helper()
	keyring := modelstest.Value(secret.NewKeyring(newSecret, ""))(f)
	at := func() time.Time { return time.Unix(1800000300, 0) }
	private, ok := widget.PrivateKeys(keyring, widget.EdDSA)[0].(ed25519.PrivateKey)
	if !ok {
		f.Fatal("the key is not for Ed25519")
	}
	s := signer{Tokens: widget.NewTokens(keyring, issuer, 10*time.Minute, at), private: private}
	s.kid = s.JWKS().Keys[0].KeyID
	return s
}

func (s signer) sign(header, claims string) string {
	token := encoded(strings.ReplaceAll(header, "$KID", s.kid)) + "." + encoded(claims)
	return token + "." + encoded(string(ed25519.Sign(s.private, []byte(token))))
}

func encoded(part string) string { return base64.RawURLEncoding.EncodeToString([]byte(part)) }

// Only the issued token is valid, and no other text.
func FuzzWidgetToken(f *testing.F) {
	s := newSigner(f)
	issued := s.sign(fuzzedHeader, fuzzedClaims)
	modelstest.Value(s.Verify(issued))(f)
	parts := strings.Split(issued, ".")
	public := s.private.Public().(ed25519.PublicKey)
	for _, seed := range []string{
		issued, "", ".", "..", "...", "a.b.c", issued[1:], issued[:len(issued)-1], issued + "=", issued + ".", " " + issued, issued + "\n",
		parts[0] + "." + parts[1], parts[0] + "." + parts[1] + ".", parts[0] + ".." + parts[2], parts[1] + "." + parts[0] + "." + parts[2],
		encoded(`{"typ":"at+jwt","alg":"none"}`) + "." + parts[1] + ".",
		encoded(`{"typ":"at+jwt","alg":"HS256","kid":"`+s.kid+`"}`) + "." + parts[1] + "." + encoded(string(public)),
		strings.ReplaceAll(issued, "-", "+"), strings.ReplaceAll(issued, "_", "/"), strings.ToUpper(issued), issued + parts[2],
		parts[0] + "." + encoded(fuzzedClaims+" ") + "." + parts[2], strings.Repeat("A", 5000), "eyJ" + strings.Repeat(".", 4000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		claims, err := s.Verify(token)
		switch {
		case err == nil && token != issued:
			t.Fatalf("%q is valid: %+v", token, claims)
		case err != nil && token == issued:
			t.Fatal(err)
		case err != nil && (!errors.Is(err, widget.ErrInvalid) || !errors.Is(err, widget.ErrExpired) && claims != widget.Claims{}):
			t.Fatalf("%+v, %v", claims, err)
		}
	})
}

// A token with a valid signature is accepted only if its header and claims say that it is a current
// widget token of this service.
func FuzzSignedWidgetToken(f *testing.F) {
	s := newSigner(f)
	f.Add(fuzzedHeader, fuzzedClaims)
	for _, header := range []string{
		``, `{}`, `null`, `[]`, `{"typ":"JWT","alg":"EdDSA","kid":"$KID"}`, `{"typ":"at+jwt","alg":"EdDSA"}`, `{"typ":["at+jwt"],"alg":"EdDSA","kid":"$KID"}`,
		`{"typ":"at+jwt","alg":"EdDSA","kid":["$KID"]}`, `{"typ":"at+jwt","alg":"none","kid":"$KID"}`, `{"typ":"at+jwt","alg":"HS256","kid":"$KID"}`,
		`{"typ":"at+jwt","alg":"EdDSA","kid":"$KID","crit":["exp"]}`, `{"typ":"at+jwt","alg":"EdDSA","kid":"$KID","crit":null}`,
		`{"typ":"at+jwt","alg":"EdDSA","kid":"$KID","typ":"JWT"}`, `{"typ":"at+jwt","alg":"EdDSA","kid":"$KID","jwk":{}}`,
	} {
		f.Add(header, fuzzedClaims)
	}
	for _, claims := range []string{
		``, `{}`, `null`, `[]`, strings.ReplaceAll(fuzzedClaims, "1800000600", "1800000300"), strings.ReplaceAll(fuzzedClaims, "1800000600", "null"),
		strings.ReplaceAll(fuzzedClaims, "1800000600", "1e30"), strings.ReplaceAll(fuzzedClaims, "1800000600", "-1"),
		strings.ReplaceAll(fuzzedClaims, "1800000600", "9223372036854775807"), strings.ReplaceAll(fuzzedClaims, `"nbf":1799999940`, `"nbf":1800000305`),
		strings.ReplaceAll(fuzzedClaims, `"nbf":1799999940`, `"nbf":1800000306`),
		strings.ReplaceAll(fuzzedClaims, `"widget"`, `["widget"]`), strings.ReplaceAll(fuzzedClaims, `"widget"`, `"Widget"`),
		strings.ReplaceAll(fuzzedClaims, "https:", "http:"), strings.ReplaceAll(fuzzedClaims, `"iss"`, `"ISS"`), fuzzedClaims + "{}",
	} {
		f.Add(fuzzedHeader, claims)
	}
	f.Fuzz(func(t *testing.T, header, claims string) {
		got, err := s.Verify(s.sign(header, claims))
		if err != nil {
			return
		}
		// The clocks of instances may be 5 s apart.
		if got.Issuer != issuer || got.Audience != "widget" || got.ExpiresAt <= 1800000300 || got.NotBefore > 1800000305 {
			t.Fatalf("the claims are accepted: %s", claims)
		}
		var fields map[string]any
		must(t, json.Unmarshal([]byte(strings.ReplaceAll(header, "$KID", s.kid)), &fields))
		if _, critical := fields["crit"]; critical || fields["typ"] != "at+jwt" || fields["alg"] != "EdDSA" || fields["kid"] != s.kid {
			t.Fatalf("the header is accepted: %s", header)
		}
	})
}
