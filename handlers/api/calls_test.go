package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"portal/handlers"
	"portal/handlers/api"
	"portal/models/keys"
	"portal/models/livekit"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/value"
)

const vectorKey, vectorSecret = "APIvector", "livekit-webhook-vector-secret-0123456789"

func withVector(d *handlers.Deps) {
	d.LiveKit = livekit.New(livekit.Options{URL: &url.URL{Scheme: "wss", Host: "livekit.example.com"}, APIKey: vectorKey, APISecret: vectorSecret})
}

// eventToken returns the signature of LiveKit's webhooks for a body, changed.
func eventToken(body, secret string, now time.Time, change func(jwt.MapClaims)) string {
	hash := sha256.Sum256([]byte(body))
	claims := jwt.MapClaims{
		"iss": vectorKey, "nbf": now.Unix(), "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"sha256": base64.StdEncoding.EncodeToString(hash[:]),
	}
	change(claims)
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	if err != nil {
		panic(err)
	}
	return token
}

func (s *service) event(body, token string) answer {
	s.t.Helper()
	return s.post("/livekit/webhook", header("Authorization", token), eventBody(body))
}

func eventBody(content string) option { return body("application/webhook+json", content) }

func TestWebhookSignature(t *testing.T) {
	onSQLiteWith(t, withVector, func(t *testing.T, s *service, _ customer) {
		now := s.clock.Now()
		same := func(jwt.MapClaims) {}
		body := `{"event":"room_started","room":{"sid":"RM_1","name":"lobby"}}`
		s.event(body, eventToken(body, vectorSecret, now, same)).is(http.StatusOK)
		none := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{"iss": vectorKey, "exp": now.Add(time.Minute).Unix()})
		unsigned := modelstest.Value(none.SignedString(jwt.UnsafeAllowNoneSignatureType))(t)
		for name, token := range map[string]string{
			"empty": "", "garbage": "x", "with a scheme": "Bearer " + eventToken(body, vectorSecret, now, same),
			"another secret":    eventToken(body, "another secret of 32 bytes or more", now, same),
			"of another body":   eventToken(body+" ", vectorSecret, now, same),
			"another key":       eventToken(body, vectorSecret, now, func(c jwt.MapClaims) { c["iss"] = "APIother" }),
			"expired":           eventToken(body, vectorSecret, now, func(c jwt.MapClaims) { c["exp"] = now.Add(-2 * time.Minute).Unix() }),
			"not yet valid":     eventToken(body, vectorSecret, now, func(c jwt.MapClaims) { c["nbf"] = now.Add(2 * time.Minute).Unix() }),
			"without an expiry": eventToken(body, vectorSecret, now, func(c jwt.MapClaims) { delete(c, "exp") }),
			"without a hash":    eventToken(body, vectorSecret, now, func(c jwt.MapClaims) { delete(c, "sha256") }),
			"unsigned":          unsigned,
		} {
			if answer := s.event(body, token); answer.status != http.StatusUnauthorized {
				t.Errorf("%s: status %d", name, answer.status)
			}
		}
		s.post("/livekit/webhook", eventBody(body)).is(http.StatusUnauthorized).has("X-Error-Reason", "missing")
		for _, malformed := range []string{"", "{", "[]", "null", "{}", `{"event":7}`, `{"event":"room_started","createdAt":"soon"}`} {
			s.event(malformed, eventToken(malformed, vectorSecret, now, same)).fails(http.StatusBadRequest, "INVALID_REQUEST")
		}
		long := `{"event":"` + strings.Repeat("x", 64<<10) + `"}`
		s.event(long, eventToken(long, vectorSecret, now, same)).fails(http.StatusRequestEntityTooLarge, "PAYLOAD_TOO_LARGE")
		s.get("/livekit/webhook").fails(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED").has("Allow", "POST")
	})
}

func TestNoCallsWithoutLiveKit(t *testing.T) {
	onSQLite(t, func(_ *testing.T, s *service, c customer) {
		s.get("/api/calls", bearer(s.reportsKey(c))).fails(http.StatusNotFound, "NOT_FOUND")
		s.get("/api/calls", bearer(c.secret)).fails(http.StatusForbidden, "ACCESS_NOT_ALLOWED")
		s.post("/livekit/webhook", eventBody("{}")).fails(http.StatusNotFound, "NOT_FOUND")
		s.operate(http.MethodGet, "/operator/calls", "").fails(http.StatusNotFound, "NOT_FOUND")
		s.operate(http.MethodPost, "/operator/calls/"+uuid.NewString()+"/end", "").fails(http.StatusNotFound, "NOT_FOUND")
	})
}

