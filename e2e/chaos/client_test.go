package chaos

import (
	"context"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"portal/handlers/handlerstest"
	"portal/models/modelstest"
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
	portals []*modelstest.Visitor // with the same cookies
	email   string
	issuer  *handlerstest.Issuer // of the tokens of workloads
	report  *report
	signIns sync.Mutex // held during a sign-in
}

func newClient(t testing.TB, email string, urls []string, issuer *handlerstest.Issuer, r *report) *client {
	t.Helper()
	visitor := modelstest.NewVisitor(t, "")
	visitor.Timeout, visitor.Transport = clientTimeout, &http.Transport{MaxIdleConnsPerHost: 16}
	c := &client{email: email, issuer: issuer, report: r}
	for _, at := range urls {
		c.portals = append(c.portals, visitor.At(at))
	}
	return c
}

// errUnavailable is a 503, a failed connection or an unexpected response.
var errUnavailable = errors.New("unavailable")

// errSignedOut is a redirect to the sign-in page. The portal did not act on the request.
var errSignedOut = errors.New("signed out")

// get requests a page.
func (c *client) get(ctx context.Context, at int, path string) (string, error) {
	response, err := c.send(ctx, at, http.MethodGet, path, "", "", http.StatusOK)
	return response.Body, err
}

// send sends a request to a portal. It returns [errUnavailable] or [errSignedOut] unless the status
// is one of expected. Any other status but 503 is reported as a failure of the test.
func (c *client) send(
	ctx context.Context, at int, method, path, body, header string, expected ...int,
) (modelstest.Response, error) {
	r, err := c.portals[at].Try(ctx, method, path, body, header)
	if err != nil {
		return r, fmt.Errorf("%w: %w", errUnavailable, err)
	}
	if r.StatusCode == http.StatusSeeOther && strings.HasPrefix(r.Header.Get("Location"), "/login") {
		return r, errSignedOut
	}
	if slices.Contains(expected, r.StatusCode) {
		return r, nil
	}
	if r.StatusCode != http.StatusServiceUnavailable {
		c.report.failure("unexpected response: %s %s: %s %.300q", method, path, r.Status, r.Body)
	}
	return r, fmt.Errorf("%w: %s", errUnavailable, r.Status)
}

// signIn signs in unless the session is still valid.
func (c *client) signIn(ctx context.Context, at int) error {
	c.signIns.Lock()
	defer c.signIns.Unlock()
	if _, err := c.get(ctx, at, "/account"); !errors.Is(err, errSignedOut) {
		return err
	}
	form := url.Values{"email": {c.email}, "password": {password}}.Encode()
	_, err := c.send(ctx, at, http.MethodPost, "/login", form, modelstest.FormType, http.StatusSeeOther)
	return err
}

// key is an API key as far as the client knows it.
type key struct {
	label  string
	id     string // empty until a page showed it
	secret string // empty unless the portal revealed it

	trusted bool // the key has a trust rule in place of a secret
	tokens  int  // access tokens so far
	token   *key // the latest one; nil: none. It has its own label, and itself as the secret
}

var (
	formID     = regexp.MustCompile(`name="form_id" value="([^"]+)"`)
	keySecret  = regexp.MustCompile(`value="(nas_[0-9A-Za-z]{36})"`)
	keyAddress = regexp.MustCompile(`/api-keys/([0-9a-f-]{36})/`)
	tokenField = regexp.MustCompile(`"access_token":"([^"]+)"`)
	keyRow     = regexp.MustCompile(`(?s)<tr id="api-key-([0-9a-f-]{36})".*?<td[^>]*>(.*?)</td>`)
	tag        = regexp.MustCompile(`<[^>]*>`)
)

// page is the parsed page of keys.
type page struct {
	form string            // id of the form for a new key
	ids  map[string]string // of the active keys, by label
}

// list requests the page of keys. It records for each of the labels whether the page lists it.
func (c *client) list(ctx context.Context, at int, labels ...string) (page, error) {
	call := c.report.now()
	body, err := c.get(ctx, at, "/api-keys")
	if errors.Is(err, errSignedOut) {
		if err = c.signIn(ctx, at); err == nil {
			return page{}, errSignedOut
		}
	}
	if err != nil {
		c.report.add("", at, call, step{list, noResponse})
		return page{}, err
	}
	p := page{ids: map[string]string{}}
	for _, match := range keyRow.FindAllStringSubmatch(body, -1) {
		label := strings.TrimSpace(html.UnescapeString(tag.ReplaceAllString(match[2], "")))
		if _, twice := p.ids[label]; twice {
			c.report.failure("the list has the key %s twice", label)
		}
		p.ids[label] = match[1]
	}
	form := formID.FindStringSubmatch(body)
	if form == nil || len(p.ids) == 0 && !strings.Contains(body, "No API keys yet") {
		c.report.failure("this is not the page of keys: %.300q", body)
		return page{}, errUnavailable
	}
	p.form = form[1]
	for _, label := range labels {
		shown := absent
		if p.ids[label] != "" {
			shown = present
		}
		c.report.add(label, at, call, step{list, shown})
	}
	return p, nil
}

