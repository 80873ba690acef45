package api_test

import (
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"portal/models/modelstest"
	"portal/models/widget"
)

// The schemas of openapi.json are checked with every response.
func TestDocumentsOfEachAlgorithm(t *testing.T) {
	databaseURL := modelstest.SQLiteURL(t)
	for _, algorithms := range [][]widget.Algorithm{
		{widget.EdDSA}, {widget.ES256}, {widget.EdDSA, widget.ES256}, {widget.ES256, widget.EdDSA},
	} {
		s := newSigningService(t, databaseURL, algorithms...)
		var published jose.JSONWebKeySet
		keys := s.get("/.well-known/jwks.json").is(http.StatusOK)
		keys.has("Cache-Control", "public, max-age=300")
		keys.into(&published)
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
	modelstest.Must(t, err)
	return parsed
}
