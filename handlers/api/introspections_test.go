package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"portal/handlers/handlerstest"
	"portal/models"
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

func TestAnyKeyOfTheAccountMayIntrospectItsTokens(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		_, another := s.generateKey(c.accountID)
		if !s.active(another, s.token(c)) {
			t.Error("the token is not active for another key of the account")
		}
	})
}

func TestInactiveTokens(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		other := s.customer()
		token := s.token(c)
		head, _, _ := strings.Cut(token, ".")
		parts := strings.Split(token, ".")
		foreign := strings.Split(s.token(other), ".")
		for name, inactive := range map[string]string{
			"text":                    "x",
			"an API key":              c.secret,
			"another account's token": s.token(other),
			"a changed signature":     token[:len(token)-4] + "AAAA",
			"another token's claims":  head + "." + foreign[1] + "." + parts[2],
			"no signature":            parts[0] + "." + parts[1] + ".",
			"a token with a suffix":   token + "A",
			"a token of 10 KiB":       strings.Repeat("a", 10<<10),
			"signed with another key": forged(t, c, s),
		} {
			t.Run(name, func(*testing.T) {
				if s.active(c.secret, inactive) {
					t.Error("it is active")
				}
			})
		}
	})
}

func TestExpiredTokenIsNotActive(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		token := s.token(c)
		s.clock.Advance(tokenTTL - time.Second)
		if !s.active(c.secret, token) {
			t.Error("it is not active before it expires")
		}
		s.clock.Advance(2 * time.Second)
		if s.active(c.secret, token) {
			t.Error("it is active after it has expired")
		}
	})
}

func TestRevokingAKeyEndsItsTokensOnly(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		kept := c
		kept.key, kept.secret = s.generateKey(c.accountID)
		ended, going := s.token(c), s.token(kept)
		s.revoke(c)
		if s.active(kept.secret, ended) {
			t.Error("the revoked key's token is active")
		}
		if !s.active(kept.secret, going) {
			t.Error("the other key's token is not active")
		}
	})
}

func TestRemovingAnAgentEndsItsTokens(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		token := s.token(c)
		if _, err := s.store.Agents.Remove(t.Context(), c.accountID, c.agent.ID, models.Operator()); err != nil {
			t.Fatal(err)
		}
		if s.active(c.secret, token) {
			t.Error("the token of a removed agent is active")
		}
		s.post("/api/widget/token", bearer(c.secret), jsonBody(agentRequest(c.agent.ID))).fails(http.StatusNotFound, "AGENT_NOT_FOUND")
	})
}

func TestIntrospectionRequiresOneTokenInTheBody(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
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
			t.Run(name, func(*testing.T) {
				s.post("/api/widget/introspect?token="+token, bearer(c.secret), body(form, content)).fails(http.StatusBadRequest, "INVALID_REQUEST")
			})
		}
		s.post("/api/widget/introspect", bearer(c.secret), body(form, "token_type_hint=other&token="+token)).is(http.StatusOK)
	})
}

// active reports whether a token is active. The body of an inactive one must have no other field.
func (s *service) active(secret, token string) bool {
	s.t.Helper()
	a := s.post("/api/widget/introspect", bearer(secret), tokenForm(token)).is(http.StatusOK)
	var said struct{ Active bool }
	a.into(&said)
	if got := strings.TrimSpace(string(a.body)); !said.Active && got != `{"active":false}` {
		s.t.Errorf("body %s, want active alone", got)
	}
	return said.Active
}

// forged returns a token with valid claims, signed with another secret.
func forged(t *testing.T, c customer, s *service) string {
	t.Helper()
	keyring := handlerstest.Keyring(t, strings.Repeat("the forger's secret. ", 2), "")
	token, _, err := widget.NewTokens(keyring, issuer, tokenTTL, s.clock.Now).
		Issue(nil, widget.Grant{AccountID: c.accountID, KeyID: c.key.ID, AgentID: c.agent.ID})
	if err != nil {
		t.Fatal(err)
	}
	return string(token)
}
