package modelstest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Visitor is a browser without JavaScript, or another HTTP client, on one site. It keeps cookies,
// follows no redirects, and ends the test if it gets no response.
type Visitor struct {
	*http.Client

	URL string // of the site
	t   testing.TB
}

// NewVisitor returns a visitor of the site without cookies.
func NewVisitor(t testing.TB, site string) *Visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	Must(t, err)
	return &Visitor{t: t, URL: site, Client: &http.Client{
		Jar: jar, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// At returns the same visitor on another site with the same host, such as another instance.
func (v *Visitor) At(site string) *Visitor { return &Visitor{Client: v.Client, URL: site, t: v.t} }

// Bearer returns the header of a request with an API key or another token.
func Bearer(token string) string { return "Authorization: Bearer " + token }

// FormType is the header of a request that sends a form.
const FormType = "Content-Type: application/x-www-form-urlencoded"

// Response is a response whose body has been read.
type Response struct {
	*http.Response

	Body string
	t    testing.TB
}

// Send sends a request with these headers, each "Name: value". A header without a value is left
// out.
func (v *Visitor) Send(method, path, body string, headers ...string) Response {
	v.t.Helper()
	response, err := v.Try(v.t.Context(), method, path, body, headers...)
	Must(v.t, err)
	return response
}

// Try is [Visitor.Send] that returns an error if there is no whole response.
func (v *Visitor) Try(ctx context.Context, method, path, body string, headers ...string) (Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, v.URL+path, strings.NewReader(body))
	if err != nil {
		return Response{}, err
	}
	for _, header := range headers {
		if name, value, _ := strings.Cut(header, ": "); value != "" {
			request.Header.Add(name, value)
		}
	}
	response, err := v.Do(request)
	if err != nil {
		return Response{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return Response{Response: response, Body: string(text), t: v.t}, err
}

// Get requests a page.
func (v *Visitor) Get(path string, headers ...string) Response {
	v.t.Helper()
	return v.Send(http.MethodGet, path, "", headers...)
}

// Post sends a form.
func (v *Visitor) Post(path string, form url.Values, headers ...string) Response {
	v.t.Helper()
	return v.Send(http.MethodPost, path, form.Encode(), append(headers, FormType)...)
}

// PostJSON sends JSON.
func (v *Visitor) PostJSON(path, body string, headers ...string) Response {
	v.t.Helper()
	return v.Send(http.MethodPost, path, body, append(headers, "Content-Type: application/json")...)
}

// Is ends the test unless the response has this status, and returns the response.
func (r Response) Is(status int) Response {
	r.t.Helper()
	if r.StatusCode != status {
		r.t.Fatalf("%s %s: status %d, want %d: %s", r.Request.Method, r.Request.URL.Path, r.StatusCode, status, r.Body)
	}
	return r
}

// Find returns the text that the pattern's group matches. Unless the pattern matches once, Find
// ends the test.
func (r Response) Find(pattern string) string {
	r.t.Helper()
	found := regexp.MustCompile(pattern).FindAllStringSubmatch(r.Body, -1)
	if len(found) != 1 {
		r.t.Fatalf("%s: want one %s, got %q in %s", r.Request.URL.Path, pattern, found, r.Body)
	}
	return found[0][1]
}

// JSON decodes the body.
func (r Response) JSON(into any) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.Body), into); err != nil {
		r.t.Fatalf("%s: %v in %s", r.Request.URL.Path, err, r.Body)
	}
}

// SignIn signs in with the password.
func (v *Visitor) SignIn(email, password string) {
	v.t.Helper()
	v.Post("/login", url.Values{"email": {email}, "password": {password}}).Is(http.StatusSeeOther)
}

// FormID returns the id of the form on the page at path.
func (v *Visitor) FormID(path string) string {
	v.t.Helper()
	return v.Get(path).Is(http.StatusOK).Find(`name="form_id" value="([^"]+)"`)
}

// Generate generates a key on the page of keys and returns its value.
func (v *Visitor) Generate(label string) (secret string) {
	v.t.Helper()
	form := url.Values{"label": {label}, "form_id": {v.FormID("/api-keys")}}
	return v.Post("/api-keys", form).Is(http.StatusOK).Find(`\b(nas_[0-9A-Za-z]{36})\b`)
}