// act sends a request about a key and records its outcome, which depends on the response's status.
func (c *client) act(
	ctx context.Context, at int, k *key, o operation, method, path, body, header string,
	outcomes map[int]outcome,
) (outcome, modelstest.Response) {
	call := c.report.now()
	response, err := c.send(ctx, at, method, path, body, header, slices.Collect(maps.Keys(outcomes))...)
	result := indeterminate
	switch {
	case err == nil:
		result = outcomes[response.StatusCode]
	case errors.Is(err, errSignedOut) || method == http.MethodGet:
		result = noResponse
	}
	if o == use && result == refused {
		switch response.Header.Get("X-Error-Reason") {
		case "revoked", "trust_changed":
		case "unknown":
			result = unknown
		case "token_expired":
			result = noResponse
		default:
			c.report.failure("a 401 with an unexpected reason: %.300q", response.Body)
		}
	}
	c.report.add(k.label, at, call, step{o, result})
	return result, response
}

// generate submits the form with the label of k. It sets the id and the secret of a created key.
func (c *client) generate(ctx context.Context, at int, form string, k *key) outcome {
	fields, outcomes := url.Values{}, map[int]outcome{http.StatusOK: created, http.StatusConflict: exists}
	if k.trusted {
		fields, outcomes = c.rule(k), map[int]outcome{http.StatusSeeOther: created, http.StatusConflict: exists}
		fields.Set("credential", "workload")
	}
	fields.Set("form_id", form)
	fields.Set("label", k.label)
	result, response := c.act(ctx, at, k, generate, http.MethodPost, "/api-keys", fields.Encode(), modelstest.FormType, outcomes)
	if result == created {
		secret := keySecret.FindStringSubmatch(response.Body)
		address := keyAddress.FindStringSubmatch(response.Body + response.Header.Get("Location"))
		if (secret == nil) != k.trusted || address == nil {
			c.report.failure("the response to a generated key has no key")
			return indeterminate
		}
		if k.id = address[1]; secret != nil {
			k.secret = secret[1]
		}
	}
	return result
}

// rule returns the fields of the trust rule of a key.
func (c *client) rule(k *key) url.Values {
	return url.Values{"provider": {"other"}, "issuer": {c.issuer.URL}, "audience": {baseURL}, "claims": {"sub=" + k.label}}
}

// exchange exchanges the token of a workload for an access token of the key, unless the portal
// refuses or does not answer.
func (c *client) exchange(ctx context.Context, at int, k *key) {
	now := time.Now().Unix()
	form := url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "client_id": {k.id},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"},
		"subject_token":      {c.issuer.Token(map[string]any{"iss": c.issuer.URL, "aud": baseURL, "sub": k.label, "iat": now, "exp": now + 3600})},
	}
	k.token = nil
	call := c.report.now()
	// A change of the rule whose outcome is unknown may be the reason of a 400.
	response, err := c.send(ctx, at, http.MethodPost, "/oauth/token", form.Encode(), modelstest.FormType,
		http.StatusOK, http.StatusBadRequest, http.StatusTooManyRequests)
	if token := tokenField.FindStringSubmatch(response.Body); err == nil && token != nil {
		k.tokens++
		k.token = &key{label: fmt.Sprintf("%s, access token %d", k.label, k.tokens), secret: token[1]}
		c.report.addToken(k.label, k.token.label, at, call)
	}
}

// saveRule saves the trust rule of a key, which ends its access tokens.
func (c *client) saveRule(ctx context.Context, at int, k *key) outcome {
	result, _ := c.act(ctx, at, k.token, revoke, http.MethodPost, "/api-keys/"+k.id+"/trust", c.rule(k).Encode(), modelstest.FormType,
		map[int]outcome{http.StatusSeeOther: confirmed, http.StatusNotFound: refused})
	return result
}

// revoke submits the confirmation of the key's revocation.
func (c *client) revoke(ctx context.Context, at int, k *key) outcome {
	path := "/api-keys/" + k.id + "/revocation"
	result, _ := c.act(ctx, at, k, revoke, http.MethodPost, path, "", modelstest.FormType,
		map[int]outcome{http.StatusSeeOther: confirmed, http.StatusNotFound: unknown})
	return result
}

// check requests the page that says whether a revocation without a clear outcome took effect.
func (c *client) check(ctx context.Context, at int, k *key) outcome {
	path := "/api-keys/" + k.id + "/revocation/outcome"
	result, _ := c.act(ctx, at, k, check, http.MethodGet, path, "", "", map[int]outcome{
		http.StatusOK: present, http.StatusSeeOther: confirmed, http.StatusNotFound: unknown,
	})
	return result
}

// use calls the API with a key or its access token.
func (c *client) use(ctx context.Context, at int, k *key) outcome {
	if k.token != nil {
		k = k.token
	}
	if k.secret == "" {
		return noResponse
	}
	result, _ := c.act(ctx, at, k, use, http.MethodGet, "/api/agents", "", modelstest.Bearer(k.secret),
		map[int]outcome{http.StatusOK: accepted, http.StatusUnauthorized: refused})
	return result
}
