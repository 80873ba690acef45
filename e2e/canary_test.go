package e2e

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

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
	pages.OpenLogin(v.Tab).SignIn(c.email, c.secret("wrong password", newSecret()))
	pages.ExpectLogin(v.Tab).ExpectAlert(`\S`)
	pages.OpenLogin(v.Tab).SignIn(c.email, c.known["password"])
	keys := pages.ExpectKeys(v.Tab)
	c.cookies(t, "session", v)
	first := c.key("first key", keys.Add("production"))
	second := c.key("second key", keys.Add("leaked"))
	// A long list has a filter.
	modelstest.Keys(t, c.cluster.URL("postgres"), uuid.MustParse(c.account), 9)
	keys = pages.OpenKeys(v.Tab)
	keys.Filter(second)
	keys.ExpectAlert(`whole key`)

	invitation := pages.OpenPeople(v.Tab).Invite("guest@example.com", "Member")
	mailed := mailedPath(t, c.mails, c.portal.URL, "guest@example.com", "Invitation")
	c.Get("/invitations/" + c.secret("mailed invitation token", strings.TrimPrefix(mailed, "/invitations/")))
	c.join(strings.TrimPrefix(invitation.Secret(), c.portal.URL))
	invitation.Leave()

	c.useKey(first, agentID)
	c.misuse(second)
	c.operator(t, second, "key", "revoke", "--key", "-")
	keys = pages.OpenKeys(v.Tab)
	keys.Row("production").Revoke().Confirm()
	keys.ExpectStatus(`(?i)revoked`)
	c.useKey(first, agentID)

	c.resetByEmail(t)
	c.operator(t, c.secret("reset password", newSecret()), "account", "reset-password", "--email", c.email)
	pages.OpenLogin(v.Tab).SignIn(c.email, c.known["reset password"])
	keys = pages.ExpectKeys(v.Tab)
	c.cookies(t, "later session", v)
	pages.OpenActivity(v.Tab)
	pages.OpenKeys(v.Tab)
	v.ExpectEmptyStorage()
	keys.SignOut()
	v.ExpectEmptyStorage()
	modelstest.Must(t, v.context.Close())

	if len(c.known) != 19 {
		t.Errorf("want 19 secrets, got %q", slices.Collect(maps.Keys(c.known)))
	}
	metrics := modelstest.NewVisitor(t, "http://"+c.monitor).Get("/metrics").Body
	c.portal.stop(t)
	c.searchFor(t, "the portal's log", c.portal.log.String(), `"route":"/login"`, "cannot list or end calls",
		`"method":"POST","route":"/invitations/:token","status":303`, `"method":"POST","route":"/password-resets/:token","status":303`)
	c.searchFor(t, "the output of operator commands", c.operatorOutput.String(), "portal: nas_...")
	c.searchFor(t, "the metrics", metrics, "portal_http_requests_total")
	c.searchFor(t, "PostgreSQL's log", readFile(t, c.cluster.LogFile()), "INSERT INTO \"api_keys\"")
	c.searchFor(t, "the database", c.dump(t), "production")
	c.searchProfile(t, profile)
}

// canary is a portal and the secrets that it must not leak. It sends requests as a stranger does.
type canary struct {
	*modelstest.Visitor

	portal  *process
	cluster *postgres.Cluster
	mails   *mailertest.Server
	monitor string // address of /metrics
	account string // id
	email   string
	known   map[string]string // secrets by description

	operatorOutput bytes.Buffer // standard output and standard error of operator commands
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	cluster := modelstest.OwnCluster(t, "log_statement=all", "log_min_duration_statement=0", "log_connections=on", "log_parameter_max_length=-1")
	c := &canary{cluster: cluster, monitor: modelstest.Value(subprocess.FreeAddress())(t), email: "canary@example.com", known: map[string]string{}}
	smtpPassword := c.secret("password of PORTAL_SMTP_URL", newSecret())
	c.mails = mailertest.Start(t, "--password", smtpPassword)
	c.portal = modelstest.Value(startPortal(settings{
		databaseURL: cluster.URL("postgres"), secret: c.secret("PORTAL_SECRET", newSecret()),
		extra: append(mailSettings("smtp://portal:"+smtpPassword+"@127.0.0.1:"+c.mails.Port),
			"PORTAL_SECRET_PREVIOUS="+c.secret("PORTAL_SECRET_PREVIOUS", newSecret()), "PORTAL_METRICS_ADDR="+c.monitor,
			// Nothing listens there, so the portal logs that it cannot list calls.
			"PORTAL_LIVEKIT_URL=ws://127.0.0.1:1", "PORTAL_LIVEKIT_API_KEY=APIofTheCanary",
			"PORTAL_LIVEKIT_API_SECRET="+c.secret("PORTAL_LIVEKIT_API_SECRET", newSecret()),
		),
	}))(t)
	t.Cleanup(func() { c.portal.Kill() })
	c.Visitor = modelstest.NewVisitor(t, c.portal.URL)
	c.Jar = nil
	c.account = c.operator(t, c.secret("password", newSecret()), "account", "create", "--name", "Canary", "--email", c.email)
	return c
}

