package widget_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/modelstest"
	"portal/models/widget"
)

var must = modelstest.Must

const issuer = "https://portal.example.com"

func widgetTokens(
	t *testing.T, c *modelstest.Clock, secret, previous string, algorithms ...widget.Algorithm,
) *widget.Tokens {
	t.Helper()
	return widget.NewTokens(keyring(t, secret, previous), issuer, 10*time.Minute, c.Now, algorithms...)
}

// newGrant returns a grant of random ids.
func newGrant() widget.Grant {
	return widget.Grant{AccountID: uuid.New(), KeyID: uuid.New(), AgentID: uuid.New()}
}

func issue(t *testing.T, tokens *widget.Tokens, grant widget.Grant) string {
	t.Helper()
	token, _, err := tokens.Issue(nil, grant)
	must(t, err)
	return string(token)
}

func checkError(t testing.TB, name string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", name, err, want)
	}
}

// errOf returns the error of a call and drops its result.
func errOf[T any](_ T, err error) error { return err }

// newClock returns a clock with a time between two seconds.
func newClock() *modelstest.Clock {
	return modelstest.NewClock(time.Date(2026, time.March, 14, 15, 9, 26, 535897000, time.UTC))
}

// decode returns the decoded JSON of one part of a token.
func decode(t *testing.T, part string) map[string]any {
	t.Helper()
	text := modelstest.Value(base64.RawURLEncoding.Strict().DecodeString(part))(t)
	var decoded map[string]any
	must(t, json.Unmarshal(text, &decoded))
	return decoded
}

func encode(t *testing.T, part map[string]any) string {
	t.Helper()
	text := modelstest.Value(json.Marshal(part))(t)
	return base64.RawURLEncoding.EncodeToString(text)
}

// checkSignature checks a token's signature with the published key of this id, without our code.
func checkSignature(t *testing.T, tokens *widget.Tokens, kid, token string) {
	t.Helper()
	keys := tokens.JWKS()
	found := keys.Key(kid)
	if len(found) != 1 {
		t.Fatalf("%d keys have the id %s", len(found), kid)
	}
	signed := token[:strings.LastIndex(token, ".")]
	signature, err := base64.RawURLEncoding.Strict().DecodeString(token[len(signed)+1:])
	must(t, err)
	if len(signature) != 64 {
		t.Errorf("the signature has %d bytes", len(signature))
	}
	valid := false
	switch public := found[0].Key.(type) {
	case ed25519.PublicKey:
		valid = ed25519.Verify(public, []byte(signed), signature)
	case *ecdsa.PublicKey: // RFC 7518, section 3.4
		sum := sha256.Sum256([]byte(signed))
		r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
		valid = ecdsa.Verify(public, sum[:], r, s)
	}
	if !valid {
		t.Errorf("the published key does not verify the signature of %s", token)
	}
}

func TestWidgetToken(t *testing.T) {
	t.Parallel()
	for _, algorithm := range widget.Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			checkIssuedToken(t, algorithm)
		})
	}
}

func checkIssuedToken(t *testing.T, algorithm widget.Algorithm) {
	t.Helper()
	clock := newClock()
	tokens := widgetTokens(t, clock, newSecret, "", algorithm)
	grant := newGrant()
	token := issue(t, tokens, grant)
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatal(token)
	}
	header, claims := decode(t, parts[0]), decode(t, parts[1])
	kid, _ := header["kid"].(string)
	if want := map[string]any{"typ": "at+jwt", "alg": string(algorithm), "kid": kid}; !maps.Equal(header, want) {
		t.Errorf("header %v", header)
	}
	id, _ := claims["jti"].(string)
	now := float64(clock.Now().Unix())
	if want := map[string]any{
		"iss": issuer, "aud": "widget", "sub": grant.AccountID.String(), "client_id": grant.KeyID.String(), "agent_id": grant.AgentID.String(),
		"scope": "widget:connect", "iat": now, "nbf": now - 60, "exp": now + 600, "jti": id,
	}; !maps.Equal(claims, want) || uuid.Validate(id) != nil {
		t.Errorf("claims %v, want %v", claims, want)
	}
	checkSignature(t, tokens, kid, token)
	verified, err := tokens.Verify(token)
	if want := (widget.Claims{
		Issuer: issuer, Audience: "widget", AccountID: grant.AccountID, KeyID: grant.KeyID, AgentID: grant.AgentID,
		Scope: "widget:connect", IssuedAt: int64(now), NotBefore: int64(now) - 60, ExpiresAt: int64(now) + 600, ID: uuid.MustParse(id),
	}); err != nil || verified != want {
		t.Errorf("verified as %+v, %v", verified, err)
	}
	if other := decode(t, strings.Split(issue(t, tokens, grant), ".")[1]); other["jti"] == id {
		t.Error("two tokens have one id")
	}
}

