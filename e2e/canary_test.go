package e2e

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"portal/e2e/pages"
	"portal/handlers/mailer/mailertest"
	"portal/models/modelstest"
	"portal/models/modelstest/postgres"
	"portal/models/modelstest/subprocess"
)

// A customer and an operator use the portal and make typical mistakes. PostgreSQL logs every
// statement, and the browser stores its profile on disk. No log, metric, database or browser file
// may contain a secret afterwards.
func TestNoSecretIsLeftAnywhere(t *testing.T) {
	t.Parallel()
	c := newCanary(t)
	agentID := c.operator(t, "", "agent", "create", "--account", c.email, "--name", "Front desk")

	profile := t.TempDir()
	v := visitWithProfileOnDisk(t, c.portal.URL, profile)
	v.allowStatus(http.StatusUnauthorized, http.StatusUnprocessableEntity)
	pages.OpenLogin(v.Tab).SignIn(c.email, c.secret("wrong password", randomHex(12)))
	pages.ExpectLogin(v.Tab).ExpectAlert()
	pages.OpenLogin(v.Tab).SignIn(c.email, c.known["password"])
	keys := pages.ExpectKeys(v.Tab)
	c.cookies("session", v.cookies(t))
	first := c.key("first key", keys.Add("production"))
	second := c.key("second key", keys.Add("leaked"))
	for n := range 9 { // a long list has a filter
		keys.Add(fmt.Sprintf("key %d", n))
	}
	keys = pages.OpenKeys(v.Tab)
	keys.Filter(second)
	keys.ExpectAlertSaying(`whole key`)

	invitation := pages.OpenPeople(v.Tab).Invite("guest@example.com", "Member")
	mailed := mailedPath(t, c.mails, c.portal.URL, "guest@example.com", "Invitation")
	c.send(t, "/invitations/"+c.secret("mailed invitation token", strings.TrimPrefix(mailed, "/invitations/")), "", "", "")
	c.join(t, strings.TrimPrefix(invitation.Link(), c.portal.URL))
	invitation.Done()

	c.useKey(t, first, agentID)
	c.misuse(t, second)
	c.operator(t, second, "key", "revoke", "--key", "-")
	keys = pages.OpenKeys(v.Tab)
	keys.Row("production").Revoke().Confirm()
	keys.ExpectStatusSaying(`(?i)revoked`)
	c.useKey(t, first, agentID)

	c.resetByEmail(t)
	c.operator(t, c.secret("reset password", randomHex(12)), "account", "reset-password", "--email", c.email)
	pages.OpenLogin(v.Tab).SignIn(c.email, c.known["reset password"])
	keys = pages.ExpectKeys(v.Tab)
	c.cookies("later session", v.cookies(t))
	pages.OpenActivity(v.Tab)
	pages.OpenKeys(v.Tab)
	v.ExpectEmptyStorage()
	keys.SignOut()
	v.ExpectEmptyStorage()
	if err := v.context.Close(); err != nil {
		t.Fatal(err)
	}

	if len(c.known) != 19 {
		t.Errorf("want 19 secrets, got %q", slices.Collect(maps.Keys(c.known)))
	}
	metrics := c.metrics(t)
	if err := c.portal.stop(); err != nil {
		t.Error(err)
	}
	c.searchFor(t, "the portal's log", c.portal.log.String(), `"route":"/login"`)
	c.searchFor(t, "the portal's log", c.portal.log.String(), `"method":"POST","route":"/invitations/:token","status":303`)
	c.searchFor(t, "the portal's log", c.portal.log.String(), `"method":"POST","route":"/password-resets/:token","status":303`)
	c.searchFor(t, "the portal's log", c.portal.log.String(), "cannot end calls")
	c.searchFor(t, "the output of operator commands", c.operatorOutput.String(), "portal: nas_...")
	c.searchFor(t, "the metrics", metrics, "portal_http_requests_total")
	c.searchFor(t, "PostgreSQL's log", readFile(t, c.cluster.LogFile()), "INSERT INTO \"api_keys\"")
	c.searchFor(t, "the database", c.dump(t), "production")
	c.searchProfile(t, profile)
}

// canary is a portal and the secrets that it must not leak.
type canary struct {
	portal  *process
	cluster *postgres.Cluster
	mails   *mailertest.Server
	monitor string // address of /metrics
	email   string
	known   map[string]string // secrets by description

	operatorOutput bytes.Buffer // standard output and standard error of operator commands
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	cluster := modelstest.OwnCluster(t, "log_statement=all", "log_min_duration_statement=0", "log_connections=on", "log_parameter_max_length=-1")
	monitor, err := subprocess.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	c := &canary{cluster: cluster, monitor: monitor, email: "canary@example.com", known: map[string]string{}}
	smtpPassword := c.secret("password of PORTAL_SMTP_URL", randomHex(12))
	c.mails = mailertest.Start(t, "--password", smtpPassword)
	c.portal, err = theRun.start(settings{
		databaseURL: cluster.URL("postgres"), secret: c.secret("PORTAL_SECRET", randomHex(32)),
		extra: append(mailSettings("smtp://portal:"+smtpPassword+"@127.0.0.1:"+c.mails.Port),
			"PORTAL_SECRET_PREVIOUS="+c.secret("PORTAL_SECRET_PREVIOUS", randomHex(32)), "PORTAL_METRICS_ADDR="+monitor,
			// Nothing listens there, so the portal logs that it cannot end calls.
			"PORTAL_LIVEKIT_URL=ws://127.0.0.1:1", "PORTAL_LIVEKIT_API_KEY=APIofTheCanary",
			"PORTAL_LIVEKIT_API_SECRET="+c.secret("PORTAL_LIVEKIT_API_SECRET", randomHex(32)),
		),
	})
	if err != nil {
		t.Fatalf("start the portal: %v", err)
	}
	t.Cleanup(func() { c.portal.Kill() })
	c.operator(t, c.secret("password", randomHex(12)), "account", "create", "--name", "Canary", "--email", c.email)
	return c
}

