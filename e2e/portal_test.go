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

// sharedPortal is the one portal, on SQLite, of all tests that need none of their own. Tests keep apart by account.
func sharedPortal(t *testing.T) *process {
	t.Helper()
	p, err := theRun.getPortal()
	if err != nil {
		t.Fatalf("no portal to test: %v", err)
	}
	return p
}

// sharedPair is two instances of the portal on one PostgreSQL database.
func sharedPair(t *testing.T) [2]*process {
	t.Helper()
	pair, err := theRun.getPair()
	if err != nil {
		t.Fatalf("no portals to test: %v", err)
	}
	return pair
}

// ownPortal is a portal for this test alone, which must also stop as it promises.
func ownPortal(t *testing.T, s settings) *process {
	t.Helper()
	if s.databaseURL == "" {
		s.databaseURL = "sqlite:" + filepath.Join(t.TempDir(), "portal.db")
	}
	p, err := theRun.start(s)
	if err != nil {
		t.Fatalf("no portal to test: %v", err)
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
	at       *process
	email    string
	password string
}

var customers atomic.Int64

// newCustomer opens an account the way operators do.
func (p *process) newCustomer(t *testing.T) customer {
	t.Helper()
	n := customers.Add(1)
	c := customer{at: p, email: "customer" + pad(n) + "@example.com", password: randomHex(12)}
	if _, err := p.operator(c.password, "account", "create", "--name", "Customer "+pad(n), "--email", c.email); err != nil {
		t.Fatal(err)
	}
	return c
}

// newAgent makes an agent the way operators do, and returns its id.
func (c customer) newAgent(t *testing.T, name string) string {
	t.Helper()
	id, err := c.at.operator("", "agent", "create", "--account", c.email, "--name", name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// signIn brings the visitor to the page of API keys, by the sign-in page.
func (c customer) signIn(b *pages.Tab) pages.Keys {
	pages.OpenLogin(b).SignIn(c.email, c.password)
	return pages.ExpectKeys(b)
}

// arrive is how most tests begin: a new customer on the page of API keys, already signed in. The sign-in page has
// tests of its own; all others take its result without drawing it.
func arrive(t *testing.T, p *process, profiles ...profile) (customer, *visitor, pages.Keys) {
	t.Helper()
	c := p.newCustomer(t)
	v := visit(t, p.URL, profiles...)
	v.keep(t, c.session(t))
	return c, v, pages.OpenKeys(v.Tab)
}

// session signs in and returns the cookies of it.
func (c customer) session(t *testing.T) []*http.Cookie {
	t.Helper()
	form := url.Values{"email": {c.email}, "password": {c.password}}
	status, cookies := postForm(t, c.at.URL+"/login", form, nil)
	if status != http.StatusSeeOther || len(cookies) == 0 {
		t.Fatalf("signing in by HTTP answered %d with %d cookies", status, len(cookies))
	}
	return cookies
}

var formClient = &http.Client{
	Timeout:       10 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// postForm sends a form as a browser would, without drawing what comes of it.
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

// clipboard is one for the whole browser, whatever the profile.
var clipboard sync.Mutex

// holdClipboard keeps other tests from the clipboard until this one ends.
func holdClipboard(t *testing.T) {
	t.Helper()
	clipboard.Lock()
	t.Cleanup(clipboard.Unlock)
}
