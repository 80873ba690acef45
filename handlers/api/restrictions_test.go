package api_test

import (
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/handlers"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
)

func (s *service) restrict(c customer, r keys.Restrictions) {
	s.t.Helper()
	modelstest.Value(s.store.Keys.Restrict(s.t.Context(), c.accountID, c.key.ID, "", r, "", record.Operator()))(s.t)
}

func TestKeyReachesItsAgentsOnly(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		other, foreign := s.createAgent(c.accountID, "Support"), s.customer()
		token := s.token(c)
		s.restrict(c, keys.Restrictions{Agents: []uuid.UUID{other.ID}})
		var list struct{ Agents []struct{ ID uuid.UUID } }
		s.get("/api/agents", bearer(c.secret)).is(http.StatusOK).into(&list)
		if len(list.Agents) != 1 || list.Agents[0].ID != other.ID {
			t.Errorf("agents %v", list.Agents)
		}
		s.post("/api/widget/token", bearer(c.secret), jsonBody(agentRequest(other.ID))).is(http.StatusOK)
		s.post("/api/widget/token", bearer(c.secret), jsonBody(agentRequest(c.agent.ID))).fails(http.StatusForbidden, "AGENT_NOT_ALLOWED")
		s.post("/api/widget/token", bearer(c.secret), jsonBody(agentRequest(foreign.agent.ID))).fails(http.StatusNotFound, "AGENT_NOT_FOUND")
		s.get("/api/authorize?agentId="+other.ID.String(), bearer(c.secret)).is(http.StatusOK)
		s.get("/api/authorize?agentId="+c.agent.ID.String(), bearer(c.secret)).fails(http.StatusForbidden, "AGENT_NOT_ALLOWED")
		if s.active(c.secret, token) {
			t.Error("a token for another agent is active")
		}
		s.get("/widget/authorize", bearer(token)).fails(http.StatusUnauthorized, "UNAUTHORIZED").says("TokenUnauthorized", "restricted")
		s.restrict(c, keys.Restrictions{Agents: []uuid.UUID{other.ID, c.agent.ID}})
		if !s.active(c.secret, token) {
			t.Error("the token is not active again")
		}
		modelstest.Value(s.store.Agents.Remove(t.Context(), c.accountID, other.ID, record.Operator()))(t)
		s.removeAgent(c)
		if s.get("/api/agents", bearer(c.secret)).is(http.StatusOK).into(&list); len(list.Agents) != 0 {
			t.Errorf("an empty list allows %v", list.Agents)
		}
		one, secret := s.generateKey(c.accountID)
		third, fourth := s.createAgent(c.accountID, "Night shift"), s.createAgent(c.accountID, "Sales")
		s.post("/api/widget/token", bearer(secret), jsonBody(agentRequest(third.ID))).is(http.StatusOK)
		s.get("/api/authorize?agentId="+fourth.ID.String(), bearer(secret)).is(http.StatusOK)
		if used := modelstest.Value(s.store.Agents.UsedBy(t.Context(), c.accountID, one.ID))(t); len(used) != 2 {
			t.Errorf("the key used the agents %v", used)
		}
		// Because the clock stands still, a report is uncertain while a batch is written.
		modelstest.Eventually(t, "8 requests are accepted and 2 refused", func() bool {
			usage := modelstest.Value(s.store.Usage.Of(t.Context(), c.accountID, keys.Hours(24), c.key.ID))(t)
			requests, refusals := usage[c.key.ID].Total()
			return requests == 8 && refusals == 2
		})
	})
}

func TestKeyIsAcceptedFromItsNetworksOnly(t *testing.T) {
	behindProxies := func(d *handlers.Deps) {
		d.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.1/32")}
	}
	onSQLiteWith(t, behindProxies, func(t *testing.T, s *service, c customer) {
		s.restrict(c, keys.Restrictions{Networks: []netip.Prefix{
			netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("127.0.0.1/32"),
		}})
		forwarded := func(values ...string) option {
			return func(r *http.Request) { r.Header["X-Forwarded-For"] = values }
		}
		for name, allowed := range map[string][]string{
			"the peer": nil, "IPv4": {"192.0.2.7"}, "IPv6": {"2001:DB8::7"}, "IPv4 in IPv6": {"::ffff:192.0.2.7"},
			"through another proxy": {"198.51.100.9, 192.0.2.7, 10.0.0.1"}, "in two headers": {"198.51.100.9", "192.0.2.7"},
			"no address before it": {"unknown, 192.0.2.7"}, "with a port": {"192.0.2.7:51008, 10.0.0.1:443"},
			"IPv6 with a port": {"[2001:db8::7]:51008"}, "in quotes": {`"192.0.2.7:51008"`}, "an empty entry": {"192.0.2.7, "},
		} {
			if a := s.get("/api/agents", bearer(c.secret), forwarded(allowed...)); a.status != http.StatusOK {
				t.Errorf("%s: %d", name, a.status)
			}
		}
		for name, refused := range map[string][]string{
			"IPv4": {"198.51.100.9"}, "IPv6": {"2001:db9::1"}, "spoofed": {"192.0.2.7, 198.51.100.9"}, "no address": {"unknown"},
			"no address after it": {"192.0.2.7, unknown"}, "a name before a proxy": {"unknown, 10.0.0.1"}, "empty": {""},
			"with a port": {"198.51.100.9:80"}, "spoofed with a port": {"192.0.2.7:80, 198.51.100.9:80"},
		} {
			for _, path := range []string{"/api/agents", "/api/key", "/api/authorize/x", "/api/nothing"} {
				a := s.get(path, bearer(c.secret), forwarded(refused...))
				t.Log(name, path)
				a.fails(http.StatusForbidden, "ADDRESS_NOT_ALLOWED").has("X-Error-Reason", "address")
			}
		}
		listed := map[string]bool{}
		for _, from := range modelstest.Value(s.store.Usage.Sources(t.Context(), c.accountID, c.key.ID))(t) {
			listed[from.Address] = from.Client == "Go-http-client/1.1"
		}
		for _, address := range []string{"127.0.0.1", "192.0.2.7", "2001:db8::/64", "198.51.100.9", "2001:db9::/64", "Unknown"} {
			if !listed[address] {
				t.Errorf("the key was used from %v, not from %s", listed, address)
			}
		}
		s.get("/api/agents", bearer(unknownKey), forwarded("198.51.100.9")).fails(http.StatusUnauthorized, "UNAUTHORIZED")
	})
}

