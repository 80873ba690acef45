package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
)

func TestRequestOverTheBurstGets429WithRetryAfter(t *testing.T) {
	onSQLiteWith(t, limited(50, 100), func(_ *testing.T, s *service, c customer) {
		for range 80 {
			a := s.get("/api/agents", bearer(c.secret)).is(http.StatusOK)
			a.lacks("RateLimit", "RateLimit-Policy")
		}
		for left := 19; left >= 0; left-- {
			a := s.get("/api/agents", bearer(c.secret)).is(http.StatusOK)
			a.has("RateLimit", fmt.Sprintf(`"key";r=%d;t=1`, left))
			a.has("RateLimit-Policy", `"key";q=100;w=2`)
			a.lacks("Retry-After")
		}
		a := s.get("/api/agents", bearer(c.secret)).fails(http.StatusTooManyRequests, "RATE_LIMITED").says("RateLimited", "rate")
		a.has("Retry-After", "1")
		a.has("RateLimit", `"key";r=0;t=1`)
		a.has("RateLimit-Policy", `"key";q=100;w=2`)
		a.has("Cache-Control", "no-store")
		a.has("Content-Type", "application/json; charset=utf-8")
		a.lacks("WWW-Authenticate")
	})
}

func TestKeysDoNotShareTheirLimit(t *testing.T) {
	onSQLiteWith(t, limited(1, 2), func(t *testing.T, s *service, c customer) {
		_, beside := s.generateKey(c.accountID)
		_, successor, err := s.store.Keys.Generate(t.Context(), c.accountID,
			keys.NewKey{Label: "backend", FormID: uuid.New(), Replaces: c.key.ID}, record.Operator())
		modelstest.Must(t, err)
		for _, key := range []string{c.secret, beside, successor, s.customer().secret} {
			for range 2 {
				s.get("/api/agents", bearer(key)).is(http.StatusOK)
			}
			s.get("/api/agents", bearer(key)).is(http.StatusTooManyRequests)
		}
		// Another instance.
		newService(t, s.database, limited(1, 2)).get("/api/agents", bearer(c.secret)).is(http.StatusOK)
	})
}

func TestLimitCoversEveryRequest(t *testing.T) {
	requests := []struct {
		method, path string
		options      []option
	}{
		{http.MethodGet, "/api/agents", nil},
		{http.MethodHead, "/api/agents", nil},
		{http.MethodPost, "/api/widget/token", []option{jsonBody("[")}},
		{http.MethodPost, "/api/widget/token", []option{jsonBody(strings.Repeat(" ", 20<<10))}},
		{http.MethodPost, "/api/widget/introspect", []option{tokenForm("x")}},
		{http.MethodGet, "/api/nothing", nil},
		{http.MethodDelete, "/api/agents", nil},
		{http.MethodPost, "/api/authorize/x?agentId=x", []option{jsonBody("{}")}},
	}
	onSQLiteWith(t, limited(1, len(requests)), func(t *testing.T, s *service, c customer) {
		// Each request takes one from the bucket, even if its response is an error.
		for _, r := range requests {
			if a := s.send(r.method, r.path, append(r.options, bearer(c.secret))...); a.status == http.StatusTooManyRequests {
				t.Errorf("%s %s is limited within the burst", r.method, r.path)
			}
		}
		s.clock.Advance(900 * time.Millisecond)
		for _, r := range requests {
			a := s.send(r.method, r.path, append(r.options, bearer(c.secret))...).is(http.StatusTooManyRequests)
			a.has("Retry-After", "1")
			a.lacks("Allow", "X-Account-Id")
		}
		s.isUsedNow(c, "a limited request")
		s.get("/openapi.json", bearer(c.secret)).is(http.StatusOK)
	})
}

func TestRefusedCredentialsAreNeverLimited(t *testing.T) {
	onSQLiteWith(t, limited(1, 1), func(_ *testing.T, s *service, c customer) {
		revoked := s.customer()
		s.get("/api/agents", bearer(revoked.secret)).is(http.StatusOK)
		s.get("/api/agents", bearer(revoked.secret)).is(http.StatusTooManyRequests)
		s.revoke(revoked)
		for range 5 {
			for _, credentials := range [][]string{
				nil,
				{"Basic " + c.secret},
				{"Bearer " + c.secret, "Bearer " + c.secret},
				{"Bearer " + c.secret[:len(c.secret)-1]},
				{"Bearer " + unknownKey},
				{"Bearer " + revoked.secret},
			} {
				a := s.get("/api/agents", authorizations(credentials))
				a.fails(http.StatusUnauthorized, "UNAUTHORIZED").lacks("RateLimit", "Retry-After")
			}
		}
		s.get("/api/agents", bearer(c.secret)).is(http.StatusOK)
	})
}

