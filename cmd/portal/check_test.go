package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"portal/handlers/handlerstest"
	"portal/handlers/mailer/mailertest"
	"portal/models"
	"portal/models/modelstest"
)

// checks returns the grade of each line of portal check by its subject, and fails if one has
// another form.
func (r result) checks(t *testing.T) map[string]string {
	t.Helper()
	grades := map[string]string{}
	for line := range strings.Lines(r.stdout) {
		match := regexp.MustCompile(`^(ok|warning|failed|off) +([^:]+): \S.*\n$`).FindStringSubmatch(line)
		if match == nil {
			t.Fatalf("the line is %q", line)
		}
		if match[1] != gradeOff {
			grades[match[2]] = match[1]
		}
	}
	return grades
}

func TestCheckCreatesNothing(t *testing.T) {
	t.Parallel()
	run := portalCommand(t, []string{"PORTAL_ADDR=" + freeAddress(t)}, "check")
	r := waitFor(t, run, "")
	want := map[string]string{"settings": "ok", "database": "warning", "PORTAL_ADDR": "warning"}
	if got := r.checks(t); r.status != 0 || fmt.Sprint(got) != fmt.Sprint(want) || !strings.Contains(r.stdout, "not configured: LiveKit, OpenID provider, SMTP, PORTAL_BASE_URL") {
		t.Errorf("%+v", r)
	}
	if left := files(t, run.Dir); len(left) != 1 {
		t.Errorf("left %v", left)
	}
	empty := modelstest.EmptyPostgresURL(t)
	r = portal(t, []string{"DATABASE_URL=" + empty, testSecret, anyPort}, "", "check")
	if got := r.checks(t); r.status != 0 || got["database"] != "ok" || got["schema"] != "warning" || !strings.Contains(r.stdout, "portal migrate") {
		t.Errorf("%+v", r)
	}
	if r := portal(t, databaseEnv(empty), "", "account", "list"); !strings.Contains(r.stderr, "has no tables of the portal") {
		t.Errorf("the check made a schema: %+v", r)
	}
}

// newProvider serves the metadata of an OpenID Connect provider.
func newProvider(t *testing.T) string {
	t.Helper()
	keys := handlerstest.NewIssuer(t).JWKS()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	serve := func(path string, document any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(document)
		})
	}
	serve("/.well-known/openid-configuration", map[string]any{
		"issuer": server.URL, "jwks_uri": server.URL + "/keys", "authorization_endpoint": server.URL + "/authorize",
		"token_endpoint": server.URL + "/token", "id_token_signing_alg_values_supported": []string{"RS256"},
	})
	serve("/keys", keys)
	return server.URL
}

// neighborEnv is an environment with all neighbors of a portal.
func neighborEnv(liveKit, provider, mail string) []string {
	return []string{
		"PORTAL_LIVEKIT_URL=" + liveKit, "PORTAL_LIVEKIT_API_KEY=devkey", "PORTAL_LIVEKIT_API_SECRET=hunter-" + goodSecret,
		"PORTAL_OIDC_ISSUER=" + provider, "PORTAL_OIDC_CLIENT_ID=portal", "PORTAL_OIDC_CLIENT_SECRET=hunter2",
		"PORTAL_SMTP_URL=" + mail, "PORTAL_MAIL_FROM=portal@example.com",
	}
}

