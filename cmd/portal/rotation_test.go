package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/widget"
)

const (
	oldSecret = "0123456789abcdef0123456789abcdef"
	newSecret = "fedcba9876543210fedcba9876543210"
)

// The three steps of the guide restart one instance at a time. At every moment, each instance
// accepts the sessions and tokens that the other has signed.
func TestSecretRotationHasNoGap(t *testing.T) {
	t.Parallel()
	secrets := func(secret, previous string) []string {
		return []string{"PORTAL_SECRET=" + secret, "PORTAL_SECRET_PREVIOUS=" + previous}
	}
	for _, algorithm := range widget.Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			r := startRotation(t, append(secrets(oldSecret, ""), "PORTAL_WIDGET_TOKEN_ALG="+string(algorithm)))
			v := newVisitor(t)
			v.signIn(r.one, testEmail, testPassword)
			first := r.token(r.one)
			for _, step := range []struct{ name, secret, previous string }{
				{"publish", oldSecret, newSecret}, {"sign", newSecret, oldSecret},
			} {
				r.restart(step.name, secrets(step.secret, step.previous))
				if page := v.get(r.two, "/api-keys"); page.path != "/api-keys" {
					t.Errorf("%s: the first session has ended", step.name)
				}
				r.two.introspects(t, step.name, r.key, first)
			}
			r.restart("drop", secrets(newSecret, ""))
			if page := v.get(r.one, "/api-keys"); page.path != "/login" {
				t.Errorf("a session of the dropped secret leads to %s", page.path)
			}
		})
	}
}

// The same for the algorithm of widget tokens.
func TestAlgorithmChangeHasNoGap(t *testing.T) {
	t.Parallel()
	r := startRotation(t, []string{"PORTAL_SECRET=" + oldSecret})
	first := r.token(r.one)
	for _, algorithms := range []string{"EdDSA,ES256", "ES256,EdDSA", "ES256"} {
		r.restart(algorithms, []string{"PORTAL_WIDGET_TOKEN_ALG=" + algorithms})
		signing, _, _ := strings.Cut(algorithms, ",")
		if got := tokenHeader(t, r.token(r.one))["alg"]; got != signing {
			t.Errorf("%s: signed with %v", algorithms, got)
		}
		r.two.introspects(t, algorithms, r.key, first)
		// Gateways too accept tokens of both algorithms.
		for _, token := range []string{first, r.token(r.one)} {
			if status, body := r.two.api(t, http.MethodGet, "/widget/authorize", token, ""); status != http.StatusOK {
				t.Errorf("%s: a gateway gets %d %s", algorithms, status, body)
			}
		}
	}
}

// rotation is two instances on one database that restart with new settings.
type rotation struct {
	t        *testing.T
	env      []string
	key      string // an API key
	agentID  uuid.UUID
	one, two *instance
	cached   []byte // the JWKS before the last step, which verifiers may still have
}

func startRotation(t *testing.T, env []string) *rotation {
	t.Helper()
	databaseURL := modelstest.PostgresURL(t)
	store := modelstest.Open(t, databaseURL, models.Options{})
	account := createAccount(t, store)
	agent := modelstest.Value(store.Agents.Create(t.Context(), account.ID, models.NewAgent{Name: "Reception"}, models.Operator()))(t)
	r := &rotation{t: t, key: account.secret, agentID: agent.ID}
	r.env = append([]string{
		"DATABASE_URL=" + databaseURL, "PORTAL_BASE_URL=http://portal.test", anyPort,
	}, env...)
	r.one, r.two = start(t, r.env), start(t, r.env)
	return r
}

// restart restarts one instance after the other with these variables changed, and checks after each
// that both agree.
func (r *rotation) restart(step string, changed []string) {
	r.t.Helper()
	r.env = append(r.env, changed...) // the last value of a variable counts
	_, jwks := r.one.api(r.t, http.MethodGet, "/.well-known/jwks.json", "", "")
	r.cached = []byte(jwks)
	r.one.stop(r.t)
	r.one = start(r.t, r.env)
	r.agree(step + ", half done")
	r.two.stop(r.t)
	r.two = start(r.t, r.env)
	r.agree(step)
}

// agree checks that each instance accepts the sessions and the tokens of the other, and that
// verifiers need not fetch the keys again at once.
func (r *rotation) agree(step string) {
	r.t.Helper()
	for _, way := range [][2]*instance{{r.one, r.two}, {r.two, r.one}} {
		fresh := newVisitor(r.t)
		fresh.signIn(way[0], testEmail, testPassword)
		if page := fresh.get(way[1], "/api-keys"); page.path != "/api-keys" {
			r.t.Errorf("%s: a session of one instance leads to %s on the other", step, page.path)
		}
		issued := r.token(way[0])
		way[1].publishes(r.t, step, issued)
		keys, err := keyfunc.NewJWKSetJSON(r.cached)
		if err != nil {
			r.t.Fatalf("%s: %v in %s", step, err, r.cached)
		}
		if _, err := jwt.Parse(issued, keys.Keyfunc); err != nil {
			r.t.Errorf("%s: a verifier with the keys from before refuses a token: %v", step, err)
		}
		way[1].introspects(r.t, step, r.key, issued)
	}
}

// token returns a token that the instance has signed.
func (r *rotation) token(i *instance) string {
	r.t.Helper()
	return i.token(r.t, r.key, r.agentID)
}

// token exchanges an API key for a widget token.
func (i *instance) token(t *testing.T, key string, agentID uuid.UUID) string {
	t.Helper()
	status, body := i.api(t, http.MethodPost, "/api/widget/token", key, `{"agentId":"`+agentID.String()+`"}`)
	if status != http.StatusOK {
		t.Fatalf("issue a token: %d %s", status, body)
	}
	return regexp.MustCompile(`"access_token":"([^"]+)"`).FindStringSubmatch(body)[1]
}

func tokenHeader(t *testing.T, token string) map[string]any {
	t.Helper()
	parsed, _, err := jwt.NewParser().ParseUnverified(token, jwt.MapClaims{})
	modelstest.Must(t, err)
	return parsed.Header
}

// publishes checks that the instance's JWKS has the key that signed the token.
func (i *instance) publishes(t *testing.T, step, token string) {
	t.Helper()
	kid := tokenHeader(t, token)["kid"]
	_, body := i.api(t, http.MethodGet, "/.well-known/jwks.json", "", "")
	var set struct{ Keys []struct{ Kid string } }
	modelstest.Must(t, json.Unmarshal([]byte(body), &set))
	for _, key := range set.Keys {
		if key.Kid == kid {
			return
		}
	}
	t.Errorf("%s: the key %v is not in %s", step, kid, body)
}

// introspects checks that the instance accepts the token.
func (i *instance) introspects(t *testing.T, step, key, token string) {
	t.Helper()
	if body := i.introspect(t, key, token); !strings.Contains(body, `"active":true`) {
		t.Errorf("%s: the token is refused: %s", step, body)
	}
}
