package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"portal/handlers"
	"portal/handlers/handlerstest"
	"portal/models/modelstest"
	"portal/models/widget"
)

// The schemas of openapi.json are checked with every response.
func TestDocumentsOfEachAlgorithm(t *testing.T) {
	databaseURL := modelstest.SQLiteURL(t)
	signing := func(algorithms ...widget.Algorithm) *service {
		return newService(t, databaseURL, func(d *handlers.Deps) {
			keyring := handlerstest.Keyring(t, strings.Repeat("a secret for signing. ", 2), "")
			d.Tokens = widget.NewTokens(keyring, issuer, tokenTTL, d.Now, algorithms...)
		})
	}
	for _, algorithms := range [][]widget.Algorithm{
		{widget.EdDSA}, {widget.ES256}, {widget.EdDSA, widget.ES256}, {widget.ES256, widget.EdDSA},
	} {
		s := signing(algorithms...)
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
		want["token_endpoint"] = issuer + "/oauth/token"
		want["grant_types_supported"] = []any{exchangeGrant}
		want["token_endpoint_auth_methods_supported"] = []any{"none"}
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
			if !signing(other...).active(c.secret, token.Raw) {
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

// contextRequest returns a request for a token with further fields.
func contextRequest(c customer, fields string) string {
	return `{"agentId":"` + c.agent.ID.String() + `",` + fields + `}`
}

func TestTokenCarriesItsContext(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		long := strings.Repeat("é", 128)
		twenty := `"1":"","2":"","3":"","4":"","5":"","6":"","7":"","8":"","9":"","10":"","11":"","12":"","13":"","14":"","15":"","16":"","17":"","18":"","19":""`
		for fields, want := range map[string]struct{ context, user string }{
			`"user":{"id":"customer-1042","name":"María"}`:              {`{"user":{"id":"customer-1042","name":"María"}}`, "customer-1042"},
			`"user":{"id":"a b%c","name":null,"email":"x@example.com"}`: {`{"user":{"id":"a b%c"}}`, "a%20b%25c"},
			`"user":{"id":"~!é<","name":"` + long + `"}`:                {`{"user":{"id":"~!é<","name":"` + long + `"}}`, "~!%C3%A9<"},
			`"user":{"id":"1","id":"2"}`:                                {`{"user":{"id":"2"}}`, "2"},
			`"metadata":{"plan":"gold","note":null}`:                    {`{"metadata":{"plan":"gold"}}`, ""},
			`"metadata":{}`:                                             {`{"metadata":{}}`, ""},
			`"metadata":{"x":"\u0000\n\u007f\u0085"}`:                   {`{"metadata":{"x":"\u0000\n\u007f\u0085"}}`, ""},
			`"metadata":{"x":"` + strings.Repeat(`\n`, 1020) + `"}`:     {`{"metadata":{"x":"` + strings.Repeat(`\n`, 1020) + `"}}`, ""},
			`"metadata":{` + twenty + `,"` + long + `":"<\u2028>"}`:     {`{"metadata":{` + twenty + `,"` + long + `":"<\u2028>"}}`, ""},
			`"metadata":{"x":"` + strings.Repeat(`\"`, 1020) + `"}`:     {`{"metadata":{"x":"` + strings.Repeat(`\"`, 1020) + `"}}`, ""},
			`"metadata":{"x":"` + strings.Repeat(`\u00e9`, 1020) + `"}`: {`{"metadata":{"x":"` + strings.Repeat(`é`, 1020) + `"}}`, ""},
			`"user":null,"metadata":null,"expiresIn":null`:              {`{}`, ""},
			`"User":1,"METADATA":2,"expiresin":"x"`:                     {`{}`, ""},
		} {
			var token struct {
				AccessToken string `json:"access_token"`
			}
			var request any
			modelstest.Must(t, json.Unmarshal([]byte(contextRequest(c, fields)), &request))
			if err := description(t).Components.Schemas["WidgetTokenRequest"].Value.VisitJSON(request); err != nil {
				t.Errorf("%s: the description does not allow it: %v", fields, err)
			}
			s.post("/api/widget/token", bearer(c.secret), jsonBody(contextRequest(c, fields))).is(http.StatusOK).into(&token)
			authorized := s.get(authorizeWidget, bearer(token.AccessToken)).is(http.StatusOK)
			introspected := s.post("/api/widget/introspect", bearer(c.secret), tokenForm(token.AccessToken)).is(http.StatusOK)
			if want.user == "" {
				authorized.lacks("X-User-Id")
			} else {
				authorized.has("X-User-Id", want.user)
			}
			var wanted widget.Context
			modelstest.Must(t, json.Unmarshal([]byte(want.context), &wanted))
			for _, a := range []answer{authorized, introspected} {
				var got widget.Context
				if a.into(&got); !reflect.DeepEqual(got, wanted) {
					t.Errorf("%s: got %s", fields, a.body)
				}
			}
		}
		places := map[string]string{"log": s.log.String()}
		if path, isSQLite := strings.CutPrefix(s.database, "sqlite:"); isSQLite {
			for _, file := range modelstest.Value(filepath.Glob(path + "*"))(t) {
				places[file] = string(modelstest.Value(os.ReadFile(file))(t))
			}
		}
		for place, content := range places {
			for _, secret := range []string{"customer-1042", "María", "gold"} {
				if content == "" || strings.Contains(content, secret) {
					t.Errorf("%s is empty or has %s", place, secret)
				}
			}
		}
	})
}

func TestTokenLivesAsLongAsRequested(t *testing.T) {
	s := newService(t, modelstest.SQLiteURL(t))
	c := s.customer()
	for seconds, want := range map[string]int64{"60": 60, "599": 599, "6e2": 600, "90.0": 90, "null": 600} {
		var body struct {
			AccessToken string `json:"access_token"`
			ExpiresIn   int64  `json:"expires_in"`
		}
		s.post("/api/widget/token", bearer(c.secret), jsonBody(contextRequest(c, `"expiresIn":`+seconds))).is(http.StatusOK).into(&body)
		claims := modelstest.Value(s.tokens.Verify(body.AccessToken))(t)
		if body.ExpiresIn != want || claims.ExpiresAt-claims.IssuedAt != want {
			t.Errorf("%s: expires_in %d, and exp after %d s", seconds, body.ExpiresIn, claims.ExpiresAt-claims.IssuedAt)
		}
	}
	expiring := s.customer()
	modelstest.Exec(t, s.database, "UPDATE api_keys SET expires_at = '"+s.clock.Now().Add(30*time.Second).UTC().Format(time.RFC3339)+
		"' WHERE id = '"+expiring.key.ID.String()+"'")
	s.post("/api/widget/token", bearer(expiring.secret), jsonBody(contextRequest(expiring, `"expiresIn":60`))).is(http.StatusOK)
}

func TestInvalidContextIsRefused(t *testing.T) {
	s := newService(t, modelstest.SQLiteURL(t))
	c := s.customer()
	long, half := strings.Repeat("é", 129), strings.Repeat("<", 1020)
	for field, values := range map[string][]string{
		"user": {
			`1`, `"x"`, `[]`, `true`, `{}`, `{"ID":"1"}`, `{"id":null}`, `{"id":1}`, `{"id":1e999}`, `{"id":""}`, `{"id":"` + long + `"}`,
			`{"id":"\u0000"}`, `{"id":"\n"}`, `{"id":"\u007f"}`, `{"id":"\u0085"}`, `{"id":"1","name":1}`, `{"id":"1","name":""}`,
			`{"id":"1","name":{}}`, `{"id":"1","name":"` + long + `"}`, `{"id":"1","name":"\t"}`, `{"name":"x"}`, `1e999`,
		},
		"metadata": {
			`1`, `"x"`, `[]`, `{"x":1}`, `{"x":{}}`, `{"x":true}`, `{"":"x"}`, `{"\n":"x"}`, `{"` + long + `":"x"}`, `{"x":"` + strings.Repeat(`\n`, 1021) + `"}`,
			`{"x":"` + strings.Repeat(`\u0000`, 341) + `"}`,
			`{"x":"` + half + half + `>"}`, `{"x":"` + half + `","y":"` + half + `"}`, `{"x":"` + strings.Repeat(`\\`, 1021) + `"}`,
			`{"1":"","2":"","3":"","4":"","5":"","6":"","7":"","8":"","9":"","10":"","11":"","12":"","13":"","14":"","15":"","16":"","17":"","18":"","19":"","20":"","21":""}`,
		},
		"expiresIn": {`"60"`, `59`, `601`, `60.5`, `-60`, `1e999`, `true`, `{}`, `[60]`},
	} {
		for _, value := range values {
			a := s.post("/api/widget/token", bearer(c.secret), jsonBody(contextRequest(c, `"`+field+`":`+value)))
			if !strings.Contains(string(a.fails(http.StatusBadRequest, "INVALID_REQUEST").body), field) {
				t.Errorf("%s: %s: the message does not name the field: %s", field, value, a.body)
			}
		}
	}
}
