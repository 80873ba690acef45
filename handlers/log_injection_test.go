package handlers_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"portal/models/modelstest"
)

// forged is input that would add a log line for a request that did not happen.
const forged = "x\"}\r\n{\"time\":\"2026-01-01T00:00:00Z\",\"level\":\"INFO\",\"msg\":\"forged\"}\n\u2028\x1b[2Jforged\x00"

// loggedFields are the only fields of a log line.
var loggedFields = []string{
	"time", "level", "msg", "method", "route", "status", "duration_ns", "request_id", "client", "account_id", "key_id", "user_id", "cause",
}

func TestInputCannotForgeLogLines(t *testing.T) {
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		var log bytes.Buffer
		s := newSystemLoggingTo(t, databaseURL, &log)
		c := s.tenant(t, "ada")
		log.Reset()
		sent := 0
		send := func(method, path string, form url.Values) {
			sent++
			r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			// Headers that net/http would reject.
			for _, name := range []string{"User-Agent", "X-Forwarded-For", "X-Request-Id", "Referer", "Sec-Ch-Ua"} {
				r.Header[name] = []string{forged}
			}
			r.Host = forged
			r.AddCookie(c.cookie)
			serve(s.handler, r)
		}
		send(http.MethodPost, "/login", url.Values{"email": {forged}, "password": {forged}, "next": {forged}})
		send(http.MethodPost, "/login", url.Values{"email": {"ada@example.com"}, "password": {forged}})
		send(http.MethodPost, "/api-keys", url.Values{"label": {forged}, "form_id": {forged}})
		send(http.MethodPost, "/agents", url.Values{"name": {forged}})
		send(http.MethodGet, "/agents/"+url.PathEscape(forged)+"?q="+url.QueryEscape(forged), nil)
		send(http.MethodGet, "/"+url.PathEscape(forged), nil)
		send(http.MethodGet, "/api/"+url.PathEscape(forged), nil)
		// The next request gets a 500 whose cause contains the new name of the table.
		if _, err := s.db.ExecContext(t.Context(), `ALTER TABLE users RENAME TO "`+strings.NewReplacer(`"`, `""`, "\x00", "").Replace(forged)+`"`); err != nil {
			t.Fatal(err)
		}
		send(http.MethodPost, "/login", url.Values{"email": {forged}, "password": {forged}})

		lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
		if len(lines) != sent {
			t.Errorf("%d lines for %d requests:\n%s", len(lines), sent, log.String())
		}
		for _, line := range lines {
			var fields map[string]any
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				t.Errorf("%v: %s", err, line)
				continue
			}
			if fields["msg"] != "request" || strings.ContainsAny(line, "\x1b\r\u2028") {
				t.Errorf("forged line %s", line)
			}
			for name, value := range fields {
				if text, _ := value.(string); !slices.Contains(loggedFields, name) || name != "cause" && strings.Contains(text, "forged") {
					t.Errorf("the field %s must not contain input, got %q", name, value)
				}
			}
		}
	})
}
