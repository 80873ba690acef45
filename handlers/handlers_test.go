package handlers_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/modelstest"
)

func TestMain(m *testing.M) { modelstest.Main(m) }

func TestErrorFormatDependsOnThePath(t *testing.T) {
	h := newHandler(t, io.Discard)
	for _, asked := range []struct {
		method, path, contentType string
		status                    int
	}{
		{http.MethodGet, "/api", "application/json; charset=utf-8", http.StatusUnauthorized},
		{http.MethodGet, "/api/nothing", "application/json; charset=utf-8", http.StatusUnauthorized},
		{http.MethodGet, "/operator/accounts", "application/json; charset=utf-8", http.StatusNotFound},
		{http.MethodGet, "/leaks/nothing", "application/json; charset=utf-8", http.StatusNotFound},
		{http.MethodGet, "/leaks", "application/json; charset=utf-8", http.StatusMethodNotAllowed},
		{http.MethodGet, "/widget/nothing", "application/json; charset=utf-8", http.StatusNotFound},
		{http.MethodPost, "/livekit/webhook", "application/json; charset=utf-8", http.StatusNotFound},
		{http.MethodPost, "/oauth/token", "application/json; charset=utf-8", http.StatusBadRequest},
		{http.MethodGet, "/.well-known/nothing", "application/json; charset=utf-8", http.StatusNotFound},
		{http.MethodGet, "/.well-known/security.txt", "application/json; charset=utf-8", http.StatusNotFound},
		{http.MethodPost, "/.well-known/jwks.json", "application/json; charset=utf-8", http.StatusMethodNotAllowed},
		{http.MethodPost, "/openapi.json", "application/json; charset=utf-8", http.StatusMethodNotAllowed},
		{http.MethodPost, "/healthz", "application/json; charset=utf-8", http.StatusMethodNotAllowed},
		{http.MethodGet, "/widgets", "text/html; charset=utf-8", http.StatusNotFound},
		{http.MethodGet, "/nothing", "text/html; charset=utf-8", http.StatusNotFound},
		{http.MethodGet, "/apis", "text/html; charset=utf-8", http.StatusNotFound},
		{http.MethodGet, "//api/agents", "application/json; charset=utf-8", http.StatusNotFound},
		{http.MethodGet, "/api//agents", "application/json; charset=utf-8", http.StatusUnauthorized},
		{http.MethodGet, "/login/?next=%2Fdocs", "text/html; charset=utf-8", http.StatusSeeOther},
		{http.MethodPost, "/login/", "text/html; charset=utf-8", http.StatusNotFound},
		{http.MethodGet, "//example.com/", "text/html; charset=utf-8", http.StatusNotFound},
		{http.MethodGet, "/\\example.com/", "text/html; charset=utf-8", http.StatusSeeOther},
		{http.MethodGet, "/api/agents/", "application/json; charset=utf-8", http.StatusUnauthorized},
		{http.MethodGet, "/login", "text/html; charset=utf-8", http.StatusOK},
		{http.MethodDelete, "/login", "text/html; charset=utf-8", http.StatusMethodNotAllowed},
	} {
		answer := serve(h, httptest.NewRequest(asked.method, asked.path, http.NoBody))
		if answer.Code != asked.status || answer.Header().Get("Content-Type") != asked.contentType {
			t.Errorf("%s %s: %d %s, want %d %s", asked.method, asked.path,
				answer.Code, answer.Header().Get("Content-Type"), asked.status, asked.contentType)
		}
	}
	for path, want := range map[string]string{"/login/?next=%2Fdocs": "/login?next=%2Fdocs", `/\example.com/`: "/%5Cexample.com"} {
		if location := serve(h, httptest.NewRequest(http.MethodGet, path, http.NoBody)).Header().Get("Location"); location != want {
			t.Errorf("%s leads to %s, want %s", path, location, want)
		}
	}
	if allow := serve(h, httptest.NewRequest(http.MethodDelete, "/login", http.NoBody)).Header().Get("Allow"); allow != "GET, POST, HEAD" {
		t.Errorf("Allow: %s", allow)
	}
}

