package api_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
)

func TestUnknownPathIs404AndWrongMethodIs405(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *service, c customer) {
		key := bearer(c.secret)
		for path, message := range map[string]string{
			"/api": "", "/api/": "ends in a slash", "/api//agents": "two slashes in a row", "/api/agents/": "ends in a slash",
			"/api/widget": "", "/api/AGENTS": "", "/api/../agents": "",
		} {
			if body := s.get(path, key).fails(http.StatusNotFound, "NOT_FOUND").body; !strings.Contains(string(body), message) {
				t.Errorf("%s: %s", path, body)
			}
			s.post(path, key).fails(http.StatusNotFound, "NOT_FOUND")
		}
		for _, r := range []struct{ method, path, allow string }{
			{http.MethodGet, "/api/widget/token", "POST"},
			{http.MethodPut, "/api/widget/introspect", "POST"},
			{http.MethodPost, "/api/agents", "GET, HEAD"},
			{http.MethodOptions, "/api/agents", "GET, HEAD"},
			{"PURGE", "/api/agents", "GET, HEAD"},
		} {
			a := s.send(r.method, r.path, key)
			a.fails(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED")
			a.has("Allow", r.allow)
		}
		s.send(http.MethodHead, "/api/widget/token", key).is(http.StatusMethodNotAllowed).has("Allow", "POST")
	})
}

