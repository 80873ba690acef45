package api_test

import (
	"net/http"
	"testing"
	"time"

	"portal/models/modelstest"
)

func TestLastUsedIsTheLastAuthenticatedRequestWithAnyStatus(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		key := bearer(c.secret)
		if used := s.lastUsed(c); used != nil {
			t.Fatalf("used at %v before the first request", used)
		}
		for name, request := range map[string]func() answer{
			"a valid request": func() answer { return s.get("/api/agents", key) },
			"no such address": func() answer { return s.get("/api/nothing", key) },
			"a wrong method":  func() answer { return s.send(http.MethodDelete, "/api/agents", key) },
			"a wrong body":    func() answer { return s.post("/api/widget/token", key, jsonBody("[]")) },
			"a HEAD":          func() answer { return s.send(http.MethodHead, "/api/agents", key) },
		} {
			s.clock.Advance(time.Minute)
			request()
			s.isUsedNow(c, name)
		}
		before := s.lastUsed(c)
		s.clock.Advance(time.Minute)
		s.get("/api/agents", bearer(c.secret[:len(c.secret)-1])).is(http.StatusUnauthorized)
		s.get("/healthz", key).is(http.StatusOK)
		if used := s.lastUsed(c); !used.Equal(*before) {
			t.Errorf("used at %v by a request that was not authenticated", used)
		}
	})
}

func TestLastTokenOfAnAgentIsNoted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		lastToken := func() time.Time {
			t.Helper()
			return modelstest.Value(s.store.Agents.LastToken(t.Context(), c.accountID, c.agent.ID))(t)
		}
		s.post("/api/widget/token", bearer(c.secret), jsonBody("[]")).is(http.StatusBadRequest)
		if at := lastToken(); !at.IsZero() {
			t.Errorf("a token at %v by a refused request", at)
		}
		s.clock.Advance(time.Minute)
		s.token(c)
		if at, want := lastToken(), s.clock.Now(); want.Sub(at).Abs() > time.Millisecond {
			t.Errorf("a token at %v, want %v", at, want)
		}
	})
}

// isUsedNow fails the test unless the key's last use is now.
func (s *service) isUsedNow(c customer, by string) {
	s.t.Helper()
	used, want := s.lastUsed(c), s.clock.Now()
	if used == nil || want.Sub(*used).Abs() > time.Millisecond {
		s.t.Errorf("%s: used at %v, want %v", by, used, want)
	}
}

// lastUsed returns the time of last use that the portal's list would show.
func (s *service) lastUsed(c customer) *time.Time {
	s.t.Helper()
	keys := modelstest.Value(s.store.Keys.Active(s.t.Context(), c.accountID))(s.t)
	for _, key := range keys {
		if key.ID == c.key.ID {
			return key.LastUsedAt
		}
	}
	s.t.Fatal("the key is not in the list")
	return nil
}
