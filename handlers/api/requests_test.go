package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"portal/models/modelstest"
)

// option changes a request.
type option func(*http.Request)

func bearer(secret string) option { return header("Authorization", "Bearer "+secret) }

func header(name, value string) option {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func body(contentType, content string) option {
	return func(r *http.Request) {
		r.Header.Set("Content-Type", contentType)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(content)), int64(len(content))
	}
}

func jsonBody(content string) option { return body("application/json", content) }

func tokenForm(token string) option {
	return body("application/x-www-form-urlencoded", url.Values{"token": {token}}.Encode())
}

// chunked sends the body without a Content-Length.
func chunked() option { return func(r *http.Request) { r.ContentLength = -1 } }

func (s *service) get(path string, options ...option) answer {
	s.t.Helper()
	return s.send(http.MethodGet, path, options...)
}

func (s *service) post(path string, options ...option) answer {
	s.t.Helper()
	return s.send(http.MethodPost, path, options...)
}

// send sends a request and checks the response against the OpenAPI document.
func (s *service) send(method, path string, options ...option) answer {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, http.NoBody)
	modelstest.Must(s.t, err)
	for _, set := range options {
		set(request)
	}
	response, err := http.DefaultClient.Do(request)
	modelstest.Must(s.t, err)
	defer func() { _ = response.Body.Close() }()
	content := modelstest.Value(io.ReadAll(response.Body))(s.t)
	a := answer{t: s.t, status: response.StatusCode, header: response.Header, body: content}
	a.followsDescription(request)
	return a
}

// answer is a response with its body.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// is fails the test unless the status is this one.
func (a answer) is(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// fails fails the test unless the body is exactly an error body with this code. A 401 or 403 must
// have the reason of the example with its message.
func (a answer) fails(status int, code string) answer {
	a.t.Helper()
	var fields map[string]string
	a.is(status).into(&fields)
	if len(fields) != 2 || fields["code"] != code || fields["error"] == "" {
		a.t.Fatalf("body %s, want the fields error and code, the code %s", a.body, code)
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden || code == "LIMIT_REACHED" {
		a.has("X-Error-Reason", exampleReason(a.t, fields["error"]))
	} else {
		a.lacks("X-Error-Reason")
	}
	return a
}

// says fails the test unless the message is that of an example of a response in the OpenAPI
// document.
func (a answer) says(response, example string) answer {
	a.t.Helper()
	var got struct{ Error string }
	a.into(&got)
	if want := exampleMessage(a.t, response, example); got.Error != want {
		a.t.Errorf("message %q, want %q", got.Error, want)
	}
	return a
}

// into decodes the body.
func (a answer) into(target any) {
	a.t.Helper()
	if err := json.Unmarshal(a.body, target); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
}

// isExactly fails the test unless the body is this text, with or without a newline behind it.
func (a answer) isExactly(want string) {
	a.t.Helper()
	if got := strings.TrimSpace(string(a.body)); got != want {
		a.t.Errorf("body %s, want %s", got, want)
	}
}

// has fails the test unless a header has exactly this value.
func (a answer) has(name, value string) {
	a.t.Helper()
	if got := a.header.Values(name); !slices.Equal(got, []string{value}) {
		a.t.Errorf("%s: %q, want %q", name, got, value)
	}
}

// lacks fails the test if there is one of these headers.
func (a answer) lacks(names ...string) {
	a.t.Helper()
	for _, name := range names {
		if got := a.header.Values(name); len(got) > 0 {
			a.t.Errorf("%s: %q, want none", name, got)
		}
	}
}
