package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/e2e/pages"
	"portal/models"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
	"portal/models/people"
	"portal/models/record"
)

// The time limits of a start and a stop. They are long because only failures wait for them.
const (
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
)

// process is one running portal.
type process struct {
	*subprocess.Child

	settings settings
	URL      string
	log      *modelstest.LogBuffer
}

// settings are the configuration of a portal.
type settings struct {
	binary      string
	databaseURL string
	secret      string
	address     string   // listen address; empty: a free port of the loopback interface
	baseURL     string   // public URL if it is not the listen address
	extra       []string // more environment variables
}

func (s settings) environment() []string {
	env := []string{"DATABASE_URL=" + s.databaseURL, "PORTAL_SECRET=" + s.secret, "PORTAL_ADDR=" + s.address}
	if s.baseURL != "" {
		env = append(env, "PORTAL_BASE_URL="+s.baseURL)
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	return append(env, s.extra...)
}

// startPortal starts a portal with a secret of its own, unless the settings have one, and returns
// when it is ready. It is killed at the end of the run if it still runs.
func startPortal(s settings) (p *process, err error) {
	if s.binary, err = builtPortal(); err != nil {
		return nil, err
	}
	if s.secret == "" {
		s.secret = newSecret()
	}
	if s.address == "" {
		if s.address, err = subprocess.FreeAddress(); err != nil {
			return nil, err
		}
	}
	p = &process{settings: s, URL: "http://" + s.address, log: &modelstest.LogBuffer{}}
	if err := p.start(); err != nil {
		return nil, err
	}
	atEnd(func() { p.Kill() })
	ending.Lock()
	defer ending.Unlock()
	ending.processes = append(ending.processes, p)
	return p, nil
}

// start starts the portal and waits until it is ready. A stopped portal gets its old address.
func (p *process) start() (err error) {
	command := exec.Command(p.settings.binary, "serve")
	command.Env = p.settings.environment()
	command.Stdout, command.Stderr = p.log, p.log
	if p.Child, err = subprocess.Start(command); err != nil {
		return fmt.Errorf("start the portal: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	err = p.AwaitReady(ctx, func(ctx context.Context) error { return subprocess.CheckOK(ctx, p.URL+"/readyz") })
	if err != nil {
		p.Kill()
		return fmt.Errorf("start the portal: %w\n%s", err, p.log)
	}
	return nil
}

// newSecret returns a random password or secret of a portal.
func newSecret() string { return rand.Text() + rand.Text() }

// stop stops the portal with SIGTERM. The test fails unless it exits with status 0 in time.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.Stop(stopTimeout); err != nil {
		t.Errorf("stop the portal: %v\n%s", err, p.log)
	}
}

// resume starts a stopped portal again.
func (p *process) resume(t *testing.T) {
	t.Helper()
	modelstest.Must(t, p.start())
}

// operator runs one of the portal's other commands on the same database. It returns the standard
// output, and appends all output to log, which may be nil.
func (p *process) operator(t *testing.T, log *bytes.Buffer, input string, arguments ...string) string {
	t.Helper()
	command := exec.Command(p.settings.binary, arguments...)
	command.Env = p.settings.environment()
	command.Stdin = strings.NewReader(input + "\n")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if log != nil {
		log.Write(output)
		log.Write(stderr.Bytes())
	}
	if err != nil {
		t.Fatalf("portal %s: %v: %s", strings.Join(arguments, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(output))
}

// sharedPortal returns the SQLite portal that tests share. Each test uses its own account.
func sharedPortal(t *testing.T) *process {
	t.Helper()
	return modelstest.Value(portalOnSQLite())(t)
}

// ownPortal starts a portal for this test. The test fails if the portal does not stop without an
// error.
func ownPortal(t *testing.T, s settings) *process {
	t.Helper()
	if s.databaseURL == "" {
		s.databaseURL = "sqlite:" + filepath.Join(t.TempDir(), "portal.db")
	}
	p := modelstest.Value(startPortal(s))(t)
	t.Cleanup(func() { p.stop(t) })
	return p
}

// inBothModes runs the same test in a browser with JavaScript on PostgreSQL, and in one without on
// SQLite.
func inBothModes(t *testing.T, test func(t *testing.T, p *process, mode profile)) {
	t.Helper()
	t.Parallel()
	t.Run("with JavaScript", func(t *testing.T) {
		t.Parallel()
		test(t, modelstest.Value(portalOnPostgres())(t), withJavaScript)
	})
	t.Run("without JavaScript", func(t *testing.T) {
		t.Parallel()
		test(t, sharedPortal(t), withoutJavaScript)
	})
}

// customer is an account of the portal with its first user.
type customer struct {
	people.Account
	*modelstest.Visitor // a browser with a session, for requests beside the page

	store    *models.Store
	email    string
	password string
}

var customers atomic.Int64

// newCustomer creates an account. Its password is cheap to verify.
func (p *process) newCustomer(t *testing.T) customer {
	t.Helper()
	n := customers.Add(1)
	c := customer{
		store: modelstest.Open(t, p.settings.databaseURL, models.Options{}), Visitor: modelstest.NewVisitor(t, p.URL),
		email: fmt.Sprintf("customer%03d@example.com", n), password: newSecret(),
	}
	owner := people.NewAccount{Name: fmt.Sprintf("Customer %03d", n), Email: c.email, Password: c.password}
	c.Account = modelstest.Value(c.store.Accounts.Create(t.Context(), owner))(t)
	return c
}

// signedIn creates a customer who has signed in by HTTP, because other tests cover the sign-in
// page.
func (p *process) signedIn(t *testing.T) customer {
	t.Helper()
	c := p.newCustomer(t)
	c.SignIn(c.email, c.password)
	return c
}

// newAgent creates an agent in the database and returns its id.
func (c customer) newAgent(t *testing.T, name string) string {
	t.Helper()
	return modelstest.Value(c.store.Agents.Create(t.Context(), c.ID, agents.NewAgent{Name: name}, record.Operator()))(t).ID.String()
}

func (c customer) removeAgent(t *testing.T, id string) {
	t.Helper()
	modelstest.Value(c.store.Agents.Remove(t.Context(), c.ID, uuid.MustParse(id), record.Operator()))(t)
}

// newKey generates a key in the database and returns its value.
func (c customer) newKey(t *testing.T, label string) string {
	t.Helper()
	_, secret, err := c.store.Keys.Generate(t.Context(), c.ID, keys.NewKey{Label: label, FormID: uuid.New()}, record.Operator())
	modelstest.Must(t, err)
	return secret
}

// newKeys generates n keys with labels from format, which has one %d.
func (c customer) newKeys(t *testing.T, n int, format string) {
	t.Helper()
	for i := range n {
		c.newKey(t, fmt.Sprintf(format, i+1))
	}
}

// signIn signs in on the sign-in page and waits for the API keys page.
func (c customer) signIn(b *pages.Tab) pages.Keys {
	pages.OpenLogin(b).SignIn(c.email, c.password)
	return pages.ExpectKeys(b)
}

// startSignedIn creates a customer and opens a browser profile with a session.
func startSignedIn(t *testing.T, p *process, profiles ...profile) (customer, *visitor) {
	t.Helper()
	c := p.signedIn(t)
	return c, c.visit(t, profiles...)
}

// visit opens a browser profile with the customer's session.
func (c customer) visit(t *testing.T, profiles ...profile) *visitor {
	t.Helper()
	v := visit(t, c.URL, profiles...)
	v.setCookies(t, c.Jar.Cookies(modelstest.Value(http.NewRequest(http.MethodGet, c.URL, http.NoBody))(t).URL))
	return v
}

var tag = regexp.MustCompile(`<[^>]*>`)

// example returns the code of an example on the page at path.
func (c customer) example(path, name string) string {
	code := c.Get(path).Find(`(?s)aria-label="` + regexp.QuoteMeta(name) + ` example"><code[^>]*>(.*?)</code>`)
	return html.UnescapeString(tag.ReplaceAllString(code, ""))
}

// requestToken requests a widget token for an agent with an API key, as the customer's backend
// does.
func (c customer) requestToken(key, agentID string) modelstest.Response {
	return c.PostJSON("/api/widget/token", `{"agentId":"`+agentID+`"}`, modelstest.Bearer(key))
}

// expectServed checks that the key works, and returns the token.
func (c customer) expectServed(t *testing.T, key, agentID string) (token string) {
	t.Helper()
	return c.requestToken(key, agentID).Is(http.StatusOK).Find(`"access_token":"([^"]+)"`)
}

// expectRefused checks that the API refuses the key.
func (c customer) expectRefused(t *testing.T, key, agentID string) {
	t.Helper()
	c.requestToken(key, agentID).Is(http.StatusUnauthorized).Find(`"code":"(UNAUTHORIZED)"`)
}
