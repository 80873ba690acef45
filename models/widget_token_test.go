package models_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
)

const issuer = "https://portal.example.com"

func widgetTokens(t *testing.T, c *modelstest.Clock, secret, previous string) *models.WidgetTokens {
	t.Helper()
	return models.NewWidgetTokens(keyring(t, secret, previous), issuer, 10*time.Minute, c.Now)
}

func issue(t *testing.T, tokens *models.WidgetTokens, p models.Principal, agentID uuid.UUID) string {
	t.Helper()
	token, err := tokens.Issue(p, agentID)
	must(t, err)
	return token
}

// claimsOf returns the claims that the store checks, for a token of this key and agent.
func claimsOf(c customer, key models.APIKey, agent models.Agent) models.WidgetClaims {
	return models.WidgetClaims{Subject: c.ID.String(), ClientID: key.ID.String(), AgentID: agent.ID.String()}
}

// decode returns the decoded JSON of one part of a token.
func decode(t *testing.T, part string) map[string]any {
	t.Helper()
	text, err := base64.RawURLEncoding.Strict().DecodeString(part)
	must(t, err)
	var decoded map[string]any
	must(t, json.Unmarshal(text, &decoded))
	return decoded
}

func encode(t *testing.T, part map[string]any) string {
	t.Helper()
	text, err := json.Marshal(part)
	must(t, err)
	return base64.RawURLEncoding.EncodeToString(text)
}

// publicKey returns the published key with this id.
func publicKey(t *testing.T, tokens *models.WidgetTokens, kid string) ed25519.PublicKey {
	t.Helper()
	keys := tokens.JWKS()
	found := keys.Key(kid)
	if len(found) != 1 {
		t.Fatalf("%d keys have the id %s", len(found), kid)
	}
	public, ok := found[0].Key.(ed25519.PublicKey)
	if !ok {
		t.Fatalf("the key is a %T", found[0].Key)
	}
	return public
}

func TestWidgetToken(t *testing.T) {
	t.Parallel()
	clock := newClock()
	tokens := widgetTokens(t, clock, newSecret, "")
	p := models.Principal{AccountID: newID(), KeyID: newID()}
	agentID := uuid.New()
	token := issue(t, tokens, p, agentID)
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatal(token)
	}
	header, claims := decode(t, parts[0]), decode(t, parts[1])
	kid, _ := header["kid"].(string)
	if want := map[string]any{"typ": "at+jwt", "alg": "EdDSA", "kid": kid}; !maps.Equal(header, want) {
		t.Errorf("header %v", header)
	}
	id, _ := claims["jti"].(string)
	now := float64(clock.Now().Unix())
	if want := map[string]any{
		"iss": issuer, "aud": "widget", "sub": p.AccountID.String(), "client_id": p.KeyID.String(), "agent_id": agentID.String(),
		"scope": "widget:connect", "iat": now, "nbf": now - 60, "exp": now + 600, "jti": id,
	}; !maps.Equal(claims, want) || uuid.Validate(id) != nil {
		t.Errorf("claims %v, want %v", claims, want)
	}
	signature, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil || !ed25519.Verify(publicKey(t, tokens, kid), []byte(parts[0]+"."+parts[1]), signature) {
		t.Errorf("the published key does not verify the signature: %v", err)
	}
	verified, err := tokens.Verify(token)
	if want := (models.WidgetClaims{
		Issuer: issuer, Audience: "widget", Subject: p.AccountID.String(), ClientID: p.KeyID.String(), AgentID: agentID.String(),
		Scope: "widget:connect", IssuedAt: int64(now), NotBefore: int64(now) - 60, ExpiresAt: int64(now) + 600, ID: id,
	}); err != nil || verified != want {
		t.Errorf("verified as %+v, %v", verified, err)
	}
	if other := decode(t, strings.Split(issue(t, tokens, p, agentID), ".")[1]); other["jti"] == id {
		t.Error("two tokens have one id")
	}
}