// newLiveKit serves lists of rooms for one API key, as LiveKit does.
func newLiveKit(t *testing.T, apiKey string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var claims jwt.MapClaims
		_, _, err := jwt.NewParser().ParseUnverified(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), &claims)
		if err != nil || claims["iss"] != apiKey {
			http.Error(w, "invalid API key: "+apiKey, http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"rooms":[]}`))
	}))
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "http", "ws", 1)
}

func TestCheckSaysWhatAnswers(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		mail := mailertest.Start(t, "--password", "hunter2")
		address := freeAddress(t)
		env := append(neighborEnv(newLiveKit(t, "devkey"), newProvider(t), strings.Replace(mail.URL(), "//", "//portal:hunter2@", 1)),
			"DATABASE_URL="+url, "PORTAL_ADDR="+address, "PORTAL_BASE_URL=http://"+address)
		subjects := []string{"settings", "database", "schema", "LiveKit", "OpenID provider", "SMTP", "PORTAL_ADDR", "PORTAL_BASE_URL"}
		if strings.HasPrefix(url, "postgres") {
			env = append(env, testSecret)
			subjects = append(subjects, "clock", "rights")
		} else {
			subjects = append(subjects, "secret") // the file that the start generates
		}
		i := start(t, env)
		r := portal(t, env, "", "check")
		got := r.checks(t)
		for _, subject := range subjects {
			if got[subject] != gradeOK {
				t.Errorf("%s is %q", subject, got[subject])
			}
		}
		if r.status != 0 || r.stderr != "" || len(got) != len(subjects) || strings.Contains(r.stdout, "hunter") {
			t.Errorf("%+v", r)
		}
		if line := i.stderr.LineWith("a server that the portal uses"); line != "" {
			t.Errorf("serve found %s", line)
		}
	})
}

func TestCheckSaysWhatToDo(t *testing.T) {
	t.Parallel()
	other := start(t, append(databaseEnv(modelstest.SQLiteURL(t)), anyPort))
	mail := mailertest.Start(t, "--password", "another")
	old := modelstest.EmptySQLiteURL(t)
	modelstest.MigrateFirst(t, old)
	address := strings.TrimPrefix(other.URL, "http://")
	env := append(neighborEnv(newLiveKit(t, "another"), "http://127.0.0.1:1", strings.Replace(mail.URL(), "//", "//portal:hunter2@", 1)),
		"DATABASE_URL="+old, "PORTAL_ADDR="+address, "PORTAL_BASE_URL="+other.URL, testSecret)
	r := portal(t, env, "", "check")
	want := map[string]string{
		"settings": "ok", "database": "ok", "schema": "warning", "LiveKit": "failed", "OpenID provider": "failed", "SMTP": "failed",
		"PORTAL_ADDR": "failed", "PORTAL_BASE_URL": "failed",
	}
	if got := r.checks(t); r.status != 1 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("want %v, got %+v", want, r)
	}
	if r.stderr != "portal: failed: LiveKit, OpenID provider, SMTP, PORTAL_ADDR, PORTAL_BASE_URL\n" {
		t.Errorf("standard error is %q", r.stderr)
	}
	for _, words := range []string{
		"older", "LiveKit refuses PORTAL_LIVEKIT_API_KEY and PORTAL_LIVEKIT_API_SECRET", "connection refused; check PORTAL_OIDC_ISSUER",
		"535", "check PORTAL_SMTP_URL", "publishes other keys than those of PORTAL_SECRET",
	} {
		if !strings.Contains(r.stdout, words) {
			t.Errorf("want %q in %s", words, r.stdout)
		}
	}
	if strings.Contains(r.stdout+r.stderr, "hunter") {
		t.Errorf("the output has a secret: %s", r.stdout)
	}

	role := strings.Replace(modelstest.PostgresURL(t), "portal@", "guest@", 1)
	r = portal(t, []string{"DATABASE_URL=" + role, testSecret, anyPort}, "", "check")
	if got := r.checks(t); r.status != 1 || got["database"] != "failed" || !strings.Contains(r.stdout, `role "guest" does not exist: correct the user`) {
		t.Errorf("%+v", r)
	}
	missing := portal(t, []string{"DATABASE_URL=" + modelstest.SQLiteURL(t), anyPort}, "", "check")
	if got := missing.checks(t); missing.status != 0 || got["secret"] != "warning" || !strings.Contains(missing.stdout, "portal.secret is missing; restore it") {
		t.Errorf("%+v", missing)
	}
	portal(t, []string{"PORTAL_ADDR=nowhere"}, "", "check").failsWith(t, "PORTAL_ADDR: ")
}

func TestCheckOfAnAddressThatIsNotThePortal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler      http.HandlerFunc
		grade, words string
	}{
		"another program": {http.NotFound, gradeFailed, "answers 404 Not Found, so another program answers"},
		"a redirect": {
			http.RedirectHandler("https://portal.example.com/readyz?secret", http.StatusMovedPermanently).ServeHTTP, gradeFailed,
			"redirects to https://portal.example.com, ",
		},
		"a proxy before the first start": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, gradeWarning, "502 Bad Gateway; start the portal",
		},
		"a page": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<h1>Hello</h1>")) }, gradeFailed, "publishes no keys"},
	} {
		server := httptest.NewServer(test.handler)
		lines := settings{addr: "127.0.0.1:0", baseURL: modelstest.Value(url.Parse(server.URL))(t)}.checkPortal(t.Context())
		server.Close()
		if len(lines) != 1 || lines[0].grade != test.grade || !strings.Contains(lines[0].text, test.words) || strings.Contains(lines[0].text, "secret") {
			t.Errorf("%s: %+v", name, lines)
		}
	}
}

func TestCheckExplainsMissingRights(t *testing.T) {
	t.Parallel()
	cluster := modelstest.OwnCluster(t)
	admin := cluster.URL("postgres")
	modelstest.Exec(t, admin, "CREATE ROLE guest LOGIN")
	url := strings.Replace(admin, "portal@", "guest@", 1)
	env := []string{"DATABASE_URL=" + url, testSecret, anyPort}
	r := portal(t, env, "", "check")
	if got := r.checks(t); r.status != 1 || got["rights"] != "failed" || !strings.Contains(r.stdout, "GRANT CREATE ON SCHEMA public TO guest") {
		t.Errorf("%+v", r)
	}
	modelstest.Open(t, admin, models.Options{}) // as somebody else
	r = portal(t, env, "", "check")
	if got := r.checks(t); r.status != 1 || got["rights"] != "failed" || got["schema"] != "failed" || !strings.Contains(r.stdout, "ALTER TABLE ... OWNER TO guest") {
		t.Errorf("%+v", r)
	}
	modelstest.Exec(t, admin, "GRANT CREATE ON SCHEMA public TO guest")
	modelstest.Exec(t, admin, "DO $$ DECLARE name text; BEGIN FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP "+
		"EXECUTE format('ALTER TABLE %I OWNER TO guest', name); END LOOP; END $$")
	if r := portal(t, env, "", "check"); r.status != 0 || r.checks(t)["rights"] != "ok" {
		t.Errorf("as the output says: %+v", r)
	}
	start(t, env)
}

// Each check has a limit, and they run at the same time.
func TestCheckEndsWithoutAnswers(t *testing.T) {
	t.Parallel()
	silent, _, _ := hang(t)
	address := "127.0.0.1:" + silent
	env := append(neighborEnv("ws://"+address, "http://"+address, "smtp://"+address), testSecret,
		"DATABASE_URL=postgres://portal@"+address+"/portal?sslmode=disable", "PORTAL_ADDR="+address, "PORTAL_BASE_URL=http://"+address)
	r := portal(t, env, "", "check")
	got := r.checks(t)
	for _, subject := range []string{"database", "LiveKit", "OpenID provider", "SMTP", "PORTAL_ADDR", "PORTAL_BASE_URL"} {
		if got[subject] != gradeFailed {
			t.Errorf("%s is %q", subject, got[subject])
		}
	}
	if r.status != 1 {
		t.Errorf("%+v", r)
	}
}

// Other programs at the addresses, which answer in another protocol or with another page.
func TestCheckSaysThatAnotherProgramAnswers(t *testing.T) {
	t.Parallel()
	listener := modelstest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.2p1\r\n")
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }))
	t.Cleanup(page.Close)
	ssh := listener.Addr().String()
	for _, address := range []string{ssh, strings.TrimPrefix(page.URL, "http://")} {
		env := append(neighborEnv("ws://"+address, "http://"+address, "smtp://"+ssh), testSecret,
			"DATABASE_URL=postgres://portal@"+ssh+"/portal?sslmode=disable", "PORTAL_ADDR="+address, "PORTAL_BASE_URL=http://"+address)
		r := portal(t, env, "", "check")
		for _, subject := range []string{"database", "LiveKit", "OpenID provider", "SMTP", "PORTAL_ADDR", "PORTAL_BASE_URL"} {
			line := regexp.MustCompile(`failed +` + subject + `: .*`).FindString(r.stdout)
			if !regexp.MustCompile("another pro|closed the connection").MatchString(line) || foreignWords.MatchString(line) {
				t.Errorf("%s: %q", subject, line)
			}
		}
	}
}

func TestServeWarnsOfNeighbors(t *testing.T) {
	t.Parallel()
	env := append(neighborEnv(newLiveKit(t, "another"), "http://127.0.0.1:1", "smtp://127.0.0.1:1"), append(databaseEnv(modelstest.SQLiteURL(t)), anyPort)...)
	i := start(t, env)
	for _, subject := range []string{"LiveKit", "OpenID provider", "SMTP"} {
		var line string
		modelstest.Eventually(t, "a warning about "+subject, func() bool {
			line = i.stderr.LineWith(`"server":"` + subject)
			return line != ""
		})
		if !strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, "hunter") {
			t.Errorf("%s", line)
		}
	}
}
