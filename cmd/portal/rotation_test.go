package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"portal/models"
	"portal/models/modelstest"
)

const (
	oldSecret = "0123456789abcdef0123456789abcdef"
	newSecret = "fedcba9876543210fedcba9876543210"
)

// The three steps of OPERATIONS.md restart one instance at a time. At every moment, both instances
// accept what either has signed.
func TestSecretRotationHasNoGap(t *testing.T) {
	t.Parallel()
	databaseURL := modelstest.PostgresURL(t)
	store := modelstest.Open(t, databaseURL, models.Options{})
	account := createAccount(t, store)
	agent, err := store.CreateAgent(t.Context(), account.ID, models.NewAgent{Name: "Reception"}, models.Operator())
	if err != nil {
		t.Fatal(err)
	}
	begin := func(secret, previous string) *instance {
		return start(t, []string{
			"DATABASE_URL=" + databaseURL, "PORTAL_SECRET=" + secret, "PORTAL_SECRET_PREVIOUS=" + previous,
			"PORTAL_BASE_URL=http://portal.test", anyPort,
		})
	}
	token := func(i *instance) string {
		status, body := i.api(t, http.MethodPost, "/api/widget/token", account.secret, `{"agentId":"`+agent.ID.String()+`"}`)
		if status != http.StatusOK {
			t.Fatalf("issue a token: %d %s", status, body)
		}
		return regexp.MustCompile(`"access_token":"([^"]+)"`).FindStringSubmatch(body)[1]
	}

	one, two := begin(oldSecret, ""), begin(oldSecret, "")
	v := newVisitor(t)
	v.signIn(one, testEmail, testPassword)
	first := token(one)
	agree := func(step string) {
		t.Helper()
		for _, way := range [][2]*instance{{one, two}, {two, one}} {
			fresh := newVisitor(t)
			fresh.signIn(way[0], testEmail, testPassword)
			if page := fresh.get(way[1], "/api-keys"); page.path != "/api-keys" {
				t.Errorf("%s: a session of one instance leads to %s on the other", step, page.path)
			}
			issued := token(way[0])
			way[1].publishes(t, step, issued)
			way[1].introspects(t, step, account.secret, issued)
		}
	}
	steps := []struct{ name, secret, previous string }{
		{"publish", oldSecret, newSecret}, {"sign", newSecret, oldSecret}, {"drop", newSecret, ""},
	}
	for _, step := range steps {
		one.stop(t)
		one = begin(step.secret, step.previous)
		agree(step.name + ", half done")
		two.stop(t)
		two = begin(step.secret, step.previous)
		agree(step.name)
		if step.name == "drop" {
			break
		}
		if page := v.get(two, "/api-keys"); page.path != "/api-keys" {
			t.Errorf("%s: the first session has ended", step.name)
		}
		two.introspects(t, step.name, account.secret, first)
	}
	// Only the new secret counts now.
	if page := v.get(one, "/api-keys"); page.path != "/login" {
		t.Errorf("a session of the dropped secret leads to %s", page.path)
	}
}

// publishes checks that the instance's JWKS has the key that signed the token.
func (i *instance) publishes(t *testing.T, step, token string) {
	t.Helper()
	parsed, _, err := jwt.NewParser().ParseUnverified(token, jwt.MapClaims{})
	if err != nil {
		t.Fatal(err)
	}
	_, body := i.api(t, http.MethodGet, "/.well-known/jwks.json", "", "")
	var set struct{ Keys []struct{ Kid string } }
	if err := json.Unmarshal([]byte(body), &set); err != nil {
		t.Fatal(err)
	}
	for _, key := range set.Keys {
		if key.Kid == parsed.Header["kid"] {
			return
		}
	}
	t.Errorf("%s: the key %v is not in %s", step, parsed.Header["kid"], body)
}

// introspects checks that the instance accepts the token.
func (i *instance) introspects(t *testing.T, step, key, token string) {
	t.Helper()
	if body := i.introspect(t, key, token); !strings.Contains(body, `"active":true`) {
		t.Errorf("%s: the token is refused: %s", step, body)
	}
}
