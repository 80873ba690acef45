package portal_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"portal/handlers"
	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
)

func TestMain(m *testing.M) { modelstest.Main(m) }

// site is the whole server over a real database.
type site struct {
	store       *models.Store
	databaseURL string
	options     models.Options
	handler     http.Handler
	base        *url.URL
}

const (
	password = "correct horse battery staple"
	httpBase = "http://portal.test"
)

// onSite runs a test against a portal on SQLite, in parallel with other tests. Queries are tested
// on both databases with the store, and each page once on both with the handlers.
func onSite(t *testing.T, run func(t *testing.T, s *site)) {
	t.Helper()
	onSiteWith(t, models.Options{}, run)
}

func onSiteWith(t *testing.T, options models.Options, run func(t *testing.T, s *site)) {
	t.Helper()
	t.Parallel()
	run(t, newSite(t, modelstest.SQLiteURL(t), httpBase, options))
}

// sqliteSite returns a portal for a test that does not depend on the database.
func sqliteSite(t testing.TB, base string) *site {
	t.Helper()
	return newSite(t, modelstest.SQLiteURL(t), base, models.Options{})
}

func newSite(t testing.TB, databaseURL, base string, options models.Options) *site {
	t.Helper()
	s := &site{store: modelstest.Open(t, databaseURL, options), databaseURL: databaseURL, options: options}
	s.base = modelstest.Value(url.Parse(base))(t)
	return s.with(t, func(*handlers.Deps) {})
}

// with returns the portal over the same store with other dependencies.
func (s *site) with(t testing.TB, change func(*handlers.Deps)) *site {
	t.Helper()
	deps := handlerstest.Deps(t, s.store, s.base.String(), s.options.Now)
	deps.PasswordsOff = s.options.PasswordsOff
	change(&deps)
	other := *s
	other.handler = handlerstest.New(t, deps)
	return &other
}

// withSecrets returns the portal over the same store with these secrets.
func (s *site) withSecrets(t testing.TB, current, previous string) *site {
	t.Helper()
	return s.with(t, func(d *handlers.Deps) { d.CookieKeys = handlerstest.Keyring(t, current, previous).CookieKeys() })
}

var accounts atomic.Int64

// customer is a signed-in visitor.
type customer struct {
	*visitor
	email   string
	account people.Account
}

func (s *site) customer(t testing.TB) customer {
	t.Helper()
	c := customer{visitor: s.visitor(t), email: fmt.Sprintf("customer%d@example.com", accounts.Add(1))}
	c.account = modelstest.Value(s.store.Accounts.Create(context.Background(),
		people.NewAccount{Name: "Example Ltd", Email: c.email, Password: password}))(t)
	c.signIn(c.email, password).redirects("/api-keys")
	return c
}

// newKey generates a key in the store, without the portal.
func (c customer) newKey(label string, replaces uuid.UUID) (key keys.Key, secret string) {
	c.t.Helper()
	key, secret, err := c.store.Keys.Generate(context.Background(), c.account.ID,
		keys.NewKey{Label: label, FormID: uuid.New(), Replaces: replaces}, record.Operator())
	modelstest.Must(c.t, err)
	return key, secret
}

func (c customer) key(label string) keys.Key {
	c.t.Helper()
	key, _ := c.newKey(label, uuid.Nil)
	return key
}

func (c customer) use(secret string) {
	c.t.Helper()
	modelstest.Value(c.store.API.Authenticate(context.Background(), secret, keys.Source{}))(c.t)
}

func (c customer) revoke(key keys.Key) {
	c.t.Helper()
	modelstest.Value(c.store.Keys.Revoke(context.Background(), c.account.ID, key.ID, "", record.Operator()))(c.t)
}

// keys returns the active keys.
func (c customer) keys() []keys.Key {
	c.t.Helper()
	return modelstest.Value(c.store.Keys.Active(context.Background(), c.account.ID))(c.t)
}

func (c customer) agent(name string) agents.Agent {
	c.t.Helper()
	return modelstest.Value(c.store.Agents.Create(context.Background(), c.account.ID,
		agents.NewAgent{Name: name}, record.Operator()))(c.t)
}

// visitor is a browser on the site. With htmx it requests fragments.
type visitor struct {
	*site
	*modelstest.Visitor

	t       testing.TB
	htmx    bool
	headers []string // sent with every request
}

func (s *site) visitor(t testing.TB) *visitor {
	t.Helper()
	v := &visitor{site: s, t: t, Visitor: modelstest.NewVisitor(t, s.base.String())}
	v.Transport = roundTripper{s.handler}
	return v
}

// roundTripper sends requests to a handler without a network.
type roundTripper struct{ handler http.Handler }

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	request.RemoteAddr = "192.0.2.7:4711"
	recorder := httptest.NewRecorder()
	r.handler.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}

