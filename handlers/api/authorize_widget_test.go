package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/modelstest"
)

const authorizeWidget = "/widget/authorize"

func TestWidgetTokenIsNoUseOfItsKey(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *service, c customer) {
		token := s.token(c)
		s.isUsedNow(c, "a token request")
		before := *s.lastUsed(c)
		s.clock.Advance(time.Minute)
		s.get(authorizeWidget, bearer(token)).is(http.StatusOK)
		if used := s.lastUsed(c); !used.Equal(before) {
			t.Errorf("a widget token counts as a use of its key, at %v", used)
		}
	})
}

func TestWidgetAuthorizeFindsTheToken(t *testing.T) {
	s := newService(t, modelstest.SQLiteURL(t))
	c, other := s.customer(), s.customer()
	token, foreign := s.token(c), s.token(other)
	inURL := "/connect?a=b&access_token=" + token + "&c=d"
	escaped := strings.NewReplacer(".", "%2E", "-", "%2d", "_", "%5F").Replace(token)
	for name, r := range map[string]struct {
		path    string
		options []option
	}{
		"a header":                  {"", []option{bearer(token)}},
		"another case":              {"", []option{header("authorization", "bEARER   "+token)}},
		"the query":                 {"?access_token=" + token, nil},
		"the query behind a path":   {inURL, nil},
		"an escaped query":          {"?access%5Ftoken=" + escaped, nil},
		"the line end of a file":    {"?access_token=" + token + "%0A", nil},
		"a query with broken pairs": {"?a=%zz&b;c&access_token=" + token, nil},
		"X-Original-URI":            {"", []option{header("X-Original-URI", inURL)}},
		"X-Original-URL": {"", []option{
			header("X-Original-URL", "https://voice.example.com:8443"+inURL),
		}},
		"X-Forwarded-Uri":                 {"", []option{header("X-Forwarded-Uri", inURL)}},
		"an escaped header":               {"", []option{header("X-Original-URI", "/a%3Fb?access_token="+escaped)}},
		"a query in the query":            {"", []option{header("X-Original-URI", "/?next=/x?y&access_token="+token)}},
		"a long header":                   {"", []option{header("X-Original-URI", "/?"+strings.Repeat("x=y&", 2500)+"access_token="+token)}},
		"Basic beside the query":          {"?access_token=" + token, []option{header("Authorization", "Basic c3RhZ2luZzpwYXNz")}},
		"Basic beside the original":       {"", []option{header("X-Original-URI", inURL), header("Authorization", "basic c3RhZ2luZzpwYXNz")}},
		"another scheme beside the query": {"?access_token=" + token, []option{header("Authorization", "Negotiate abc")}},
		"the header before the query":     {"?access_token=" + foreign, []option{bearer(token)}},
		"the query before the original":   {"?access_token=" + token, []option{header("X-Original-URI", "/?access_token="+foreign)}},
		"X-Original-URI before -URL":      {"", []option{header("X-Original-URI", inURL), header("X-Original-URL", "/?access_token="+foreign)}},
		"X-Original-URL before Forwarded": {"", []option{header("X-Original-URL", inURL), header("X-Forwarded-Uri", "/?access_token="+foreign)}},
		"an original without a token":     {"", []option{header("X-Original-URI", "/x?y=z"), header("X-Forwarded-Uri", inURL)}},
	} {
		var got authorized
		s.get(authorizeWidget+r.path, r.options...).is(http.StatusOK).into(&got)
		if got.AccountID != c.accountID {
			t.Errorf("%s: the account is %s", name, got.AccountID)
		}
	}
}

