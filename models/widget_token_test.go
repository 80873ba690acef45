package models_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
)

const issuer = "https://portal.example.com"

func widgetTokens(
	t *testing.T, c *modelstest.Clock, secret, previous string, algorithms ...models.TokenAlgorithm,
) *models.WidgetTokens {
	t.Helper()
	return models.NewWidgetTokens(keyring(t, secret, previous), issuer, 10*time.Minute, c.Now, algorithms...)
}

func issue(t *testing.T, tokens *models.WidgetTokens, p models.Principal, agentID uuid.UUID) string {
	t.Helper()
	token, _, err := tokens.Issue(p, agentID)
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

// checkSignature checks a token's signature with the published key of this id, without our code.
func checkSignature(t *testing.T, tokens *models.WidgetTokens, kid, token string) {
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
	for _, algorithm := range models.TokenAlgorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			checkIssuedToken(t, algorithm)
		})
	}
}

func checkIssuedToken(t *testing.T, algorithm models.TokenAlgorithm) {
	t.Helper()
	clock := newClock()
	tokens := widgetTokens(t, clock, newSecret, "", algorithm)
	p := models.Principal{AccountID: newID(), KeyID: newID()}
	agentID := uuid.New()
	token := issue(t, tokens, p, agentID)
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
		"iss": issuer, "aud": "widget", "sub": p.AccountID.String(), "client_id": p.KeyID.String(), "agent_id": agentID.String(),
		"scope": "widget:connect", "iat": now, "nbf": now - 60, "exp": now + 600, "jti": id,
	}; !maps.Equal(claims, want) || uuid.Validate(id) != nil {
		t.Errorf("claims %v, want %v", claims, want)
	}
	checkSignature(t, tokens, kid, token)
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
	// Only the first one has the token in memory.
	for _, tokens := range []*models.WidgetTokens{tokens, widgetTokens(t, clock, newSecret, "")} {
		claims, err := tokens.Verify(token)
		if !errors.Is(err, models.ErrTokenExpired) || !errors.Is(err, models.ErrTokenInvalid) || claims != (models.WidgetClaims{}) {
			t.Errorf("at its end: %+v, %v", claims, err)
		}
	}
}

func TestVerifiedTokenIsNotValidBeforeItsTime(t *testing.T) {
	t.Parallel()
	clock := newClock()
	tokens := widgetTokens(t, clock, newSecret, "")
	token := issue(t, tokens, models.Principal{}, uuid.New())
	checkError(t, "at its time", errOf(tokens.Verify(token)), nil)
	clock.Advance(-2 * time.Minute) // somebody corrects the clock
	checkError(t, "before its time", errOf(tokens.Verify(token)), models.ErrTokenInvalid)
}

