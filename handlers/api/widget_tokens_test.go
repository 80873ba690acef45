package api_test

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"portal/models/modelstest"
	"portal/models/widget"
)

func TestTokenVerifiesWithThePublishedKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		var granted struct {
			AccessToken string `json:"access_token"`
			TokenType   string `json:"token_type"`
			ExpiresIn   int    `json:"expires_in"`
		}
		s.post("/api/widget/token", bearer(c.secret), jsonBody(agentRequest(c.agent.ID))).is(http.StatusOK).into(&granted)
		if granted.TokenType != "Bearer" || granted.ExpiresIn != 600 {
			t.Errorf("token_type %q, expires_in %d", granted.TokenType, granted.ExpiresIn)
		}

		var published jose.JSONWebKeySet
		keys := s.get("/.well-known/jwks.json").is(http.StatusOK)
		keys.has("Cache-Control", "public, max-age=300")
		keys.into(&published)
		token := verified(t, granted.AccessToken, published, s.clock)
		if token.Header["typ"] != "at+jwt" || token.Header["alg"] != "EdDSA" || len(token.Header) != 3 {
			t.Errorf("header %v", token.Header)
		}

		now := float64(s.clock.Now().Unix())
		claims := token.Claims.(jwt.MapClaims)
		if id, _ := claims["jti"].(string); id == "" {
			t.Error("no jti")
		}
		delete(claims, "jti")
		for name, want := range map[string]any{
			"iss": issuer, "aud": "widget", "sub": c.accountID.String(), "client_id": c.key.ID.String(),
			"agent_id": c.agent.ID.String(), "scope": "widget:connect",
			"iat": now, "nbf": now - 60, "exp": now + tokenTTL.Seconds(),
		} {
			if claims[name] != want {
				t.Errorf("%s: %v, want %v", name, claims[name], want)
			}
			delete(claims, name)
		}
		if len(claims) > 0 {
			t.Errorf("further claims: %v", claims)
		}
	})
}

func TestTokensAreUnique(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		if first, second := s.token(c), s.token(c); first == second {
			t.Error("two tokens are the same")
		}
	})
}

func TestTokenContainsNoPartOfTheKey(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		for part := range strings.SplitSeq(s.token(c), ".") {
			decoded := modelstest.Value(base64.RawURLEncoding.DecodeString(part))(t)
			if strings.Contains(string(decoded), "nas_") || strings.Contains(string(decoded), c.secret[4:12]) {
				t.Errorf("the token contains %s", decoded)
			}
		}
	})
}

func TestPublishedKeysArePublicAndHaveTheirThumbprintAsKid(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, _ customer) {
		a := s.get("/.well-known/jwks.json").is(http.StatusOK)
		var published jose.JSONWebKeySet
		a.into(&published)
		for _, key := range published.Keys {
			thumbprint := modelstest.Value(key.Thumbprint(crypto.SHA256))(t)
			if want := base64.RawURLEncoding.EncodeToString(thumbprint); key.KeyID != want {
				t.Errorf("kid %s, want %s", key.KeyID, want)
			}
			if !key.IsPublic() {
				t.Errorf("the key %s is not public", key.KeyID)
			}
		}
		var raw struct{ Keys []map[string]json.RawMessage }
		a.into(&raw)
		for _, key := range raw.Keys {
			if _, private := key["d"]; private {
				t.Error("a private key is published")
			}
		}
	})
}

// The schemas of openapi.json are checked with every response.
func TestDocumentsOfEachAlgorithm(t *testing.T) {
	databaseURL := modelstest.SQLiteURL(t)
	for _, algorithms := range [][]widget.Algorithm{
		{widget.EdDSA}, {widget.ES256}, {widget.EdDSA, widget.ES256}, {widget.ES256, widget.EdDSA},
	} {
		s := newSigningService(t, databaseURL, algorithms...)
		var published jose.JSONWebKeySet
		s.get("/.well-known/jwks.json").is(http.StatusOK).into(&published)
		var found []widget.Algorithm
		for _, key := range published.Keys {
			found = append(found, widget.Algorithm(key.Algorithm))
		}
		if !slices.Equal(found, algorithms) {
			t.Errorf("%v: the published keys are for %v", algorithms, found)
		}
		want := map[string]any{
			"issuer": issuer, "jwks_uri": issuer + "/.well-known/jwks.json", "introspection_endpoint": issuer + "/api/widget/introspect",
			"response_types_supported": []any{"id_token"}, "subject_types_supported": []any{"public"},
		}
		var listed []any
		for _, algorithm := range algorithms {
			listed = append(listed, string(algorithm))
		}
		want["id_token_signing_alg_values_supported"] = listed
		for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
			a := s.get(path).is(http.StatusOK)
			a.has("Cache-Control", "public, max-age=300")
			var document map[string]any
			if a.into(&document); !reflect.DeepEqual(document, want) {
				t.Errorf("%s: got %v, want %v", path, document, want)
			}
		}
		c := s.customer()
		token := verified(t, s.token(c), published, s.clock)
		if token.Header["alg"] != string(algorithms[0]) {
			t.Errorf("%v: signed with %v", algorithms, token.Header["alg"])
		}
		for _, other := range [][]widget.Algorithm{{widget.EdDSA}, {widget.ES256}} {
			if !newSigningService(t, databaseURL, other...).active(c.secret, token.Raw) {
				t.Errorf("a portal with %v refuses a token of one with %v", other, algorithms)
			}
		}
	}
}

// verified verifies a token with the published keys only.
func verified(t *testing.T, token string, published jose.JSONWebKeySet, c *modelstest.Clock) *jwt.Token {
	t.Helper()
	parsed, err := jwt.Parse(token, func(token *jwt.Token) (any, error) {
		kid, _ := token.Header["kid"].(string)
		keys := published.Key(kid)
		if len(keys) != 1 {
			t.Fatalf("%d keys with the kid %q", len(keys), kid)
		}
		return keys[0].Key, nil
	}, jwt.WithValidMethods([]string{"EdDSA", "ES256"}), jwt.WithTimeFunc(c.Now),
		jwt.WithIssuer(issuer), jwt.WithAudience("widget"), jwt.WithExpirationRequired(), jwt.WithLeeway(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