func TestWidgetAuthorizeRefuses(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *service, c customer) {
		token := s.token(c)
		ended := func(end func(customer)) string {
			other := s.customer()
			token := s.token(other)
			// Its signature is in memory.
			s.get(authorizeWidget, bearer(token)).is(http.StatusOK)
			end(other)
			return token
		}
		for name, r := range map[string]struct {
			path, example string
			options       []option
		}{
			"nothing":                  {"", "missing", nil},
			"another parameter":        {"?token=" + token + "&Access_Token=" + token, "missing", nil},
			"a fragment of a path":     {"/access_token=" + token, "missing", nil},
			"an original without one":  {"", "missing", []option{header("X-Original-URI", "/access_token="+token)}},
			"another header":           {"", "missing", []option{header("X-Forwarded-Url", "/?access_token="+token)}},
			"a cookie":                 {"", "missing", []option{header("Cookie", "access_token="+token)}},
			"a body":                   {"", "missing", []option{body("application/x-www-form-urlencoded", "access_token="+token)}},
			"two in the query":         {"?access_token=" + token + "&access_token=" + token, "several", nil},
			"two in a header":          {"", "several", []option{header("X-Original-URI", "/?access_token="+token+"&access_token=")}},
			"two original headers":     {"", "several", []option{header("X-Original-URI", "/?access_token="+token), header("X-Original-URI", "/?access_token="+token)}},
			"two headers":              {"", "header", []option{bearer(token), bearer(token)}},
			"Basic":                    {"", "header", []option{header("Authorization", "Basic "+token)}},
			"Basic and two in the URL": {"?access_token=" + token + "&access_token=" + token, "several", []option{header("Authorization", "Basic x")}},
			"a wrong Bearer token":     {"?access_token=" + token, "invalid", []option{bearer("x")}},
			"an empty header":          {"?access_token=" + token, "header", []option{header("Authorization", "")}},
			"a header without a token": {"?access_token=" + token, "header", []option{header("Authorization", "Bearer ")}},
			"an API key":               {"", "key", []option{bearer(c.secret)}},
			"an API key in the query":  {"?access_token=" + c.secret, "key", nil},
			"an empty parameter":       {"?access_token=", "invalid", nil},
			"a broken escape":          {"?access_token=" + token + "%zz", "invalid", nil},
			"a semicolon":              {"?access_token=" + token + ";x", "invalid", nil},
			"text":                     {"", "invalid", []option{bearer("x")}},
			"forged":                   {"", "invalid", []option{bearer(forged(t, c, s))}},
			"absurdly long":            {"", "invalid", []option{header("X-Original-URI", "/?access_token="+strings.Repeat("x", 10<<10))}},
			"its key revoked":          {"", "revoked", []option{bearer(ended(s.revoke))}},
			"its agent removed":        {"", "removed", []option{bearer(ended(s.removeAgent))}},
			"its account disabled":     {"", "disabled", []option{bearer(ended(s.disable))}},
		} {
			t.Log(name)
			a := s.get(authorizeWidget+r.path, r.options...)
			a.fails(http.StatusUnauthorized, "UNAUTHORIZED").says("TokenUnauthorized", r.example)
			wanted := invalidChallenge
			if r.example == "missing" {
				wanted = plainChallenge
			}
			a.has("WWW-Authenticate", wanted)
			a.has("Cache-Control", "no-store")
			a.lacks("X-Account-Id")
		}

		s.get(authorizeWidget, bearer(token)).is(http.StatusOK)
		s.clock.Advance(tokenTTL)
		s.get(authorizeWidget, bearer(token)).fails(http.StatusUnauthorized, "UNAUTHORIZED").says("TokenUnauthorized", "expired")
	})
}

func TestWidgetAuthorizeChecksTheAgent(t *testing.T) {
	eachDatabase(t, func(_ *testing.T, s *service, c customer) {
		token, id := s.token(c), c.agent.ID.String()
		sibling := s.createAgent(c.accountID, "Another").ID.String()
		for _, query := range []string{"agentId=" + id, "agentId=" + strings.ToUpper(id), "access_token=x&agentId=" + id} {
			s.get(authorizeWidget+"?"+query, bearer(token)).is(http.StatusOK).has("X-Agent-Id", id)
		}
		for _, query := range []string{
			"agentId=" + sibling, "agentId=" + uuid.NewString(), "agentId=", "agentId", "agentId=x", "agentId=%zz",
			"agentId=" + id + "&agentId=" + id, "agentId=" + id + "&agentId=" + sibling,
		} {
			a := s.get(authorizeWidget+"?"+query, bearer(token))
			a.fails(http.StatusForbidden, "AGENT_NOT_ALLOWED")
			a.lacks("X-Agent-Id")
		}
		// The token comes first.
		s.get(authorizeWidget+"?agentId=x", bearer("x")).fails(http.StatusUnauthorized, "UNAUTHORIZED")
		// Only the gateway asks for an agent, not its client.
		s.get(authorizeWidget, header("X-Original-URI", "/?agentId=x&access_token="+token)).is(http.StatusOK)
	})
}

func TestNoQueryStringReachesTheLog(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *service, c customer) {
		token := s.token(c)
		signature := token[strings.LastIndexByte(token, '.')+1:]
		query := "?access_token=" + token + "&marker=confidential"
		send := func() {
			for _, path := range []string{authorizeWidget, authorizeWidget + "/confidential", "/api/authorize", "/api/authorize/confidential"} {
				s.get(path + query)
				s.get(path + query + "&a;b&agentId=confidential")
				s.get(path, header("X-Original-URI", "/confidential"+query))
				s.get(path, header("X-Forwarded-Uri", "/"+query+url.QueryEscape(query)))
			}
		}
		send()
		// The next requests get a 5xx.
		modelstest.Exec(t, s.database, "ALTER TABLE auth_epoch RENAME TO gone")
		send()
		log := s.log.String()
		if strings.Count(log, `"route":"/widget/authorize`) != 16 || !strings.Contains(log, `"status":50`) {
			t.Errorf("log: %s", log)
		}
		for _, forbidden := range []string{signature, "confidential", "access_token", "marker"} {
			if strings.Contains(log, forbidden) {
				t.Errorf("the log has %s", forbidden)
			}
		}
	})
}