func TestWidgetTokenLivesForItsTTL(t *testing.T) {
	t.Parallel()
	clock := modelstest.NewClock(newClock().Now().Truncate(time.Second))
	tokens := models.NewWidgetTokens(keyring(t, newSecret, ""), issuer, 90*time.Second+time.Millisecond, clock.Now)
	if tokens.TTL() != 90*time.Second {
		t.Errorf("lives for %s", tokens.TTL())
	}
	token := issue(t, tokens, models.Principal{}, uuid.New())
	clock.Advance(90*time.Second - time.Nanosecond)
	checkError(t, "just before its end", errOf(tokens.Verify(token)), nil)
	clock.Advance(time.Nanosecond)
	if claims, err := tokens.Verify(token); !errors.Is(err, models.ErrTokenInvalid) || claims != (models.WidgetClaims{}) {
		t.Errorf("at its end: %+v, %v", claims, err)
	}
}

func TestJWKSHasOnlyPublicKeys(t *testing.T) {
	t.Parallel()
	clock := newClock()
	for previous, want := range map[string]int{"": 1, oldSecret: 2} {
		text, err := json.Marshal(widgetTokens(t, clock, newSecret, previous).JWKS())
		must(t, err)
		var set struct {
			Keys []map[string]string `json:"keys"`
		}
		if err := json.Unmarshal(text, &set); err != nil || len(set.Keys) != want {
			t.Fatalf("%s: %v", text, err)
		}
		for i, key := range set.Keys {
			if names := slices.Sorted(maps.Keys(key)); !slices.Equal(names, []string{"alg", "crv", "kid", "kty", "use", "x"}) ||
				key["kty"] != "OKP" || key["crv"] != "Ed25519" || key["alg"] != "EdDSA" || key["use"] != "sig" {
				t.Errorf("%v", key)
			}
			// RFC 7638 section 3, RFC 8037 section 2: the members in this order.
			sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + key["x"] + `"}`))
			if thumbprint := base64.RawURLEncoding.EncodeToString(sum[:]); key["kid"] != thumbprint {
				t.Errorf("kid %s, not %s", key["kid"], thumbprint)
			}
			private := keyring(t, newSecret, previous).SigningKeys()[i]
			if public, _ := private.Public().(ed25519.PublicKey); key["x"] != base64.RawURLEncoding.EncodeToString(public) {
				t.Errorf("x of key %d is %s", i, key["x"])
			}
			if strings.Contains(string(text), base64.RawURLEncoding.EncodeToString(private.Seed())) {
				t.Errorf("a private key is published: %s", text)
			}
		}
	}
}

// forger creates tokens with any header and claims, signed with key.
type forger struct {
	header, claims map[string]any
	key            ed25519.PrivateKey
}

func (f forger) token(t *testing.T) string {
	t.Helper()
	signed := encode(t, f.header) + "." + encode(t, f.claims)
	return signed + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(f.key, []byte(signed)))
}