// secret records a secret and returns it.
func (c *canary) secret(what, value string) string {
	c.known[what] = value
	return value
}

// key records the random part of an API key, from which the rest follows, and returns the key.
func (c *canary) key(what, key string) string {
	c.secret(what, key[len("nas_"):len("nas_")+30])
	return key
}

// cookies records the session cookies and their session tokens.
func (c *canary) cookies(what string, cookies []*http.Cookie) {
	for _, cookie := range cookies {
		if !strings.HasSuffix(cookie.Name, "session") {
			continue
		}
		c.secret(what+"'s cookie", cookie.Value)
		if token := sessionTokenIn(cookie.Value); token != "" {
			c.secret(what+"'s token", token)
		}
	}
}

// operator runs a command of the binary, records its output and returns its result.
func (c *canary) operator(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	command := exec.Command(c.portal.settings.binary, arguments...)
	command.Env = c.portal.settings.environment()
	command.Stdin = strings.NewReader(input + "\n")
	var result bytes.Buffer
	command.Stdout, command.Stderr = io.MultiWriter(&result, &c.operatorOutput), &c.operatorOutput
	if err := command.Run(); err != nil {
		t.Fatalf("portal %s: %v: %s", strings.Join(arguments, " "), err, c.operatorOutput.String())
	}
	return strings.TrimSpace(result.String())
}

// useKey exchanges the key for a token and introspects the token. A revoked key gets no token.
func (c *canary) useKey(t *testing.T, key, agentID string) {
	t.Helper()
	server := backend{site: c.portal.URL, key: key}
	if got := server.requestToken(t, agentID); got.Token != "" {
		// The claims are not secret. The signature is.
		parts := strings.Split(got.Token, ".")
		c.secret("widget token", parts[len(parts)-1])
		c.send(t, "/api/widget/introspect", "application/x-www-form-urlencoded", "Bearer "+key, url.Values{"token": {got.Token}}.Encode())
	}
}

// join opens the path of an invitation and accepts it.
func (c *canary) join(t *testing.T, path string) {
	t.Helper()
	c.secret("invitation token", strings.TrimPrefix(path, "/invitations/"))
	form := url.Values{"password": {c.secret("guest's password", randomHex(12))}}
	c.send(t, path, "", "", "")
	c.send(t, path+"x", "application/x-www-form-urlencoded", "", form.Encode())
	c.send(t, path, "application/x-www-form-urlencoded", "", form.Encode())
}

// resetByEmail asks for a link to set a new password and uses it.
func (c *canary) resetByEmail(t *testing.T) {
	t.Helper()
	form := "application/x-www-form-urlencoded"
	c.send(t, "/password-resets", form, "", url.Values{"email": {c.email}}.Encode())
	path := mailedPath(t, c.mails, c.portal.URL, c.email, "Set a new password")
	c.secret("reset token", strings.TrimPrefix(path, "/password-resets/"))
	c.send(t, path, "", "", "")
	for _, password := range []string{"short", c.secret("password of a reset", randomHex(12)), "too late for a new one"} {
		c.send(t, path, form, "", url.Values{"new_password": {password}}.Encode())
	}
}

// misuse sends the key in wrong places: paths, queries, bodies and malformed headers.
func (c *canary) misuse(t *testing.T, key string) {
	t.Helper()
	for _, authorization := range []string{key, "Basic " + key, "Bearer " + key[:30], "Bearer " + key + "x", "Bearer " + key + " " + key} {
		c.send(t, "/api/agents", "", authorization, "")
	}
	for _, path := range []string{"/api/" + key, "/api/agents?key=" + key, "/" + key, "/api-keys/" + key, "/login?next=/" + key, "/api-keys/" + key + "/revocation"} {
		c.send(t, path, "", "", "")
	}
	c.send(t, "/api/widget/token", "application/json", "Bearer "+key, `{"agentId":"`+key+`"}`)
	c.send(t, "/api/widget/token", key, "Bearer "+key, key)
	for _, form := range []url.Values{
		{"email": {"nobody@example.com"}, "password": {key}}, {"email": {key}, "password": {"x"}}, {"email": {c.known["wrong password"]}, "password": {"x"}},
	} {
		c.send(t, "/login", "application/x-www-form-urlencoded", "", form.Encode())
	}
}

func (c *canary) send(t *testing.T, path, contentType, authorization, body string) {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(t.Context(), method, c.portal.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := formClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

func (c *canary) metrics(t *testing.T) string {
	t.Helper()
	response, err := backendClient.Get("http://" + c.monitor + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dump returns a dump of the database.
func (c *canary) dump(t *testing.T) string {
	t.Helper()
	output, err := exec.Command(c.cluster.Program("pg_dump"), "--inserts", c.cluster.URL("postgres")).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return string(output)
}

// searchFor fails the test if text contains a secret in any encoding. text must contain proof,
// which shows that it is the right text.
func (c *canary) searchFor(t *testing.T, where, text, proof string) {
	t.Helper()
	if !strings.Contains(text, proof) {
		t.Errorf("%s does not contain %q, so the search proves nothing", where, proof)
	}
	for what, secret := range c.known {
		for encoding, encoded := range encodings(secret) {
			if strings.Contains(text, encoded) {
				t.Errorf("%s contains the %s (%s)", where, what, encoding)
			}
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
