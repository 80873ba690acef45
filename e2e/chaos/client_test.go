package chaos

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	// clientTimeout is the time limit of a request. A portal that is not frozen responds within
	// 2 s.
	clientTimeout = 4 * time.Second
	password      = "correct horse battery staple 7"
)

// client is a user with a browser without JavaScript, and a backend with the user's keys. One
// session is valid on all portals. A client is safe for concurrent use.
type client struct {
	*http.Client

	email   string
	history *history
	report  *report
	signIns sync.Mutex // held during a sign-in
}

func newClient(email string, h *history, r *report) *client {
	jar, _ := cookiejar.New(nil) // never fails
	return &client{email: email, history: h, report: r, Client: &http.Client{
		Jar: jar, Timeout: clientTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 16},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// instance is the address of a portal.
type instance struct {
	number int // from 0
	url    string
}

// reply is a response whose body has been read.
type reply struct {
	status   int
	location string
	body     string
}

// errUnavailable is a 503, a failed connection or an unexpected response.
var errUnavailable = errors.New("unavailable")

// errSignedOut is a redirect to the sign-in page. The portal did not act on the request.
var errSignedOut = errors.New("signed out")

// send sends a request and reads the response. It returns [errUnavailable] or [errSignedOut]
// unless the status is one of expected. Any other status but 503 is reported as a failure of the
// test.
func (c *client) send(request *http.Request, expected ...int) (reply, error) {
	response, err := c.Do(request)
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", errUnavailable, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", errUnavailable, err)
	}
	a := reply{response.StatusCode, response.Header.Get("Location"), string(body)}
	if a.status == http.StatusServiceUnavailable {
		return a, fmt.Errorf("%w: 503", errUnavailable)
	}
	if a.status == http.StatusSeeOther && strings.HasPrefix(a.location, "/login") {
		return a, errSignedOut
	}
	for _, status := range expected {
		if a.status == status {
			return a, nil
		}
	}
	c.report.failure(fmt.Sprintf("unexpected response: %s %s: %s %.300q", request.Method, request.URL.Path, response.Status, body))
	return a, fmt.Errorf("%w: status %d", errUnavailable, a.status)
}

// get requests a page. A 200 is always expected.
func (c *client) get(ctx context.Context, at instance, path string, expected ...int) (reply, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.url+path, http.NoBody)
	if err != nil {
		return reply{}, err
	}
	return c.send(request, append(expected, http.StatusOK)...)
}

// post sends a form.
func (c *client) post(ctx context.Context, at instance, path string, form url.Values, expected ...int) (reply, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return c.send(request, expected...)
}

// signIn signs in unless the session is still valid.
func (c *client) signIn(ctx context.Context, at instance) error {
	c.signIns.Lock()
	defer c.signIns.Unlock()
	if _, err := c.get(ctx, at, "/account"); !errors.Is(err, errSignedOut) {
		return err
	}
	a, err := c.post(ctx, at, "/login", url.Values{"email": {c.email}, "password": {password}}, http.StatusSeeOther)
	if errors.Is(err, errSignedOut) {
		err = fmt.Errorf("%w: the sign-in redirects to %s", errUnavailable, a.location)
	}
	return err
}

// key is an API key as far as the client knows it.
type key struct {
	label  string
	id     string // empty until a page showed it
	secret string // empty unless the portal revealed it
}

var (
	formID     = regexp.MustCompile(`name="form_id" value="([^"]+)"`)
	keySecret  = regexp.MustCompile(`value="(nas_[0-9A-Za-z]{36})"`)
	keyAddress = regexp.MustCompile(`/api-keys/([0-9a-f-]{36})/`)
	keyRow     = regexp.MustCompile(`(?s)<tr id="api-key-([0-9a-f-]{36})".*?<td[^>]*>(.*?)</td>`)
	tag        = regexp.MustCompile(`<[^>]*>`)
)

// page is the parsed page of keys.
type page struct {
	form string            // id of the form for a new key
	ids  map[string]string // of the active keys, by label
}