// report sends the event that a visitor has joined a room, and if seconds is not negative, that the
// visitor has left it so much later.
func (s *service) report(c customer, room string, joined time.Time, seconds int) {
	s.t.Helper()
	for _, kind := range []string{"participant_joined", "participant_left"} {
		if kind == "participant_left" && seconds < 0 {
			return
		}
		at := joined.Add(time.Duration(max(0, seconds)) * time.Second)
		body := fmt.Sprintf(`{"event":%q,"room":{"sid":"RM_%[2]s","name":"%[3]s_%[4]s_%[2]s"},"participant":{"sid":"PA_%[2]s","identity":"v","joinedAtMs":"%[5]d","attributes":{"agentId":"%[3]s","userId":"=1+1"},"disconnectReason":"CLIENT_INITIATED"},"createdAt":"%[6]d"}`,
			kind, room, c.agent.ID, c.key.ID, joined.UnixMilli(), at.Unix())
		s.event(body, eventToken(body, vectorSecret, s.clock.Now(), func(jwt.MapClaims) {})).is(http.StatusOK)
	}
}

// The calls of one key use up no time of others: LiveKit sends the rest of their events again.
func TestEventsOfAKeyAreLimited(t *testing.T) {
	t.Parallel()
	s := newService(t, modelstest.SQLiteURL(t), withVector)
	// Unknown ones, because these are fast.
	agent, key, other := uuid.New(), uuid.New(), uuid.New()
	event := func(key uuid.UUID) answer {
		body := fmt.Sprintf(`{"event":"participant_left","room":{"sid":"RM_%[2]s","name":"%[1]s_%[2]s_1"},"participant":{"sid":"PA_1","attributes":{"agentId":"%[1]s"}},"createdAt":"%[3]d"}`,
			agent, key, s.clock.Now().Unix())
		return s.event(body, eventToken(body, vectorSecret, s.clock.Now(), func(jwt.MapClaims) {}))
	}
	for range 500 / api.FewerEvents {
		event(key).is(http.StatusOK)
	}
	event(key).is(http.StatusServiceUnavailable)
	event(other).is(http.StatusOK)
	s.clock.Advance(time.Second / 50)
	event(key).is(http.StatusOK)
	event(key).is(http.StatusServiceUnavailable)
}

// The calls of one account use up no time of others, with however many keys.
func TestEventsOfAnAccountAreLimited(t *testing.T) {
	t.Parallel()
	var registry *prometheus.Registry
	s := newService(t, modelstest.SQLiteURL(t), withVector, func(d *handlers.Deps) { registry = d.Registry })
	c, other := s.customer(), s.customer()
	event := func(c customer, key uuid.UUID) answer {
		body := fmt.Sprintf(`{"event":"room_finished","room":{"sid":"RM_1","name":"%s_%s_1"},"createdAt":"%d"}`, c.agent.ID, key, s.clock.Now().Unix())
		return s.event(body, eventToken(body, vectorSecret, s.clock.Now(), func(jwt.MapClaims) {}))
	}
	for range 4 {
		key, _, err := s.store.Keys.Generate(t.Context(), c.accountID, keys.NewKey{Label: "voice", FormID: uuid.New()}, record.Operator())
		modelstest.Must(t, err)
		for range 500 / api.FewerEvents {
			event(c, key.ID).is(http.StatusOK)
		}
	}
	event(c, c.key.ID).is(http.StatusServiceUnavailable)
	event(other, other.key.ID).is(http.StatusOK)
	s.clock.Advance(time.Second / 200)
	event(c, c.key.ID).is(http.StatusOK)
	event(c, c.key.ID).is(http.StatusServiceUnavailable)

	event(c, uuid.New()).is(http.StatusOK)
	s.post("/livekit/webhook", eventBody("{}")).is(http.StatusUnauthorized)
	scraped := scrape(registry)
	for result, count := range map[string]int{"recorded": 2000/api.FewerEvents + 2, "failed": 2, "ignored": 1, "refused": 1} {
		if want := fmt.Sprintf("\nportal_livekit_events_total{result=%q} %d\n", result, count); !strings.Contains(scraped, want) {
			t.Errorf("want %s in %s", want, scraped)
		}
	}
}

