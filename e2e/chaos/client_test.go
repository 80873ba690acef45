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
	// clientTimeout is how long a client waits for an answer. Portals promise one within 2 s,
	// except while they are frozen.
	clientTimeout = 4 * time.Second
	password      = "correct horse battery staple 7"
)

// client is a user with a browser without JavaScript, and a backend that uses the user's keys. It
// reaches every portal, with one session. It is safe for concurrent use.
type client struct {
	*http.Client

	email   string
	history *history
	report  *report
	signIns sync.Mutex // one at a time
}

func newClient(email string, h *history, r *report) *client {
	jar, _ := cookiejar.New(nil) // never errs
	return &client{email: email, history: h, report: r, Client: &http.Client{
		Jar: jar, Timeout: clientTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 16},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// instance is a portal that a client calls.
type instance struct {
	number int // from 0
	url    string
}

// answer is a response that has been read.
type answer struct {
	status   int
	location string
	body     string
}

// errNoAnswer stands for a 503 and for a request whose connection failed.
var errNoAnswer = errors.New("no answer")

// errSignedOut means that the portal has led to the sign-in page and done nothing.
var errSignedOut = errors.New("signed out")

// send sends a request and reads the answer. It returns [errNoAnswer], [errSignedOut], or the
// answer if its status is one of expected. Any other answer breaks the contract, and is reported.
func (c *client) send(request *http.Request, expected ...int) (answer, error) {
	response, err := c.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	a := answer{response.StatusCode, response.Header.Get("Location"), string(body)}
	if a.status == http.StatusServiceUnavailable {
		return a, fmt.Errorf("%w: 503", errNoAnswer)
	}
	if a.status == http.StatusSeeOther && strings.HasPrefix(a.location, "/login") {
		return a, errSignedOut
	}
	for _, status := range expected {
		if a.status == status {
			return a, nil
		}
	}
	c.report.problem(fmt.Sprintf("outside the contract: %s %s: %s %.300q", request.Method, request.URL.Path, response.Status, body))
	return a, fmt.Errorf("%w: status %d", errNoAnswer, a.status)
}

// get asks for a page.
func (c *client) get(ctx context.Context, at instance, path string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.url+path, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	return c.send(request, http.StatusOK)
}

// post sends a form.
func (c *client) post(ctx context.Context, at instance, path string, form url.Values, expected ...int) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return c.send(request, expected...)
}

// signIn signs in. A client whose session has ended calls it again.
func (c *client) signIn(ctx context.Context, at instance) error {
	c.signIns.Lock()
	defer c.signIns.Unlock()
	if _, err := c.get(ctx, at, "/account"); !errors.Is(err, errSignedOut) {
		return err
	}
	a, err := c.post(ctx, at, "/login", url.Values{"email": {c.email}, "password": {password}}, http.StatusSeeOther)
	if errors.Is(err, errSignedOut) {
		err = fmt.Errorf("%w: sign-in led to %s", errNoAnswer, a.location)
	}
	return err
}

// key is a key as its client knows it.
type key struct {
	label  string
	id     string // empty until a page has shown it
	secret string // empty unless the portal has shown it
}

var (
	formID     = regexp.MustCompile(`name="form_id" value="([^"]+)"`)
	keySecret  = regexp.MustCompile(`value="(nas_[0-9A-Za-z]{36})"`)
	keyAddress = regexp.MustCompile(`/api-keys/([0-9a-f-]{36})/`)
	keyRow     = regexp.MustCompile(`(?s)<tr id="api-key-([0-9a-f-]{36})".*?<td[^>]*>(.*?)</td>`)
	tag        = regexp.MustCompile(`<[^>]*>`)
)

// page is the list of keys with its form.
type page struct {
	form string            // the id of the form
	ids  map[string]string // of the active keys, by label
}

// list opens the page of keys. It records for each of these labels whether the page shows it.
func (c *client) list(ctx context.Context, at instance, labels []string) (page, error) {
	call := c.history.now()
	a, err := c.get(ctx, at, "/api-keys")
	if errors.Is(err, errSignedOut) {
		if err = c.signIn(ctx, at); err == nil {
			return page{}, errSignedOut
		}
	}
	if err != nil {
		c.history.add("", at.number, call, step{list, nothing})
		return page{}, err
	}
	p := page{ids: map[string]string{}}
	for _, match := range keyRow.FindAllStringSubmatch(a.body, -1) {
		label := strings.TrimSpace(html.UnescapeString(tag.ReplaceAllString(match[2], "")))
		if _, twice := p.ids[label]; twice {
			c.report.problem(fmt.Sprintf("the list shows the key %s twice", label))
		}
		p.ids[label] = match[1]
	}
	form := formID.FindStringSubmatch(a.body)
	if form == nil || len(p.ids) == 0 && !strings.Contains(a.body, "No API keys yet") {
		c.report.problem(fmt.Sprintf("not a page of keys: %.300q", a.body))
		return page{}, errNoAnswer
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

// generate sends the form with this id and a label of its own.
func (c *client) generate(ctx context.Context, at instance, form string, k *key) outcome {
	call := c.history.now()
	a, err := c.post(ctx, at, "/api-keys", url.Values{"form_id": {form}, "label": {k.label}}, http.StatusOK, http.StatusConflict)
	s := step{generate, open}
	switch {
	case errors.Is(err, errSignedOut):
		s.outcome = nothing
	case err != nil:
	case a.status == http.StatusConflict:
		s.outcome = exists
	default:
		secret, address := keySecret.FindStringSubmatch(a.body), keyAddress.FindStringSubmatch(a.body)
		if secret == nil || address == nil {
			c.report.problem("a page after generation without a key")
			break
		}
		k.secret, k.id, s.outcome = secret[1], address[1], made
	}
	c.history.add(k.label, at.number, call, s)
	return s.outcome
}

// revoke confirms the revocation of a key.
func (c *client) revoke(ctx context.Context, at instance, k *key) outcome {
	call := c.history.now()
	a, err := c.post(ctx, at, "/api-keys/"+k.id+"/revocation", nil, http.StatusSeeOther, http.StatusNotFound)
	s := step{revoke, done}
	switch {
	case errors.Is(err, errSignedOut):
		s.outcome = nothing
	case err != nil:
		s.outcome = open
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
		return nothing
	}
	request.Header.Set("Authorization", "Bearer "+k.secret)
	a, err := c.send(request, http.StatusOK, http.StatusUnauthorized)
	s := step{use, accepted}
	switch {
	case err != nil:
		s.outcome = nothing
	case a.status == http.StatusOK:
	case strings.Contains(a.body, "has been revoked"):
		s.outcome = refused
	case strings.Contains(a.body, "is unknown"):
		s.outcome = unknown
	default:
		c.report.problem(fmt.Sprintf("401 for neither an unknown nor a revoked key: %.300q", a.body))
		s.outcome = nothing
	}
	c.history.add(k.label, at.number, call, s)
	return s.outcome
}
