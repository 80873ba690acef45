package e2e

import (
	"bytes"
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
	"portal/models/modelstest"
	"portal/models/modelstest/postgres"
)

// A day of a customer and an operator, some of it wrong, on a PostgreSQL that logs every statement and in a browser
// that keeps what it can on disk. Afterwards nothing that anybody was given or has typed to prove who they are stands
// anywhere but with its owner.
func TestNoSecretIsLeftAnywhere(t *testing.T) {
	t.Parallel()
	c := newCanary(t)
	agentID := c.operator(t, "", "agent", "create", "--account", c.email, "--name", "Front desk")

	profile := t.TempDir()
	v := visitKeeping(t, c.portal.URL, profile)
	v.allowStatus(http.StatusUnauthorized, http.StatusUnprocessableEntity)
	pages.OpenLogin(v.Tab).SignIn(c.email, c.secret("wrong password", randomHex(12)))
	pages.ExpectLogin(v.Tab).ExpectAlert()
	pages.OpenLogin(v.Tab).SignIn(c.email, c.known["password"])
	keys := pages.ExpectKeys(v.Tab)
	c.cookies("session", v.cookies(t))
	first := c.key("first key", keys.Add("production"))
	second := c.key("second key", keys.Add("leaked"))

	c.useUp(t, first, agentID)
	c.misuse(t, second)
	c.operator(t, second, "key", "revoke", "--key", "-")
	keys = pages.OpenKeys(v.Tab)
	keys.Row("production").Revoke().Confirm()
	keys.ExpectStatusSaying(`(?i)revoked`)
	c.useUp(t, first, agentID)

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

	if len(c.known) != 12 {
		t.Errorf("the secrets that came up are %q", slices.Collect(maps.Keys(c.known)))
	}
	metrics := c.metrics(t)
	if err := c.portal.stop(); err != nil {
		t.Error(err)
	}
	c.searchFor(t, "the portal's log", c.portal.log.String(), `"route":"/login"`)
	c.searchFor(t, "what operators were told", c.told.String(), "portal: nas_...")
	c.searchFor(t, "the metrics", metrics, "portal_http_requests_total")
	c.searchFor(t, "PostgreSQL's log", readFile(t, c.cluster.LogFile()), "INSERT INTO \"api_keys\"")
	c.searchFor(t, "the database", c.dump(t), "production")
	c.searchProfile(t, profile)
}

// canary is a portal of its own, and all that must not be found.
type canary struct {
	portal  *process
	cluster *postgres.Cluster
	monitor string // address of /metrics
	email   string
	known   map[string]string // secrets by what they are
	told    bytes.Buffer      // both outputs of the operator's commands
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	cluster := modelstest.OwnCluster(t, "log_statement=all", "log_min_duration_statement=0", "log_connections=on", "log_parameter_max_length=-1")
	monitor, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	c := &canary{cluster: cluster, monitor: monitor, email: "canary@example.com", known: map[string]string{}}
	c.portal, err = theRun.start(settings{
		databaseURL: cluster.URL("postgres"), secret: c.secret("PORTAL_SECRET", randomHex(32)),
		extra: []string{
			"PORTAL_SECRET_PREVIOUS=" + c.secret("PORTAL_SECRET_PREVIOUS", randomHex(32)), "PORTAL_METRICS_ADDR=" + monitor,
		},
	})
	if err != nil {
		t.Fatalf("no portal to test: %v", err)
	}
	t.Cleanup(c.portal.kill)
	c.operator(t, c.secret("password", randomHex(12)), "account", "create", "--name", "Canary", "--email", c.email)
	return c
}

// secret notes a secret and returns it.
func (c *canary) secret(what, value string) string {
	c.known[what] = value
	return value
}

// key notes the random part of an API key, which is enough to make the rest, and returns the key.
func (c *canary) key(what, key string) string {
	c.secret(what, key[len("nas_"):len("nas_")+30])
	return key
}

// cookies notes what stands for the user in the browser.
func (c *canary) cookies(what string, cookies []*http.Cookie) {
	for _, cookie := range cookies {
		if !strings.HasSuffix(cookie.Name, "session") {
			continue
		}
		c.secret(what+"'s cookie", cookie.Value)
		if reference := referenceIn(cookie.Value); reference != "" {
			c.secret(what+"'s reference", reference)
		}
	}
}

// operator runs one of the binary's commands and notes all that it says.
func (c *canary) operator(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	command := exec.Command(c.portal.program.binary, arguments...)
	command.Env = c.portal.program.environment()
	command.Stdin = strings.NewReader(input + "\n")
	var result bytes.Buffer
	command.Stdout, command.Stderr = io.MultiWriter(&result, &c.told), &c.told
	if err := command.Run(); err != nil {
		t.Fatalf("portal %s: %v: %s", strings.Join(arguments, " "), err, c.told.String())
	}
	return strings.TrimSpace(result.String())
}

// useUp exchanges the key for a token, if it still works, and asks about the token.
func (c *canary) useUp(t *testing.T, key, agentID string) {
	t.Helper()
	server := backend{site: c.portal.URL, key: key}
	if got := server.askForToken(t, agentID); got.Token != "" {
		// The claims are no secret; the signature is what makes them a token.
		parts := strings.Split(got.Token, ".")
		c.secret("widget token", parts[len(parts)-1])
		c.send(t, "/api/widget/introspect", "application/x-www-form-urlencoded", "Bearer "+key, url.Values{"token": {got.Token}}.Encode())
	}
}

// misuse sends the key wherever it does not belong.
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
	for _, typed := range []url.Values{
		{"email": {"nobody@example.com"}, "password": {key}}, {"email": {key}, "password": {"x"}}, {"email": {c.known["wrong password"]}, "password": {"x"}},
	} {
		c.send(t, "/login", "application/x-www-form-urlencoded", "", typed.Encode())
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

// dump is what whoever steals a backup has.
func (c *canary) dump(t *testing.T) string {
	t.Helper()
	output, err := exec.Command(c.cluster.Program("pg_dump"), "--inserts", c.cluster.URL("postgres")).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return string(output)
}

// searchFor looks for every secret in a text, which must hold what shows that it is the right one.
func (c *canary) searchFor(t *testing.T, where, text, proof string) {
	t.Helper()
	if !strings.Contains(text, proof) {
		t.Errorf("%s does not hold %q and proves nothing", where, proof)
	}
	for what, secret := range c.known {
		for form, written := range forms(secret) {
			if strings.Contains(text, written) {
				t.Errorf("%s holds the %s (%s)", where, what, form)
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