func TestEachWidgetTokenHasItsOwnLimit(t *testing.T) {
	onSQLiteWith(t, limited(1, 3), func(_ *testing.T, s *service, c customer) {
		token, other := s.token(c), s.token(c)
		s.get(authorizeWidget, bearer(token)).is(http.StatusOK).lacks("RateLimit")
		s.get(authorizeWidget + "/connect?access_token=" + token).is(http.StatusOK).lacks("RateLimit")
		s.get(authorizeWidget, bearer(token)).is(http.StatusOK).has("RateLimit", `"token";r=0;t=1`)
		forged := token[:len(token)-10] + strings.Repeat("A", 10)
		for range 5 {
			a := s.get(authorizeWidget, bearer(token)).fails(http.StatusTooManyRequests, "RATE_LIMITED").says("TokenRateLimited", "token")
			a.has("Retry-After", "1")
			a.has("RateLimit", `"token";r=0;t=1`)
			a.has("RateLimit-Policy", `"token";q=3;w=3`)
			a.has("Cache-Control", "no-store")
			a.lacks("WWW-Authenticate", "X-Error-Reason", "X-Account-Id")
			// Nobody can use up the bucket of a token without its signature.
			s.get(authorizeWidget, bearer(forged)).is(http.StatusUnauthorized).lacks("RateLimit")
		}
		s.get(authorizeWidget, bearer(other)).is(http.StatusOK)
		s.get("/api/agents", bearer(c.secret)).is(http.StatusOK) // its third request
		s.clock.Advance(time.Second)
		s.get(authorizeWidget, bearer(token)).is(http.StatusOK)
	})
}

func TestWidgetTokensOfAnAccountShareALimit(t *testing.T) {
	onSQLiteWith(t, limited(1, 1), func(_ *testing.T, s *service, c customer) {
		stranger := s.token(s.customer())
		tokens := make([]string, 21)
		for n := range tokens {
			tokens[n] = s.token(c)
			s.clock.Advance(time.Second)
		}
		for _, token := range tokens[:20] {
			s.get(authorizeWidget, bearer(token)).is(http.StatusOK)
		}
		a := s.get(authorizeWidget, bearer(tokens[20])).fails(http.StatusTooManyRequests, "RATE_LIMITED").says("TokenRateLimited", "account")
		a.has("RateLimit", `"account";r=0;t=1`)
		a.has("RateLimit-Policy", `"account";q=20;w=1`)
		s.get("/api/agents", bearer(c.secret)).is(http.StatusOK)
		s.get(authorizeWidget, bearer(stranger)).is(http.StatusOK)
	})
}

// Refused tokens count for themselves only, so that someone with old tokens of an account cannot
// lock it out.
func TestRefusedWidgetTokensDoNotCountForTheAccount(t *testing.T) {
	onSQLiteWith(t, limited(1, 1), func(_ *testing.T, s *service, c customer) {
		tokens := func(of customer) []string {
			issued := make([]string, 21)
			for n := range issued {
				issued[n] = s.token(of)
				s.clock.Advance(time.Second)
			}
			return issued
		}
		expired := tokens(c)
		s.clock.Advance(time.Hour)
		ended := c
		ended.key, ended.secret = s.generateKey(c.accountID)
		revoked, good := tokens(ended), tokens(c)
		s.revoke(ended)
		for n := range good {
			s.get(authorizeWidget, bearer(expired[n])).is(http.StatusUnauthorized).has("X-Error-Reason", "token_expired")
			s.get(authorizeWidget, bearer(revoked[n])).is(http.StatusUnauthorized).has("X-Error-Reason", "token_revoked")
			s.get(authorizeWidget+"?agentId="+uuid.NewString(), bearer(good[n])).is(http.StatusForbidden)
		}
		s.get(authorizeWidget, bearer(s.token(c))).is(http.StatusOK)
		// A check of the signature costs time too.
		s.get(authorizeWidget, bearer(expired[0])).fails(http.StatusTooManyRequests, "RATE_LIMITED").says("TokenRateLimited", "token")
	})
}

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
			"a gateway":       func() answer { return s.send("PROPFIND", "/api/authorize/x", key) },
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