// fragments returns the visitor as a client that uses HTMX.
func (v *visitor) fragments() *visitor { return voice{htmx: true}.of(v.t, v) }

// voice is the kind of response that a visitor requests: a page, or with HTMX a fragment.
type voice struct{ htmx bool }

// bothVoices runs a test for pages and again for fragments.
func bothVoices(t *testing.T, run func(t *testing.T, as voice)) {
	t.Helper()
	t.Run("page", func(t *testing.T) { run(t, voice{}) })
	t.Run("fragment", func(t *testing.T) { run(t, voice{htmx: true}) })
}

// asCustomer runs a test for a new customer of a portal on each database, for pages and again for
// fragments. The visitor v is the customer's browser, which requests them.
func asCustomer(t *testing.T, options models.Options, run func(t *testing.T, c customer, v *visitor)) {
	t.Helper()
	onSiteWith(t, options, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			run(t, c, as.of(t, c.visitor))
		})
	})
}

// of returns the visitor with the same cookies, this voice and t.
func (as voice) of(t testing.TB, v *visitor) *visitor {
	asking := v.visitor(t)
	asking.Client, asking.headers, asking.htmx = v.Client, v.headers, as.htmx
	return asking
}

// like returns the visitor with the same cookies and the voice of another.
func (v *visitor) like(other *visitor) *visitor { return voice{other.htmx}.of(other.t, v) }

func (v *visitor) get(path string) answer {
	v.t.Helper()
	return v.send(http.MethodGet, path, "")
}

func (v *visitor) post(path string, fields url.Values) answer {
	v.t.Helper()
	return v.send(http.MethodPost, path, fields.Encode(), modelstest.FormType)
}

func (v *visitor) send(method, path, body string, headers ...string) answer {
	v.t.Helper()
	headers = append(headers, v.headers...)
	if v.htmx {
		headers = append(headers, "HX-Request: true")
	}
	r := v.Send(method, path, body, headers...)
	return answer{element: parse(v.t, r.Body), status: r.StatusCode, header: r.Header, body: r.Body}
}

func (v *visitor) signIn(email, password string) answer {
	v.t.Helper()
	return v.post("/login", url.Values{"email": {email}, "password": {password}})
}

// copied returns another browser with the same cookies.
func (v *visitor) copied() *visitor { return v.copiedTo(v.site) }

func (v *visitor) copiedTo(s *site) *visitor {
	other := s.visitor(v.t)
	other.Jar.SetCookies(s.base, v.Jar.Cookies(v.base))
	return other
}

// sessionCookie returns the value of the session cookie, or "" if there is none.
func (v *visitor) sessionCookie() string {
	for _, cookie := range v.Jar.Cookies(v.base) {
		if strings.Contains(cookie.Name, "session") {
			return cookie.Value
		}
	}
	return ""
}

// answer is a response and its HTML.
type answer struct {
	element
	status int
	header http.Header
	body   string
}

// is checks the status.
func (a answer) is(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("the status is %d, want %d:\n%s", a.status, status, a.text())
	}
	if got := a.header.Get("Cache-Control"); got != "no-store" {
		a.t.Errorf("Cache-Control is %q, want no-store", got)
	}
	return a
}

// headed checks the value of a header.
func (a answer) headed(name, value string) answer {
	a.t.Helper()
	if got := a.header.Get(name); got != value {
		a.t.Errorf("%s is %q, want %q", name, got, value)
	}
	return a
}

// saysWhenToRetry checks that the response says when to try again.
func (a answer) saysWhenToRetry() {
	a.t.Helper()
	if a.header.Get("Retry-After") == "" {
		a.t.Error("there is no Retry-After")
	}
}

// redirects checks the location of the redirect, for a browser or HTMX, without the mark of a
// sign-in.
func (a answer) redirects(location string) {
	a.t.Helper()
	got := a.header.Get("Location")
	if htmx := a.header.Get("HX-Redirect"); htmx != "" {
		a.is(http.StatusOK)
		got = htmx
	} else {
		a.is(http.StatusSeeOther)
	}
	if strings.NewReplacer("?signed-in=yes&", "?", "?signed-in=yes", "", "&signed-in=yes", "").Replace(got) != location {
		a.t.Errorf("it leads to %q, want %q", got, location)
	}
}

// formID returns the id in the form of the response.
func (a answer) formID() string {
	a.t.Helper()
	return a.hidden("form_id")
}

// hidden returns the value of the field with the name.
func (a answer) hidden(name string) string {
	a.t.Helper()
	field, ok := a.named(name)
	if !ok {
		a.t.Fatalf("there is no field %q", name)
	}
	return field.attr("value")
}
