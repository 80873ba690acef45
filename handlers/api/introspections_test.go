package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"portal/handlers/handlerstest"
	"portal/models/modelstest"
	"portal/models/widget"
)

func TestIntrospectionOfAnActiveTokenReturnsItsClaims(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		token := s.token(c)
		var said map[string]any
		s.post("/api/widget/introspect", bearer(c.secret), tokenForm(token)).is(http.StatusOK).into(&said)
		claims := jwt.MapClaims{}
		if _, _, err := jwt.NewParser().ParseUnverified(token, claims); err != nil {
			t.Fatal(err)
		}
		claims["active"] = true
		if len(said) != len(claims) {
			t.Errorf("fields %v, want those of %v", said, claims)
		}
		for name, want := range claims {
			if said[name] != want {
				t.Errorf("%s: %v, want %v", name, said[name], want)
			}
		}
	})
}

// The key of the request is another one than the token's.
func TestTokenIsActiveForTheKeysOfItsAccountUntilItEnds(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		asking := c
		asking.key, asking.secret = s.generateKey(c.accountID)
		other, revoked, kept := s.customer(), s.token(c), s.token(asking)
		check := func(name, token string, want bool) {
			t.Helper()
			if got := s.active(asking.secret, token); got != want {
				t.Errorf("%s: active %t, want %t", name, got, want)
			}
		}
		for name, inactive := range map[string]string{
			"text":                    "x",
			"an API key":              c.secret,
			"a token of 10 KiB":       strings.Repeat("a", 10<<10),
			"another account's token": s.token(other),
			"signed with another key": forged(t, c, s),
		} {
			check(name, inactive, false)
		}
		check("of another key", revoked, true)
		check("of a file", kept+"\r\n", true)
		s.revoke(c)
		check("of a revoked key", revoked, false)
		s.clock.Advance(tokenTTL - time.Second)
		check("its own, before it expires", kept, true)
		s.clock.Advance(2 * time.Second)
		check("its own, after it has expired", kept, false)
	})
}

func TestIntrospectionRequiresOneTokenInTheBody(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *service, c customer) {
		const form = "application/x-www-form-urlencoded"
		token := url.QueryEscape(s.token(c))
		for name, content := range map[string]string{
			"nothing":         "",
			"another field":   "token_type_hint=access_token",
			"an empty token":  "token=",
			"two tokens":      "token=" + token + "&token=" + token,
			"a broken escape": "token=%zz",
			"JSON":            `{"token": "x"}`,
		} {
			if a := s.post("/api/widget/introspect?token="+token, bearer(c.secret), body(form, content)); a.status != http.StatusBadRequest {
				t.Errorf("%s: status %d", name, a.status)
			}
		}
		s.post("/api/widget/introspect", bearer(c.secret), body(form, "token_type_hint=other&token="+token)).is(http.StatusOK)
	})
}

// active reports whether a token is active. The body of an inactive one must have no other field.
func (s *service) active(secret, token string) bool {
	s.t.Helper()
	a := s.post("/api/widget/introspect", bearer(secret), tokenForm(token)).is(http.StatusOK)
	var said struct{ Active bool }
	if a.into(&said); !said.Active {
		a.isExactly(`{"active":false}`)
	}
	return said.Active
}

// forged returns a token with valid claims, signed with another secret.
func forged(t *testing.T, c customer, s *service) string {
	t.Helper()
	keyring := handlerstest.Keyring(t, strings.Repeat("the forger's secret. ", 2), "")
	token, _, err := widget.NewTokens(keyring, issuer, tokenTTL, s.clock.Now).
		Issue(nil, widget.Grant{AccountID: c.accountID, KeyID: c.key.ID, AgentID: c.agent.ID})
	modelstest.Must(t, err)
	return string(token)
}