func TestOperatorsListAndEndCalls(t *testing.T) {
	eachChanged(t, withVector, func(t *testing.T, s *service, c customer) {
		now := s.clock.Now().UTC().Truncate(time.Second)
		other := s.customer()
		s.report(c, "a", now.Add(-40*time.Second), 30)
		s.report(other, "b", now.Add(-30*time.Second), 10)
		s.report(c, "c", now.Add(-20*time.Second), -1)
		var list struct {
			Calls []map[string]any
			Next  *string
		}
		s.operate(http.MethodGet, "/operator/calls?limit=2", "").is(http.StatusOK).into(&list)
		first := list.Calls[0]
		if len(list.Calls) != 2 || len(first) != 11 {
			t.Errorf("calls: %v", list.Calls)
		}
		for name, want := range map[string]any{
			"final": false, "accountId": c.accountID.String(), "userId": "=1+1", "seconds": 30.0, "endReason": "visitor_left", "exact": true,
		} {
			if first[name] != want {
				t.Errorf("%s is %v, want %v", name, first[name], want)
			}
		}
		next := *list.Next
		s.operate(http.MethodGet, "/operator/calls?after="+next, "").is(http.StatusOK).into(&list)
		open := list.Calls[0]
		if len(list.Calls) != 1 || open["endedAt"] != nil || open["endReason"] != nil || open["seconds"].(float64) < 20 {
			t.Errorf("calls: %v", list.Calls)
		}
		last := *list.Next
		s.operate(http.MethodGet, "/operator/calls?after="+last, "").is(http.StatusOK).into(&list)
		if len(list.Calls) != 0 || *list.Next != last {
			t.Errorf("after the last one: %+v", list)
		}
		for query, want := range map[string]int{
			"accountId=" + c.accountID.String(): 2, "keyId=" + other.key.ID.String(): 1, "agentId=" + c.agent.ID.String(): 2, "more=1": 3,
			"from=" + now.Add(-30*time.Second).Format(time.RFC3339): 2, "to=" + now.Add(-30*time.Second).Format(time.RFC3339): 1,
			"accountId=" + uuid.NewString(): 0,
		} {
			list.Next = nil
			if s.operate(http.MethodGet, "/operator/calls?"+query, "").is(http.StatusOK).into(&list); len(list.Calls) != want || (list.Next == nil) != (want == 0) {
				t.Errorf("%s: %d calls, next %v", query, len(list.Calls), list.Next)
			}
		}
		for _, query := range []string{
			"limit=0", "limit=1001", "limit=x", "limit=", "limit=1&limit=1", "after=x", "after=" + uuid.NewString(), "from=yesterday", "to=1", "keyId=7", "agentId=", "accountId=x",
		} {
			s.operate(http.MethodGet, "/operator/calls?"+query, "").fails(http.StatusBadRequest, "INVALID_REQUEST")
		}

		lines := s.get("/operator/calls?limit=2", bearer(operatorToken), header("Accept", "application/x-ndjson"))
		if n := strings.Count(string(lines.body), "}\n"); n != 2 || lines.header.Get("Content-Type") != "application/x-ndjson" {
			t.Errorf("%d lines of %s", n, lines.header.Get("Content-Type"))
		}
		lines.has("Link", "</operator/calls?after="+next+"&limit=2>; rel=\"next\"")
		lines = s.get("/operator/calls?after="+last, bearer(operatorToken), header("Accept", "application/x-ndjson"))
		lines.isExactly("")
		lines.has("Link", "</operator/calls?after="+last+">; rel=\"next\"")

		id, _ := open["id"].(string)
		s.operate(http.MethodPost, "/operator/calls/"+id+"/end", "").is(http.StatusNoContent)
		s.operate(http.MethodPost, "/operator/calls/"+first["id"].(string)+"/end", "").is(http.StatusNoContent)
		s.operate(http.MethodPost, "/operator/calls/"+uuid.NewString()+"/end", "").fails(http.StatusNotFound, "CALL_NOT_FOUND").says("CallNotFound", "call")
		s.operate(http.MethodPost, "/operator/calls/7/end", "").fails(http.StatusBadRequest, "INVALID_REQUEST")
	})
}