func TestEveryResponseHasARequestIDAndTheSecurityHeaders(t *testing.T) {
	h := newHandler(t, io.Discard)
	everywhere := []string{"X-Request-Id", "Content-Security-Policy", "X-Content-Type-Options", "Strict-Transport-Security"}
	onPages := slices.Concat(everywhere, []string{"Referrer-Policy", "Cross-Origin-Opener-Policy", "Permissions-Policy"})
	for path, names := range map[string][]string{
		"/login": onPages, "/api-keys": onPages, "/nothing": onPages, "/docs": onPages,
		"/healthz": everywhere, "/openapi.json": everywhere, "/api/agents": everywhere, "/api/nothing": everywhere,
	} {
		answer := serve(h, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		for _, name := range names {
			if answer.Header().Get(name) == "" {
				t.Errorf("%s: no %s", path, name)
			}
		}
	}
}

func TestCrossSiteFormGetsAnErrorPage(t *testing.T) {
	var log bytes.Buffer
	h := newHandler(t, &log)
	for _, sent := range []struct {
		header, value string
		refused       bool
	}{
		{"Sec-Fetch-Site", "same-origin", false},
		{"Sec-Fetch-Site", "cross-site", true},
		{"Sec-Fetch-Site", "same-site", true},
		// Older browsers send this header only, and other clients neither.
		{"Origin", "http://example.com", false},
		// A proxy may send another Host than the browser.
		{"Origin", "https://portal.example.com", false},
		{"Origin", "https://portal.example.com:8443", true},
		{"Origin", "http://portal.example.com", true},
		{"Origin", "http://elsewhere.example", true},
		{"Origin", "null", true},
		{"X-Neither", "", false},
	} {
		for _, path := range []string{"/login", "/logout", "/api-keys", "/agents"} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("label=x"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set(sent.header, sent.value)
			log.Reset()
			answer := serve(h, r)
			cause := `"cause":"the form is from another site, because ` + sent.header + ` is \"` + sent.value + `\"`
			if line := log.String(); sent.refused && (!strings.Contains(line, cause) || !strings.Contains(line, `"level":"INFO"`)) {
				t.Errorf("%s: the log lacks %s: %s", path, cause, line)
			}
			if (answer.Code == http.StatusForbidden) != sent.refused || sent.refused && !strings.HasPrefix(answer.Header().Get("Content-Type"), "text/html") {
				t.Errorf("%s with %s %s: %d %s", path, sent.header, sent.value, answer.Code, answer.Header().Get("Content-Type"))
			}
			r.Method = http.MethodGet // a link on another site
			if answer := serve(h, r); answer.Code == http.StatusForbidden {
				t.Errorf("a GET of %s with %s %s is refused", path, sent.header, sent.value)
			}
		}
	}
}

func TestForwardedAddressIsUsedFromATrustedProxyOnly(t *testing.T) {
	var log bytes.Buffer
	h := newHandler(t, &log, netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("fe80::/10"))
	for _, sent := range []struct {
		peer, want string
		forwarded  []string // the client sent the first header, the proxy the second
	}{
		{"192.0.2.7:1234", "203.0.113.9", []string{"127.0.0.1", "203.0.113.9"}},
		{"198.51.100.7:1234", "198.51.100.7", []string{"127.0.0.1", "203.0.113.9"}},
		{"[::ffff:192.0.2.7]:1234", "203.0.113.9", []string{"203.0.113.9"}},
		{"[fe80::7%eth0]:1234", "203.0.113.9", []string{"203.0.113.9"}},
		{"[fe80::7%eth0]:1234", "fe80::7", nil},
		{"192.0.2.7:1234", "203.0.113.9", []string{"127.0.0.1:80, 203.0.113.9:51008"}},
		{"192.0.2.7:1234", "203.0.113.9", []string{"203.0.113.9:51008, 192.0.2.8:443"}},
		{"192.0.2.7:1234", "2001:db8::1", []string{"[2001:db8::1]:51008"}},
		{"192.0.2.7:1234", "2001:db8::1", []string{"[2001:DB8::1]"}},
		{"192.0.2.7:1234", "2001:db8::1", []string{"2001:db8::1"}},
		{"192.0.2.7:1234", "203.0.113.9", []string{" \"203.0.113.9:51008\" ,"}},
		{"192.0.2.7:1234", "fd00::1", []string{"fd00::1%eth0"}},
		{"192.0.2.7:1234", "192.0.2.8", []string{"192.0.2.8:51008"}},
		{"192.0.2.7:1234", "192.0.2.7", []string{""}},
		{"192.0.2.7:1234", "192.0.2.7", []string{"203.0.113.9, unknown"}},
		{"192.0.2.7:1234", "192.0.2.7", []string{"203.0.113.9:80:80"}},
		{"192.0.2.7:1234", "192.0.2.7", []string{"[203.0.113.9"}},
		{"192.0.2.7:1234", "192.0.2.7", []string{"[2001:db8::1]garbage"}},
	} {
		log.Reset()
		r := httptest.NewRequest(http.MethodGet, "/healthz", http.NoBody)
		r.RemoteAddr = sent.peer
		if sent.forwarded != nil {
			r.Header["X-Forwarded-For"] = sent.forwarded
		}
		r.Header.Set("X-Real-Ip", "127.0.0.1")
		serve(h, r)
		if !strings.Contains(log.String(), `"client":"`+sent.want+`"`) {
			t.Errorf("%q from %s: %s, want %s", sent.forwarded, sent.peer, log.String(), sent.want)
		}
	}
}

func TestOnlyThePublicDocumentsAllowOtherOrigins(t *testing.T) {
	h := newHandler(t, io.Discard)
	for path, want := range map[string]string{
		"/openapi.json": "*", "/.well-known/jwks.json": "*",
		"/.well-known/oauth-authorization-server": "*", "/.well-known/openid-configuration": "*", "/docs": "",
		"/": "", "/login": "", "/api-keys": "", "/api/agents": "", "/api/widget/token": "", "/healthz": "", "/readyz": "", "/nothing": "",
	} {
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.Header.Set("Origin", "https://elsewhere.example")
		if got := serve(h, r).Header().Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("%s: Access-Control-Allow-Origin %q, want %q", path, got, want)
		}
		r.Method = http.MethodOptions
		r.Header.Set("Access-Control-Request-Method", http.MethodGet)
		preflight := serve(h, r)
		if got := preflight.Header().Get("Access-Control-Allow-Origin"); got != want || (preflight.Code == http.StatusNoContent) != (want != "") {
			t.Errorf("preflight of %s: status %d, Access-Control-Allow-Origin %q, want %q", path, preflight.Code, got, want)
		}
		// Browsers do not take * for Authorization, which clients add to every request.
		if got := preflight.Header().Get("Access-Control-Allow-Headers"); want != "" && got != "*, Authorization" {
			t.Errorf("preflight of %s: Access-Control-Allow-Headers %q", path, got)
		}
	}
}