// list requests the page of keys. It records for each of the labels whether the page lists it.
func (c *client) list(ctx context.Context, at instance, labels []string) (page, error) {
	call := c.history.now()
	a, err := c.get(ctx, at, "/api-keys")
	if errors.Is(err, errSignedOut) {
		if err = c.signIn(ctx, at); err == nil {
			return page{}, errSignedOut
		}
	}
	if err != nil {
		c.history.add("", at.number, call, step{list, noResponse})
		return page{}, err
	}
	p := page{ids: map[string]string{}}
	for _, match := range keyRow.FindAllStringSubmatch(a.body, -1) {
		label := strings.TrimSpace(html.UnescapeString(tag.ReplaceAllString(match[2], "")))
		if _, twice := p.ids[label]; twice {
			c.report.failure(fmt.Sprintf("the list has the key %s twice", label))
		}
		p.ids[label] = match[1]
	}
	form := formID.FindStringSubmatch(a.body)
	if form == nil || len(p.ids) == 0 && !strings.Contains(a.body, "No API keys yet") {
		c.report.failure(fmt.Sprintf("this is not the page of keys: %.300q", a.body))
		return page{}, errUnavailable
	}
	p.form = form[1]
	for _, label := range labels {
		if _, shown := p.ids[label]; shown {
			c.history.add(label, at.number, call, step{list, present})
		} else {
			c.history.add(label, at.number, call, step{list, absent})
		}
	}
	return p, nil
}

// generate submits the form with the label of k. It sets the id and the secret of a created key.
func (c *client) generate(ctx context.Context, at instance, form string, k *key) outcome {
	call := c.history.now()
	a, err := c.post(ctx, at, "/api-keys", url.Values{"form_id": {form}, "label": {k.label}}, http.StatusOK, http.StatusConflict)
	s := step{generate, indeterminate}
	switch {
	case errors.Is(err, errSignedOut):
		s.outcome = noResponse
	case err != nil:
	case a.status == http.StatusConflict:
		s.outcome = exists
	default:
		secret, address := keySecret.FindStringSubmatch(a.body), keyAddress.FindStringSubmatch(a.body)
		if secret == nil || address == nil {
			c.report.failure("the response to a generated key has no key")
			break
		}
		k.secret, k.id, s.outcome = secret[1], address[1], created
	}
	c.history.add(k.label, at.number, call, s)
	return s.outcome
}

// revoke submits the confirmation of the key's revocation.
func (c *client) revoke(ctx context.Context, at instance, k *key) outcome {
	call := c.history.now()
	a, err := c.post(ctx, at, "/api-keys/"+k.id+"/revocation", nil, http.StatusSeeOther, http.StatusNotFound)
	s := step{revoke, confirmed}
	switch {
	case errors.Is(err, errSignedOut):
		s.outcome = noResponse
	case err != nil:
		s.outcome = indeterminate
	case a.status == http.StatusNotFound:
		s.outcome = unknown
	}
	c.history.add(k.label, at.number, call, s)
	return s.outcome
}

// check requests the page that says whether a revocation without a clear outcome took effect.
func (c *client) check(ctx context.Context, at instance, k *key) outcome {
	call := c.history.now()
	a, err := c.get(ctx, at, "/api-keys/"+k.id+"/revocation/outcome", http.StatusSeeOther, http.StatusNotFound)
	s := step{check, present}
	switch {
	case err != nil:
		s.outcome = noResponse
	case a.status == http.StatusSeeOther:
		s.outcome = confirmed
	case a.status == http.StatusNotFound:
		s.outcome = unknown
	}
	c.history.add(k.label, at.number, call, s)
	return s.outcome
}

// use calls the API with a key.
func (c *client) use(ctx context.Context, at instance, k *key) outcome {
	call := c.history.now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.url+"/api/agents", http.NoBody)
	if err != nil {
		return noResponse
	}
	request.Header.Set("Authorization", "Bearer "+k.secret)
	a, err := c.send(request, http.StatusOK, http.StatusUnauthorized)
	s := step{use, accepted}
	switch {
	case err != nil:
		s.outcome = noResponse
	case a.status == http.StatusOK:
	case strings.Contains(a.body, "has been revoked"):
		s.outcome = refused
	case strings.Contains(a.body, "is unknown"):
		s.outcome = unknown
	default:
		c.report.failure(fmt.Sprintf("a 401 with an unexpected message: %.300q", a.body))
		s.outcome = noResponse
	}
	c.history.add(k.label, at.number, call, s)
	return s.outcome
}