func TestLimitsOfAccounts(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, _ customer) {
		id, account := s.account()
		put := func(limits string) answer {
			return s.operate(http.MethodPut, account, `{"name": "Acme"`+limits+`}`)
		}
		expect := func(limits, want string) {
			t.Helper()
			if answer := put(limits).is(http.StatusOK); !strings.Contains(string(answer.body), `"limits":{`+want+`}`) {
				t.Errorf("%s: %s", limits, answer.body)
			}
		}
		none := `"calls":null,"minutesPerCall":null,"minutesPerMonth":null`
		expect("", none)
		expect(`, "limits": {"calls": 5, "minutesPerMonth": 1000.0}`, `"calls":5,"minutesPerCall":null,"minutesPerMonth":1000`)
		expect("", `"calls":5,"minutesPerCall":null,"minutesPerMonth":1000`)
		expect(`, "limits": {"minutesPerCall": 1440}`, `"calls":null,"minutesPerCall":1440,"minutesPerMonth":null`)
		expect(`, "limits": null`, none)
		for _, wrong := range []string{
			`7`, `[]`, `{"calls": 0}`, `{"calls": -1}`, `{"calls": 1.5}`, `{"calls": "5"}`, `{"calls": 10001}`, `{"minutesPerCall": 1441}`, `{"minutesPerMonth": 10000001}`, `{"calls": 1e300}`,
		} {
			put(`, "limits": `+wrong).fails(http.StatusBadRequest, "INVALID_REQUEST")
		}
		s.recorded(id, "account.created, account.limited, account.limited, account.limited")
	})
}

// A token of a key at a limit is refused, and counts as a refusal.
func TestTokensAtALimit(t *testing.T) {
	eachChanged(t, withVector, func(t *testing.T, s *service, c customer) {
		request := func() answer {
			return s.post("/api/widget/token", bearer(c.secret), jsonBody(agentRequest(c.agent.ID)))
		}
		s.restrict(c, keys.Restrictions{Limits: value.Limits{Calls: 1, MinutesPerMonth: 1}})
		request().is(http.StatusOK)
		now := s.clock.Now().UTC().Truncate(time.Second)
		// The list is recent however long the test takes: PostgreSQL has a clock of its own.
		modelstest.Exec(t, s.database, "UPDATE call_rounds SET listed_at = '"+now.Add(time.Hour).Format("2006-01-02 15:04:05-07:00")+"'")
		s.report(c, "a", now, -1)
		refused := request().fails(http.StatusTooManyRequests, "LIMIT_REACHED").says("TokenLimited", "calls")
		refused.has("Retry-After", "10")
		var key struct {
			Limits map[string]any
			Used   struct{ Calls, MinutesThisMonth int }
		}
		s.get("/api/key", bearer(c.secret)).is(http.StatusOK).into(&key)
		if key.Limits["calls"] != 1.0 || key.Used.Calls != 1 {
			t.Errorf("%+v", key)
		}
		s.report(c, "a", now, 60)
		request().fails(http.StatusTooManyRequests, "LIMIT_REACHED").says("TokenLimited", "minutes")
	})
}

// A paused agent is refused at every door, and its tokens work again once it is resumed.
func TestPausedAgent(t *testing.T) {
	eachDatabase(t, func(_ *testing.T, s *service, c customer) {
		token := s.token(c)
		agent := "/operator/accounts/" + c.accountID.String() + "/agents/" + c.agent.ID.String()
		s.get("/widget/authorize", bearer(token)).is(http.StatusOK)
		s.operate(http.MethodPut, agent, `{"name": "Front desk", "paused": true}`).is(http.StatusOK).isExactly(`{"id":"` + c.agent.ID.String() + `","name":"Front desk","paused":true}`)
		s.operate(http.MethodPut, agent, `{"name": "Front desk"}`).is(http.StatusOK)
		s.post("/api/widget/token", bearer(c.secret), jsonBody(agentRequest(c.agent.ID))).fails(http.StatusForbidden, "AGENT_PAUSED").says("NotAllowed", "paused")
		s.get("/api/authorize?agentId="+c.agent.ID.String(), bearer(c.secret)).fails(http.StatusForbidden, "AGENT_PAUSED")
		s.get("/api/authorize", bearer(c.secret)).is(http.StatusOK)
		s.get("/widget/authorize", bearer(token)).fails(http.StatusUnauthorized, "UNAUTHORIZED").has("X-Error-Reason", "agent_paused")
		s.post("/api/widget/introspect", bearer(c.secret), tokenForm(token)).is(http.StatusOK).isExactly(`{"active":false}`)
		s.get("/api/agents", bearer(c.secret)).is(http.StatusOK).isExactly(`{"agents":[{"id":"` + c.agent.ID.String() + `","name":"Front desk","paused":true}]}`)
		s.operate(http.MethodPut, agent, `{"name": "Front desk", "paused": 1}`).fails(http.StatusBadRequest, "INVALID_REQUEST")
		s.operate(http.MethodPut, agent, `{"name": "Front desk", "paused": false}`).is(http.StatusOK)
		s.get("/widget/authorize", bearer(token)).is(http.StatusOK)
	})
}