func TestForgedWidgetTokens(t *testing.T) {
	t.Parallel()
	clock := newClock()
	tokens := widgetTokens(t, clock, newSecret, "")
	now := clock.Now().Unix()
	good := issue(t, tokens, models.Principal{AccountID: newID(), KeyID: newID()}, uuid.New())
	parts := strings.Split(good, ".")
	public, _ := keyring(t, newSecret, "").SigningKeys()[0].Public().(ed25519.PublicKey)
	_, foreign, err := ed25519.GenerateKey(nil)
	must(t, err)
	forge := func(change func(*forger)) string {
		f := forger{decode(t, parts[0]), decode(t, parts[1]), keyring(t, newSecret, "").SigningKeys()[0]}
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
		"an API key":                   unknownKey,
		"no parts":                     "..",
		"one part too few":             parts[0] + "." + parts[1],
		"one part too many":            good + ".",
		"no JSON":                      "e30." + parts[1] + "." + parts[2],
		"without a signature":          parts[0] + "." + parts[1] + ".",
		"a signature cut short":        good[:len(good)-2],
		"algorithm none":               unsigned("none"),
		"algorithm None":               unsigned("None"),
		"unsigned EdDSA":               unsigned("EdDSA"),
		"none, with the signature":     unsigned("none") + parts[2],
		"HMAC with the public key":     symmetric(public),
		"HMAC with it in base64":       symmetric([]byte(base64.RawURLEncoding.EncodeToString(public))),
		"HMAC with nothing":            symmetric(nil),
		"algorithm missing":            forge(func(f *forger) { delete(f.header, "alg") }),
		"another algorithm":            header("alg", "ES256"),
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
		if !errors.Is(err, models.ErrTokenInvalid) || claims != (models.WidgetClaims{}) {
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

func TestRotatedSecret(t *testing.T) {
	t.Parallel()
	clock := newClock()
	before := widgetTokens(t, clock, oldSecret, "")
	during := widgetTokens(t, clock, newSecret, oldSecret)
	after := widgetTokens(t, clock, newSecret, "")
	kid := func(token string) any { return decode(t, strings.Split(token, ".")[0])["kid"] }
	p, agentID := models.Principal{AccountID: newID(), KeyID: newID()}, uuid.New()
	oldToken, newToken := issue(t, before, p, agentID), issue(t, during, p, agentID)
	if kid(newToken) != kid(issue(t, after, p, agentID)) || kid(newToken) == kid(oldToken) {
		t.Error("the previous secret signs")
	}
	for name, test := range map[string]struct {
		tokens *models.WidgetTokens
		token  string
		want   error
	}{
		"old token, before":         {before, oldToken, nil},
		"old token, during":         {during, oldToken, nil},
		"old token, after":          {after, oldToken, models.ErrTokenInvalid},
		"new token, before":         {before, newToken, models.ErrTokenInvalid},
		"new token, during":         {during, newToken, nil},
		"new token, after":          {after, newToken, nil},
		"new token, other instance": {widgetTokens(t, clock, newSecret, oldSecret), newToken, nil},
	} {
		checkError(t, name, errOf(test.tokens.Verify(test.token)), test.want)
	}
	// A token with the id of the current key, but signed with the previous one.
	forged := forger{decode(t, strings.Split(newToken, ".")[0]), decode(t, strings.Split(newToken, ".")[1]), keyring(t, oldSecret, "").SigningKeys()[0]}
	checkError(t, "signed with the previous key", errOf(during.Verify(forged.token(t))), models.ErrTokenInvalid)
}

func TestWidgetTokenIsActiveWhileItsKeyAndAgentAre(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		key, _ := f.key(t, c)
		otherKey, _ := f.key(t, other)
		agent, otherAgent := f.agent(t, c), f.agent(t, other)
		elsewhere := f.open(t, models.Options{})
		active := func(name string, account customer, claims models.WidgetClaims, want bool) {
			t.Helper()
			if active, err := elsewhere.WidgetTokenActive(ctx, account.ID, claims); active != want || err != nil {
				t.Errorf("%s: %t, %v", name, active, err)
			}
		}
		active("its own", c, claimsOf(c, key, agent), true)
		active("introspected by another account", other, claimsOf(c, key, agent), false)
		active("another account's key", c, claimsOf(c, otherKey, agent), false)
		active("another account's agent", c, claimsOf(c, key, otherAgent), false)
		active("everything of another account", c, claimsOf(other, otherKey, otherAgent), false)
		active("no such key", c, claimsOf(c, models.APIKey{ID: newID()}, agent), false)
		active("no such agent", c, claimsOf(c, key, models.Agent{ID: newID()}), false)
		active("no ids", c, models.WidgetClaims{Subject: c.ID.String()}, false)
		active("nothing", c, models.WidgetClaims{}, false)

		revoked, _ := f.key(t, c)
		f.revoke(t, revoked)
		active("key revoked", c, claimsOf(c, revoked, agent), false)
		removed := f.agent(t, c)
		active("before the agent's removal", c, claimsOf(c, key, removed), true)
		must(t, errOf(f.RemoveAgent(ctx, c.ID, removed.ID, c.actor)))
		active("agent removed", c, claimsOf(c, key, removed), false)
		active("still its own", c, claimsOf(c, key, agent), true)
	})
}

func TestTokenOfAnInstanceWithAFastClockIsValidAtOnce(t *testing.T) {
	keyring := keyring(t, newSecret, "")
	instance := func(ahead time.Duration) *models.WidgetTokens {
		return models.NewWidgetTokens(keyring, issuer, time.Minute,
			func() time.Time { return time.Unix(1_800_000_000, 0).Add(ahead) })
	}
	token, err := instance(5*time.Second).Issue(models.Principal{}, uuid.New())
	must(t, err)
	if _, err := instance(0).Verify(token); err != nil {
		t.Error(err)
	}
}