func newHandler(t *testing.T, log io.Writer, trustedProxies ...netip.Prefix) http.Handler {
	t.Helper()
	store := modelstest.Open(t, modelstest.SQLiteURL(t), models.Options{})
	deps := handlerstest.Deps(t, store, "https://portal.example.com", nil)
	deps.TrustedProxies, deps.Logger = trustedProxies, slog.New(slog.NewJSONHandler(log, nil))
	return handlerstest.New(t, deps)
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer
}

// forged is input that would add a log line for a request that did not happen.
const forged = "x\"}\r\n{\"time\":\"2026-01-01T00:00:00Z\",\"level\":\"INFO\",\"msg\":\"forged\"}\n\u2028\x1b[2Jforged\x00"

// loggedFields are the only fields of a log line.
var loggedFields = []string{
	"time", "level", "msg", "method", "route", "status", "duration_ns", "request_id", "client", "account_id", "key_id", "user_id", "cause",
}

func TestInputCannotForgeLogLines(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *system) {
		c := s.tenant(t, "ada")
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
		send(http.MethodGet, "/login", nil) // a warning follows the first X-Forwarded-For
		s.log.Reset()
		sent = 0
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

		lines := strings.Split(strings.TrimSuffix(s.log.String(), "\n"), "\n")
		// Wrong passwords are recorded in the background, and may find no table.
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, `"msg":"background write failed"`) })
		if len(lines) != sent {
			t.Errorf("%d lines for %d requests:\n%s", len(lines), sent, s.log)
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