func TestWidgetTokenLivesForItsTTL(t *testing.T) {
	t.Parallel()
	clock := modelstest.NewClock(newClock().Now().Truncate(time.Second))
	tokens := widget.NewTokens(keyring(t, newSecret, ""), issuer, 90*time.Second+time.Millisecond, clock.Now)
	if tokens.TTL() != 90*time.Second {
		t.Errorf("lives for %s", tokens.TTL())
	}
	token := issue(t, tokens, newGrant())
	clock.Advance(90*time.Second - time.Nanosecond)
	checkError(t, "just before its end", errOf(tokens.Verify(token)), nil)
	clock.Advance(time.Nanosecond)
	// Only the first one has the token in memory.
	for _, tokens := range []*widget.Tokens{tokens, widgetTokens(t, clock, newSecret, "")} {
		claims, err := tokens.Verify(token)
		if !errors.Is(err, widget.ErrExpired) || !errors.Is(err, widget.ErrInvalid) || claims.AccountID == uuid.Nil {
			t.Errorf("at its end: %+v, %v", claims, err)
		}
	}
}

func TestVerifiedTokenIsNotValidBeforeItsTime(t *testing.T) {
	t.Parallel()
	clock := newClock()
	tokens := widgetTokens(t, clock, newSecret, "")
	token := issue(t, tokens, newGrant())
	checkError(t, "at its time", errOf(tokens.Verify(token)), nil)
	clock.Advance(-2 * time.Minute) // somebody corrects the clock
	checkError(t, "before its time", errOf(tokens.Verify(token)), widget.ErrInvalid)
}

func TestJWKSHasOnlyPublicKeys(t *testing.T) {
	t.Parallel()
	clock := newClock()
	for _, algorithms := range [][]widget.Algorithm{
		nil, {widget.EdDSA}, {widget.ES256}, {widget.EdDSA, widget.ES256}, {widget.ES256, widget.EdDSA},
	} {
		for _, previous := range []string{"", oldSecret} {
			text, err := json.Marshal(widgetTokens(t, clock, newSecret, previous, algorithms...).JWKS())
			must(t, err)
			var set struct {
				Keys []map[string]string `json:"keys"`
			}
			must(t, json.Unmarshal(text, &set))
			if len(algorithms) == 0 {
				algorithms = []widget.Algorithm{widget.EdDSA}
			}
			i := 0
			for _, algorithm := range algorithms {
				for _, private := range widget.PrivateKeys(keyring(t, newSecret, previous), algorithm) {
					if i == len(set.Keys) {
						t.Fatalf("%v: too few keys: %s", algorithms, text)
					}
					checkJWK(t, set.Keys[i], private)
					if strings.Contains(string(text), base64.RawURLEncoding.EncodeToString(privateBytes(t, private))) {
						t.Errorf("a private key is published: %s", text)
					}
					i++
				}
			}
			if i != len(set.Keys) {
				t.Errorf("%v: too many keys: %s", algorithms, text)
			}
		}
	}
}

