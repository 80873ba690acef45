package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"testing"

	"portal/models/modelstest"
)

// visitor is a browser without JavaScript.
type visitor struct {
	browser *http.Client
	t       *testing.T
}

// page is a page in the browser.
type page struct {
	path, text string
}

func newVisitor(t *testing.T) visitor {
	t.Helper()
	jar, err := cookiejar.New(nil) // cookies are shared by all ports of a host
	modelstest.Must(t, err)
	return visitor{&http.Client{Jar: jar}, t}
}

func (v visitor) see(response *http.Response, err error) page {
	v.t.Helper()
	modelstest.Must(v.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		v.t.Fatalf("%s: %s: %s, error %v", response.Request.URL, response.Status, text, err)
	}
	return page{response.Request.URL.Path, string(text)}
}

func (v visitor) get(i *instance, path string) page {
	v.t.Helper()
	return v.see(v.browser.Get(i.URL + path))
}

func (v visitor) post(i *instance, path string, form url.Values) page {
	v.t.Helper()
	return v.see(v.browser.PostForm(i.URL+path, form))
}

// find returns the match of the pattern's group, which must match once.
func (v visitor) find(s page, pattern string) string {
	v.t.Helper()
	found := regexp.MustCompile(pattern).FindAllStringSubmatch(s.text, -1)
	if len(found) != 1 {
		v.t.Fatalf("want one %s at %s, got %v", pattern, s.path, found)
	}
	return found[0][1]
}

func (v visitor) signIn(i *instance, email, password string) {
	v.t.Helper()
	if s := v.post(i, "/login", url.Values{"email": {email}, "password": {password}}); s.path != "/api-keys" {
		v.t.Fatalf("signing in redirects to %s: %s", s.path, s.text)
	}
}

func (v visitor) signOut(i *instance) {
	v.t.Helper()
	v.post(i, "/logout", nil)
}

// generate generates a key and returns its value.
func (v visitor) generate(i *instance, label string) string {
	v.t.Helper()
	form := v.find(v.get(i, "/api-keys"), `name="form_id" value="([^"]+)"`)
	return v.find(v.post(i, "/api-keys", url.Values{"label": {label}, "form_id": {form}}), `\b(nas_[0-9A-Za-z]{36})\b`)
}

// revokeOnly revokes the only active key of the account.
func (v visitor) revokeOnly(i *instance) {
	v.t.Helper()
	v.post(i, v.find(v.get(i, "/api-keys"), `action="(/api-keys/[0-9a-f-]{36}/revocation)"`), nil)
}