func (c *canary) operator(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	return c.portal.operator(t, &c.operatorOutput, input, arguments...)
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

// cookies records the session cookies of the browser and their session tokens.
func (c *canary) cookies(t *testing.T, what string, v *visitor) {
	t.Helper()
	for _, cookie := range modelstest.Value(v.context.Cookies())(t) {
		if !strings.Contains(cookie.Name, "session") {
			continue
		}
		c.secret(what+"'s cookie", cookie.Value)
		if token := sessionTokenIn(cookie.Value); token != "" {
			c.secret(what+"'s token", token)
		}
	}
}

// useKey exchanges the key for a token and introspects the token. A revoked key gets no token.
func (c *canary) useKey(key, agentID string) {
	got := c.PostJSON("/api/widget/token", `{"agentId":"`+agentID+`"}`, modelstest.Bearer(key))
	if got.StatusCode == http.StatusOK {
		token := got.Find(`"access_token":"([^"]+)"`)
		// The claims are not secret. The signature is.
		c.secret("widget token", token[strings.LastIndexByte(token, '.')+1:])
		c.Post("/api/widget/introspect", url.Values{"token": {token}}, modelstest.Bearer(key))
	}
}

// join opens the path of an invitation and accepts it.
func (c *canary) join(path string) {
	c.secret("invitation token", strings.TrimPrefix(path, "/invitations/"))
	form := url.Values{"password": {c.secret("guest's password", newSecret())}}
	c.Get(path)
	c.Post(path+"x", form)
	c.Post(path, form)
}

// resetByEmail asks for a link to set a new password and uses it.
func (c *canary) resetByEmail(t *testing.T) {
	t.Helper()
	c.Post("/password-resets", url.Values{"email": {c.email}})
	path := mailedPath(t, c.mails, c.portal.URL, c.email, "Set a new password")
	c.secret("reset token", strings.TrimPrefix(path, "/password-resets/"))
	c.Get(path)
	for _, password := range []string{"short", c.secret("password of a reset", newSecret()), "too late for a new one"} {
		c.Post(path, url.Values{"new_password": {password}})
	}
}

// misuse sends the key in wrong places: paths, queries, bodies and malformed headers.
func (c *canary) misuse(key string) {
	for _, authorization := range []string{key, "Basic " + key, "Bearer " + key[:30], "Bearer " + key + "x", "Bearer " + key + " " + key} {
		c.Get("/api/agents", "Authorization: "+authorization)
	}
	for _, path := range []string{"/api/" + key, "/api/agents?key=" + key, "/" + key, "/api-keys/" + key, "/login?next=/" + key, "/api-keys/" + key + "/revocation"} {
		c.Get(path)
	}
	c.PostJSON("/api/widget/token", `{"agentId":"`+key+`"}`, modelstest.Bearer(key))
	c.Send(http.MethodPost, "/api/widget/token", key, "Content-Type: "+key, modelstest.Bearer(key))
	for _, form := range []url.Values{
		{"email": {"nobody@example.com"}, "password": {key}}, {"email": {key}, "password": {"x"}}, {"email": {c.known["wrong password"]}, "password": {"x"}},
	} {
		c.Post("/login", form)
	}
}

// dump returns a dump of the database.
func (c *canary) dump(t *testing.T) string {
	t.Helper()
	return string(modelstest.Value(exec.Command(c.cluster.Program("pg_dump"), "--inserts", c.cluster.URL("postgres")).Output())(t))
}

// searchFor fails the test if text contains a secret in any encoding. text must contain the proofs,
// which show that it is the right text.
func (c *canary) searchFor(t *testing.T, where, text string, proofs ...string) {
	t.Helper()
	for _, proof := range proofs {
		if !strings.Contains(text, proof) {
			t.Errorf("%s does not contain %q, so the search proves nothing", where, proof)
		}
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
	return string(modelstest.Value(os.ReadFile(name))(t))
}