func TestContentTypeIsCheckedWithoutItsParameters(t *testing.T) {
	onSQLite(t, func(_ *testing.T, s *service, c customer) {
		for _, right := range []string{"application/json; charset=utf-8", "Application/JSON", `application/json;v="1;2"`} {
			s.post("/api/widget/token", bearer(c.secret), body(right, agentRequest(c.agent.ID))).is(http.StatusOK)
		}
		for _, wrong := range []string{"", "text/plain", "application/jsonp", "application/json-patch+json", "application/json, text/plain", "json", ";"} {
			s.post("/api/widget/token", bearer(c.secret), body(wrong, agentRequest(c.agent.ID))).fails(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE")
		}
		s.post("/api/widget/token", bearer(c.secret)).fails(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE")
		s.post("/api/widget/token", bearer(c.secret), jsonBody(agentRequest(c.agent.ID)), header("Content-Type", "text/plain")).
			fails(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE")

		s.post("/api/widget/introspect", bearer(c.secret), body("application/x-www-form-urlencoded;charset=UTF-8", "token=x")).is(http.StatusOK)
		s.post("/api/widget/introspect", bearer(c.secret), jsonBody(`{"token": "x"}`)).fails(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE")
	})
}

func TestBodiesHaveNoContentCoding(t *testing.T) {
	eachExchange(t, func(t *testing.T, e *exchangeService) {
		key, operator := bearer(e.customer.secret), bearer(operatorToken)
		for _, r := range []struct {
			method, path string
			options      []option
		}{
			{http.MethodPost, "/api/widget/token", []option{key, jsonBody(agentRequest(e.customer.agent.ID))}},
			{http.MethodPost, "/api/widget/introspect", []option{key, tokenForm("x")}},
			{http.MethodPut, "/operator/accounts/" + e.customer.accountID.String(), []option{operator, jsonBody(`{"name": "Acme"}`)}},
			{http.MethodPost, "/leaks", []option{jsonBody(`{"keys": ["x"]}`)}},
		} {
			for _, plain := range []string{"identity", "", "Identity, identity"} {
				if a := e.send(r.method, r.path, append(r.options, header("Content-Encoding", plain))...); a.status >= http.StatusBadRequest {
					t.Errorf("%s with the coding %q: %d", r.path, plain, a.status)
				}
			}
			for _, coding := range []string{"gzip", "br", "zstd", "identity, gzip"} {
				a := e.send(r.method, r.path, append(r.options, header("Content-Encoding", coding))...)
				a.fails(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE").says("UnsupportedMediaType", "coding").has("Accept-Encoding", "identity")
			}
		}
		trusting := e.trusting(e.rule())
		encoded, exchanged := e.exchange(exchangeForm(trusting.ID.String(), e.issuer.Token(e.job())), "Content-Encoding: gzip")
		if encoded.StatusCode != http.StatusUnsupportedMediaType || exchanged.Error != "invalid_request" || encoded.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("an exchange: %d %+v", encoded.StatusCode, exchanged)
		}
	})
}

func TestJSONMayBeginWithAByteOrderMark(t *testing.T) {
	onSQLite(t, func(_ *testing.T, s *service, c customer) {
		s.post("/api/widget/token", bearer(c.secret), jsonBody("\ufeff"+agentRequest(c.agent.ID))).is(http.StatusOK)
		s.operate(http.MethodPut, "/operator/accounts/"+c.accountID.String(), "\ufeff"+`{"name": "Acme"}`).is(http.StatusOK)
		s.post("/leaks", jsonBody("\ufeff"+`{"keys": ["x"]}`)).is(http.StatusAccepted)
		s.post("/api/widget/token", bearer(c.secret), jsonBody("\ufeff\ufeff"+agentRequest(c.agent.ID))).fails(http.StatusBadRequest, "INVALID_REQUEST")
	})
}

// The order is path, method, Content-Type, size, body, agent.
func TestChecksHaveTheirOrder(t *testing.T) {
	onSQLite(t, func(_ *testing.T, s *service, c customer) {
		tooLarge := strings.Repeat("x", 16<<10+1)
		key := bearer(c.secret)
		s.post("/api/nothing", key, body("text/plain", tooLarge)).fails(http.StatusNotFound, "NOT_FOUND")
		s.send(http.MethodPut, "/api/widget/token", key, body("text/plain", tooLarge)).fails(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED")
		s.post("/api/widget/token", key, body("text/plain", tooLarge)).fails(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE")
		s.post("/api/widget/token", key, jsonBody(tooLarge)).fails(http.StatusRequestEntityTooLarge, "PAYLOAD_TOO_LARGE")
		s.post("/api/widget/token", key, jsonBody(tooLarge), chunked()).fails(http.StatusRequestEntityTooLarge, "PAYLOAD_TOO_LARGE")
		s.post("/api/widget/introspect", key, tokenForm(tooLarge)).fails(http.StatusRequestEntityTooLarge, "PAYLOAD_TOO_LARGE")
		s.post("/api/widget/token", key, jsonBody(`{"agentId": "x"}`)).fails(http.StatusBadRequest, "INVALID_REQUEST")
		s.post("/api/widget/token", key, jsonBody(agentRequest(uuid.New()))).fails(http.StatusNotFound, "AGENT_NOT_FOUND")
	})
}

func TestForeignAgentGetsTheSameResponseAsAMissingOne(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *service, c customer) {
		other := s.customer()
		none := s.post("/api/widget/token", bearer(c.secret), jsonBody(agentRequest(uuid.New())))
		foreign := s.post("/api/widget/token", bearer(c.secret), jsonBody(agentRequest(other.agent.ID)))
		none.fails(http.StatusNotFound, "AGENT_NOT_FOUND")
		if foreign.status != none.status || !bytes.Equal(foreign.body, none.body) {
			t.Errorf("another account's agent: %d %s; none: %d %s", foreign.status, foreign.body, none.status, none.body)
		}
	})
}

func TestSlowClientDoesNotUseUpTheDatabaseTimeout(t *testing.T) {
	t.Parallel()
	s := newTimedService(t, modelstest.SQLiteURL(t), models.Timeout)
	c := s.customer()
	request := agentRequest(c.agent.ID)
	s.post("/api/widget/token", bearer(c.secret), jsonBody(request), func(r *http.Request) {
		late, send := io.Pipe()
		r.Body, r.ContentLength = late, int64(len(request))
		time.AfterFunc(models.Timeout+100*time.Millisecond, func() {
			_, err := io.WriteString(send, request)
			send.CloseWithError(err)
		})
	}).is(http.StatusOK)
}

func TestCauseOfA500IsInTheLogOnly(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		modelstest.Exec(t, s.database, "ALTER TABLE agents RENAME TO gone")
		a := s.get("/api/agents", bearer(c.secret))
		a.fails(http.StatusInternalServerError, "INTERNAL").says("Internal", "fault")
		line := s.log.LineWith(a.header.Get("X-Request-Id"))
		if !strings.Contains(line, "agents") || !strings.Contains(line, `"status":500`) {
			t.Errorf("the log lacks the cause: %q", line)
		}
	})
}
