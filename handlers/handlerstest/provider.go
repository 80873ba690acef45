package handlerstest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"portal/handlers/portal"
	"portal/handlers/portal/identity"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

// Provider is an OpenID Connect provider in a process of its own (npm's oidc-provider). Anyone can
// sign in there with any name.
type Provider struct {
	Config identity.Config

	child     *subprocess.Child
	redirects []string
	port      int // after the first start
}

// NewProvider returns a provider for the portals with these base URLs, which has not started.
func NewProvider(baseURLs ...string) *Provider {
	p := &Provider{Config: identity.Config{ClientID: "portal", ClientSecret: "the client secret of the tests", Name: "Acme ID"}}
	for _, base := range baseURLs {
		p.redirects = append(p.redirects, base+portal.CallbackPath)
	}
	return p
}

// StartProvider starts a [NewProvider]. It stops at the end of the test.
func StartProvider(t testing.TB, baseURLs ...string) *Provider {
	t.Helper()
	p := NewProvider(baseURLs...)
	p.Start(t)
	t.Cleanup(func() { p.Stop() })
	return p
}

// Start starts the provider without sessions, after [Provider.Stop] at the same address. It ends
// with this process.
func (p *Provider) Start(t testing.TB) {
	t.Helper()
	arguments := modelstest.Value(json.Marshal(map[string]any{
		"port": p.port, "clientId": p.Config.ClientID, "clientSecret": p.Config.ClientSecret, "redirectUris": p.redirects,
		"claims": p.Config.Claims,
	}))(t)
	command := exec.Command("node", "handlers/handlerstest/provider.mjs", string(arguments)) //nolint:gosec,noctx // our own script; it ends with this process
	command.Dir = modelstest.Value(subprocess.Above("go.mod"))(t)
	// Its warnings about a development setup are expected.
	out := modelstest.Value(command.StdoutPipe())(t)
	_, err := command.StdinPipe() // the provider ends when it closes
	modelstest.Must(t, err)
	if p.child, err = subprocess.Start(command); err != nil {
		t.Fatalf("start the OpenID Connect provider (it needs Node.js): %v", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.child.Kill()
		t.Fatalf("the OpenID Connect provider has not started (run npm ci): %v", err)
	}
	p.Config.Issuer = strings.TrimSpace(line)
	modelstest.Value(fmt.Sscanf(p.Config.Issuer, "http://127.0.0.1:%d", &p.port))(t)
}

// Stop stops the provider.
func (p *Provider) Stop() { p.child.Kill() }

// Person is a person's browser at the provider.
type Person struct {
	t       testing.TB
	browser *modelstest.Visitor
}

// NewPerson returns a browser without a session at the provider.
func NewPerson(t testing.TB) *Person {
	t.Helper()
	return &Person{t, modelstest.NewVisitor(t, "")}
}

var (
	formAction = regexp.MustCompile(`<form[^>]* action="([^"]*)"`)
	abortLink  = regexp.MustCompile(`href="([^"]*/abort)"`)
	promptName = regexp.MustCompile(`name="prompt" value="([a-z]+)"`)
)

// SignIn signs in at the address with this name, and returns the path and query of the address that
// the provider sends the browser back to.
func (p *Person) SignIn(address, name string) string {
	p.t.Helper()
	return p.pass(address, func(page string) (string, url.Values) {
		return match(formAction, page), url.Values{"prompt": {match(promptName, page)}, "login": {name}, "password": {"any"}}
	})
}

// Cancel cancels the sign-in at the address, and returns the same as SignIn.
func (p *Person) Cancel(address string) string {
	p.t.Helper()
	return p.pass(address, func(page string) (string, url.Values) { return match(abortLink, page), nil })
}

// pass follows redirects and calls answer for each page until the provider redirects to another
// site. For a page, answer returns the next URL, and the form to send there or nil.
func (p *Person) pass(address string, answer func(page string) (next string, form url.Values)) string {
	p.t.Helper()
	start := modelstest.Value(url.Parse(address))(p.t)
	var form url.Values
	for range 20 {
		at := modelstest.Value(start.Parse(address))(p.t)
		if at.Host != start.Host {
			return at.RequestURI()
		}
		method := http.MethodGet
		if form != nil {
			method = http.MethodPost
		}
		page := p.browser.Send(method, at.String(), form.Encode(), modelstest.FormType)
		address, form = page.Header.Get("Location"), nil
		if page.StatusCode == http.StatusOK {
			address, form = answer(page.Body)
		}
		if address == "" {
			p.t.Fatalf("the provider answers %d:\n%s", page.StatusCode, page.Body)
		}
	}
	p.t.Fatal("the provider does not redirect to the portal")
	return ""
}

func match(pattern *regexp.Regexp, text string) string {
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return found[1]
}