func TestKeyShowsItselfAndWhenItExpires(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		var free map[string]any
		unlimited := s.get("/api/key", bearer(c.secret)).is(http.StatusOK)
		unlimited.lacks("X-Key-Expires-At")
		unlimited.into(&free)
		modelstest.Facts(t, free, map[string]bool{
			"13 fields":   len(free) == 13,
			"id":          free["id"] == c.key.ID.String(),
			"account":     free["accountId"] == c.accountID.String(),
			"no expiry":   free["expiresAt"] == nil,
			"no agents":   free["agents"] == nil,
			"no networks": free["networks"] == nil,
		})
		expiresAt := time.Now().Add(90 * time.Second).UTC().Truncate(time.Second)
		r := keys.Restrictions{ExpiresAt: &expiresAt, Agents: []uuid.UUID{c.agent.ID}, Networks: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}
		s.restrict(c, r)
		var shown struct {
			ExpiresAt *time.Time
			Agents    []uuid.UUID
			Networks  []netip.Prefix
		}
		limited := s.get("/api/key", bearer(c.secret)).is(http.StatusOK)
		limited.has("X-Key-Expires-At", expiresAt.Format(time.RFC3339))
		limited.into(&shown)
		if !shown.ExpiresAt.Equal(expiresAt) || !slices.Equal(shown.Agents, r.Agents) || !slices.Equal(shown.Networks, r.Networks) {
			t.Errorf("%+v", shown)
		}
		s.send(http.MethodHead, "/api/key", bearer(c.secret)).is(http.StatusOK)
		s.send(http.MethodPost, "/api/key", bearer(c.secret)).fails(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED")
		token := s.token(c)
		if claims := modelstest.Value(s.tokens.Verify(token))(t); claims.ExpiresAt != expiresAt.Unix() {
			t.Errorf("the token expires at %d, the key at %d", claims.ExpiresAt, expiresAt.Unix())
		}
		s.expire(c)
		expired := s.get("/api/key", bearer(c.secret))
		expired.fails(http.StatusUnauthorized, "UNAUTHORIZED")
		expired.has("X-Key-Expires-At", "2026-01-01T00:00:00Z")
		s.get("/widget/authorize", bearer(token)).fails(http.StatusUnauthorized, "UNAUTHORIZED").says("TokenUnauthorized", "keyExpired")
		_, second := s.generateKey(c.accountID)
		if s.active(second, token) {
			t.Error("a token of an expired key is active")
		}
		var revocation struct{ RevokedAt string }
		s.operate(http.MethodPost, "/operator/keys/revocations", `{"keyId": "`+c.key.ID.String()+`"}`).is(http.StatusOK).into(&revocation)
		if revocation.RevokedAt != "2026-01-01T00:00:00Z" {
			t.Errorf("the expired key was revoked at %q", revocation.RevokedAt)
		}
		var list struct{ Keys []map[string]any }
		s.operate(http.MethodGet, "/operator/accounts/"+c.accountID.String()+"/keys", "").is(http.StatusOK).into(&list)
		if list.Keys[0]["expired"] != true || list.Keys[0]["revokedAt"] != nil || list.Keys[0]["expiresAt"] == nil || list.Keys[1]["expired"] != false {
			t.Errorf("%v", list.Keys)
		}
	})
}

func TestRefusedRequestsAreNotedWithTheirReasons(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		ctx := t.Context()
		key, secret := c.key, c.secret
		send := func(method, path string) string {
			t.Helper()
			return s.send(method, path, bearer(secret)).header.Get("X-Request-Id")
		}
		ids := []string{send(http.MethodGet, "/api/activity")}
		modelstest.Value(s.store.Keys.Revoke(ctx, c.accountID, key.ID, "", record.Operator()))(t)
		ids = append(ids, send(http.MethodPost, "/api/authorize/private?token=secret"), send("BREW-A-POT-OF-TEA", "/api/nothing/"+secret))
		found := modelstest.Value(s.store.Usage.Refusals(ctx, c.accountID, key.ID))(t)
		want := []string{"revoked Other unknown path", "revoked /api/authorize", "access GET /api/activity"}
		if len(found) != len(want) {
			t.Fatalf("%+v", found)
		}
		for i, one := range found {
			if one.Reason+" "+one.Route != want[i] || one.RequestID != ids[len(ids)-1-i] || one.Address != "127.0.0.1" {
				t.Errorf("%+v, want %s with %s", one, want[i], ids)
			}
		}
	})
}