// checkJWK checks that a JWK has the public key of a key pair and nothing else.
func checkJWK(t *testing.T, jwk map[string]string, private crypto.Signer) {
	t.Helper()
	want := map[string]string{"use": "sig", "kid": jwk["kid"]}
	thumbprinted := ""
	switch public := private.Public().(type) {
	case ed25519.PublicKey:
		want["kty"], want["crv"], want["alg"], want["x"] = "OKP", "Ed25519", "EdDSA", base64.RawURLEncoding.EncodeToString(public)
		// RFC 7638 section 3, RFC 8037 section 2: the members in this order.
		thumbprinted = `{"crv":"Ed25519","kty":"OKP","x":"` + want["x"] + `"}`
	case *ecdsa.PublicKey:
		point := modelstest.Value(public.Bytes())(t)
		want["kty"], want["crv"], want["alg"] = "EC", "P-256", "ES256"
		want["x"], want["y"] = base64.RawURLEncoding.EncodeToString(point[1:33]), base64.RawURLEncoding.EncodeToString(point[33:])
		thumbprinted = `{"crv":"P-256","kty":"EC","x":"` + want["x"] + `","y":"` + want["y"] + `"}`
	}
	if !maps.Equal(jwk, want) {
		t.Errorf("got %v, want %v", jwk, want)
	}
	sum := sha256.Sum256([]byte(thumbprinted))
	if thumbprint := base64.RawURLEncoding.EncodeToString(sum[:]); jwk["kid"] != thumbprint {
		t.Errorf("kid %s, want %s", jwk["kid"], thumbprint)
	}
}

func TestTokenOfAnInstanceWithAFastClockIsValidAtOnce(t *testing.T) {
	keyring := keyring(t, newSecret, "")
	instance := func(ahead time.Duration) *widget.Tokens {
		return widget.NewTokens(keyring, issuer, time.Minute,
			func() time.Time { return time.Unix(1_800_000_000, 0).Add(ahead) })
	}
	token, _, err := instance(5*time.Second).Issue(nil, newGrant())
	must(t, err)
	if _, err := instance(0).Verify(string(token)); err != nil {
		t.Error(err)
	}
}

// The second verification takes the signature from memory.
func TestTokenKeepsItsContext(t *testing.T) {
	t.Parallel()
	clock := newClock()
	tokens := widgetTokens(t, clock, newSecret, "")
	// JSON makes 6 bytes of 3.
	long, longer := strings.Repeat("\u2028", 128), strings.Repeat("\u2028", 680)
	for name, context := range map[string]*widget.Context{
		"a user":         {User: &widget.User{ID: "7"}},
		"a name":         {User: &widget.User{ID: `"<7>" \`, Name: "Zoë\u2028"}},
		"metadata":       {Metadata: map[string]string{"plan": "gold", "": ""}},
		"empty metadata": {Metadata: map[string]string{}},
		"the longest":    {User: &widget.User{ID: long, Name: long}, Metadata: map[string]string{"x": longer}},
	} {
		grant := newGrant()
		grant.Context, grant.Life = context, 90*time.Second+time.Nanosecond
		token := issue(t, tokens, grant)
		for range 2 {
			claims := modelstest.Value(tokens.Verify(token))(t)
			if !reflect.DeepEqual(claims.Context, context) || claims.ExpiresAt-claims.IssuedAt != 90 {
				t.Errorf("%s: got %+v for %d s", name, claims.Context, claims.ExpiresAt-claims.IssuedAt)
			}
		}
		clock.Advance(91 * time.Second)
		checkError(t, name, errOf(tokens.Verify(token)), widget.ErrExpired)
	}
	for name, grant := range map[string]widget.Grant{"no context": {}, "an empty context": {Context: &widget.Context{}}, "a long life": {Life: time.Hour}} {
		claims := modelstest.Value(tokens.Verify(issue(t, tokens, grant)))(t)
		if claims.Context != nil || claims.ExpiresAt-claims.IssuedAt != 600 {
			t.Errorf("%s: context %+v for %d s", name, claims.Context, claims.ExpiresAt-claims.IssuedAt)
		}
	}
}