func TestJWKSHasOnlyPublicKeys(t *testing.T) {
	t.Parallel()
	clock := newClock()
	for _, algorithms := range [][]models.TokenAlgorithm{
		nil, {models.EdDSA}, {models.ES256}, {models.EdDSA, models.ES256}, {models.ES256, models.EdDSA},
	} {
		for _, previous := range []string{"", oldSecret} {
			text, err := json.Marshal(widgetTokens(t, clock, newSecret, previous, algorithms...).JWKS())
			must(t, err)
			var set struct {
				Keys []map[string]string `json:"keys"`
			}
			must(t, json.Unmarshal(text, &set))
			if len(algorithms) == 0 {
				algorithms = []models.TokenAlgorithm{models.EdDSA}
			}
			i := 0
			for _, algorithm := range algorithms {
				for _, private := range keyring(t, newSecret, previous).TokenKeys(algorithm) {
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
		point, err := public.Bytes()
		must(t, err)
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
	for _, algorithm := range models.TokenAlgorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			checkForgeries(t, algorithm)
		})
	}
}

func checkForgeries(t *testing.T, algorithm models.TokenAlgorithm) {
	t.Helper()
	clock := newClock()
	tokens := widgetTokens(t, clock, newSecret, "", algorithm)
	key := keyring(t, newSecret, "").TokenKeys(algorithm)[0]
	other := models.ES256
	if algorithm == models.ES256 {
		other = models.EdDSA
	}
	otherKey := keyring(t, newSecret, "").TokenKeys(other)[0]
	otherKid := widgetTokens(t, clock, newSecret, "", other).JWKS().Keys[0].KeyID
	foreign := keyring(t, strings.Repeat("another secret ", 3), "").TokenKeys(algorithm)[0]
	now := clock.Now().Unix()
	good := issue(t, tokens, models.Principal{AccountID: newID(), KeyID: newID()}, uuid.New())
	parts := strings.Split(good, ".")
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	must(t, err)
	forge := func(change func(*forger)) string {
		f := forger{decode(t, parts[0]), decode(t, parts[1]), key}
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
	forged := forger{decode(t, strings.Split(newToken, ".")[0]), decode(t, strings.Split(newToken, ".")[1]), keyring(t, oldSecret, "").TokenKeys(models.EdDSA)[0]}
	checkError(t, "signed with the previous key", errOf(during.Verify(forged.token(t))), models.ErrTokenInvalid)
}

// The steps of a change from EdDSA to ES256 for several instances.
func TestTokensOfEveryAlgorithmVerifyOnEveryInstance(t *testing.T) {
	t.Parallel()
	clock := newClock()
	lists := [][]models.TokenAlgorithm{
		{models.EdDSA}, {models.EdDSA, models.ES256}, {models.ES256, models.EdDSA}, {models.ES256},
	}
	for _, signing := range lists {
		for _, secrets := range [][2]string{{newSecret, ""}, {newSecret, oldSecret}, {oldSecret, newSecret}} {
			token := issue(t, widgetTokens(t, clock, secrets[0], secrets[1], signing...), models.Principal{}, uuid.New())
			if alg := decode(t, strings.Split(token, ".")[0])["alg"]; alg != string(signing[0]) {
				t.Errorf("%v: signed with %v", signing, alg)
			}
			for _, verifying := range lists {
				other := widgetTokens(t, clock, newSecret, oldSecret, verifying...)
				if _, err := other.Verify(token); err != nil {
					t.Errorf("signed by %v, verified by %v: %v", signing, verifying, err)
				}
			}
		}
	}
}

// checkToken checks the key, the account and the agent of a verified token.
func checkToken(ctx context.Context, store *models.Store, claims models.WidgetClaims) error {
	p, agentID, err := store.AuthenticateToken(ctx, claims)
	if err != nil {
		return err
	}
	if p.AccountID.String() != claims.Subject || p.KeyID.String() != claims.ClientID || agentID.String() != claims.AgentID {
		return fmt.Errorf("authenticated as %+v for the agent %s", p, agentID)
	}
	return store.CheckAgent(ctx, p, agentID)
}

func TestTokenIsAcceptedWhileItsKeyAccountAndAgentAreActive(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c, other := t.Context(), f.customer(t), f.customer(t)
		key, _ := f.key(t, c)
		otherKey, _ := f.key(t, other)
		agent, otherAgent := f.agent(t, c), f.agent(t, other)
		elsewhere := f.open(t, models.Options{})
		check := func(name string, claims models.WidgetClaims, want error) {
			t.Helper()
			for _, store := range []*models.Store{f.Store, elsewhere, elsewhere} { // the last from memory
				checkError(t, name, checkToken(ctx, store, claims), want)
			}
		}
		check("its own", claimsOf(c, key, agent), nil)
		check("another account's key", claimsOf(c, otherKey, agent), models.ErrTokenInvalid)
		check("another account's agent", claimsOf(c, key, otherAgent), models.ErrAgentNotFound)
		check("another account", claimsOf(other, otherKey, otherAgent), nil)
		check("no such key", claimsOf(c, models.APIKey{ID: newID()}, agent), models.ErrKeyRevoked)
		check("no such agent", claimsOf(c, key, models.Agent{ID: newID()}), models.ErrAgentNotFound)
		check("zero key", claimsOf(c, models.APIKey{}, agent), models.ErrTokenInvalid)
		check("no ids", models.WidgetClaims{Subject: c.ID.String()}, models.ErrTokenInvalid)
		check("nothing", models.WidgetClaims{}, models.ErrTokenInvalid)

		revoked, _ := f.key(t, c)
		check("before the key's revocation", claimsOf(c, revoked, agent), nil)
		f.revoke(t, revoked)
		check("key revoked", claimsOf(c, revoked, agent), models.ErrKeyRevoked)
		removed := f.agent(t, c)
		check("before the agent's removal", claimsOf(c, key, removed), nil)
		must(t, errOf(f.RemoveAgent(ctx, c.ID, removed.ID, c.actor)))
		check("agent removed", claimsOf(c, key, removed), models.ErrAgentNotFound)
		check("still its own", claimsOf(c, key, agent), nil)
		f.exec(t, "UPDATE accounts SET disabled_at = created_at WHERE id = ?", c.ID)
		check("account disabled", claimsOf(c, key, agent), models.ErrAccountDisabled)
		check("the account beside it", claimsOf(other, otherKey, otherAgent), nil)
		f.exec(t, "UPDATE accounts SET disabled_at = NULL WHERE id = ?", c.ID)
		check("account enabled", claimsOf(c, key, agent), nil)
		f.exec(t, "DELETE FROM api_keys WHERE id = ?", key.ID)
		check("key deleted", claimsOf(c, key, agent), models.ErrKeyRevoked)
	})
}

func TestTokenOfAnInstanceWithAFastClockIsValidAtOnce(t *testing.T) {
	keyring := keyring(t, newSecret, "")
	instance := func(ahead time.Duration) *models.WidgetTokens {
		return models.NewWidgetTokens(keyring, issuer, time.Minute,
			func() time.Time { return time.Unix(1_800_000_000, 0).Add(ahead) })
	}
	token, _, err := instance(5*time.Second).Issue(models.Principal{}, uuid.New())
	must(t, err)
	if _, err := instance(0).Verify(token); err != nil {
		t.Error(err)
	}
}
