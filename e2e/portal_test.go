package e2e

import (
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portal/e2e/pages"
)

// sharedPortal returns the SQLite portal that tests share. Each test uses its own account.
func sharedPortal(t *testing.T) *process {
	t.Helper()
	p, err := theRun.getPortal()
	if err != nil {
		t.Fatalf("start the portal: %v", err)
	}
	return p
}

// sharedPair returns two instances of the portal on one PostgreSQL database.
func sharedPair(t *testing.T) [2]*process {
	t.Helper()
	pair, err := theRun.getPair()
	if err != nil {
		t.Fatalf("start two portals: %v", err)
	}
	return pair
}

// ownPortal starts a portal for this test. The test fails if the portal does not stop without an
// error.
func ownPortal(t *testing.T, s settings) *process {
	t.Helper()
	if s.databaseURL == "" {
		s.databaseURL = "sqlite:" + filepath.Join(t.TempDir(), "portal.db")
	}
	p, err := theRun.start(s)
	if err != nil {
		t.Fatalf("start the portal: %v", err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// onEachDatabase runs the same test against a portal on SQLite and one on PostgreSQL.
func onEachDatabase(t *testing.T, test func(t *testing.T, p *process)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, sharedPortal(t))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, sharedPair(t)[0])
	})
}

// inBothModes runs the same test in a browser with JavaScript and in one without.
func inBothModes(t *testing.T, test func(t *testing.T, mode profile)) {
	t.Helper()
	t.Run("with JavaScript", func(t *testing.T) {
		t.Parallel()
		test(t, withJavaScript)
	})
	t.Run("without JavaScript", func(t *testing.T) {
		t.Parallel()
		test(t, withoutJavaScript)
	})
}

// customer is an account of the portal with its one user.
type customer struct {
	at        *process
	account   string // name
	accountID string
	email     string
	password  string
}

var customers atomic.Int64

// newCustomer creates an account with the operator's command.
func (p *process) newCustomer(t *testing.T) customer {
	t.Helper()
	n := customers.Add(1)
	c := customer{at: p, account: "Customer " + pad(n), email: "customer" + pad(n) + "@example.com", password: randomHex(12)}
	var err error
	if c.accountID, err = p.operator(c.password, "account", "create", "--name", c.account, "--email", c.email); err != nil {
		t.Fatal(err)
	}
	return c
}

// newAgent creates an agent with the operator's command and returns its id.
func (c customer) newAgent(t *testing.T, name string) string {
	t.Helper()
	id, err := c.at.operator("", "agent", "create", "--account", c.email, "--name", name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// signIn signs in on the sign-in page and waits for the API keys page.
func (c customer) signIn(b *pages.Tab) pages.Keys {
	pages.OpenLogin(b).SignIn(c.email, c.password)
	return pages.ExpectKeys(b)
}

// startSignedIn creates a customer and opens the API keys page in a new browser profile with a
// session. It signs in by HTTP, because other tests cover the sign-in page.
func startSignedIn(t *testing.T, p *process, profiles ...profile) (customer, *visitor, pages.Keys) {
	t.Helper()
	c := p.newCustomer(t)
	v := visit(t, p.URL, profiles...)
	v.setCookies(t, c.session(t))
	return c, v, pages.OpenKeys(v.Tab)
}

// session signs in by HTTP and returns the session's cookies.
func (c customer) session(t *testing.T) []*http.Cookie {
	t.Helper()
	form := url.Values{"email": {c.email}, "password": {c.password}}
	status, cookies := postForm(t, c.at.URL+"/login", form, nil)
	if status != http.StatusSeeOther || len(cookies) == 0 {
		t.Fatalf("signing in by HTTP returned %d with %d cookies", status, len(cookies))
	}
	return cookies
}

var formClient = &http.Client{
	Timeout:       time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// postForm sends a form by HTTP, without a browser, and follows no redirect.
func postForm(t *testing.T, address string, form url.Values, sent []*http.Cookie) (status int, got []*http.Cookie) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, cookie := range sent {
		request.AddCookie(cookie)
	}
	response, err := formClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Cookies()
}

// clipboard guards the clipboard, which all profiles of the browser share.
var clipboard sync.Mutex

// holdClipboard locks the clipboard until the test ends.
func holdClipboard(t *testing.T) {
	t.Helper()
	clipboard.Lock()
	t.Cleanup(clipboard.Unlock)
}
