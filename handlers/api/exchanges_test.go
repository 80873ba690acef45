package api_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/handlers"
	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/value"
	"portal/models/workload"
)

const exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"

// exchangeService is a service that accepts the tokens of an issuer of the test's own.
type exchangeService struct {
	*service

	customer customer
	issuer   *handlerstest.Issuer
}

func newExchangeService(t *testing.T, databaseURL string) *exchangeService {
	t.Helper()
	return newExchangeServiceOf(t, databaseURL, handlerstest.NewIssuer(t))
}

func newExchangeServiceOf(t *testing.T, databaseURL string, issuer *handlerstest.Issuer) *exchangeService {
	t.Helper()
	e := &exchangeService{issuer: issuer}
	e.service = e.instance(t, databaseURL, modelstest.NewClock(time.Now()))
	e.customer = e.service.customer()
	return e
}

// instance starts a service that accepts the tokens of the issuer.
func (e *exchangeService) instance(t *testing.T, databaseURL string, clock *modelstest.Clock) *service {
	t.Helper()
	s := &service{t: t, database: databaseURL, clock: clock, log: &modelstest.LogBuffer{}}
	s.store = modelstest.Open(t, databaseURL, models.Options{
		Timeout: time.Minute, Now: clock.Now, Logger: s.log.Logger(), Issuers: workload.Issuers{Own: []string{e.issuer.URL}},
	})
	return s.start(func(d *handlers.Deps) { d.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })
}

func (e *exchangeService) rule() workload.Rule {
	return workload.Rule{
		Provider: workload.GitHub, Issuer: e.issuer.URL, Audience: issuer,
		Claims: map[string][]string{"repository": {"acme/site"}, "environment": {"production"}},
	}
}

// trusting generates a key with a rule.
func (e *exchangeService) trusting(rule workload.Rule) keys.Key {
	e.t.Helper()
	key, _, err := e.store.Keys.Generate(e.t.Context(), e.customer.accountID, keys.NewKey{Label: "deploy", FormID: uuid.New(), Trust: &rule}, record.Operator())
	modelstest.Must(e.t, err)
	return key
}

// job returns the claims of a new job, with the fields of a real one.
func (e *exchangeService) job() map[string]any {
	now := e.clock.Now().Unix()
	return map[string]any{
		"jti": uuid.NewString(), "sub": "repo:acme@65/site@74:environment:production", "environment": "production", "aud": issuer,
		"ref": "refs/heads/main", "repository": "acme/site", "repository_owner": "acme", "repository_id": "74", "repository_owner_id": "65",
		"actor": "octocat", "event_name": "push", "ref_type": "branch", "runner_environment": "github-hosted",
		"iss": e.issuer.URL, "nbf": now - 10, "iat": now, "exp": now + 300,
	}
}

func exchangeForm(keyID, token string) url.Values {
	return url.Values{
		"grant_type": {exchangeGrant}, "subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"}, "subject_token": {token}, "client_id": {keyID},
	}
}

type exchangeResponse struct {
	AccessToken string `json:"access_token"`
	IssuedType  string `json:"issued_token_type"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int64  `json:"expires_in"`
	Scope       string `json:"scope"`
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

func (s *service) exchange(form url.Values, headers ...string) (modelstest.Response, exchangeResponse) {
	s.t.Helper()
	headers = append([]string{"Content-Type: application/x-www-form-urlencoded"}, headers...)
	response := modelstest.NewVisitor(s.t, s.url).Send(http.MethodPost, "/oauth/token", form.Encode(), headers...)
	var body exchangeResponse
	response.JSON(&body)
	return response, body
}

// accessToken returns the access token for a new job.
func (e *exchangeService) accessToken(key keys.Key) string {
	e.t.Helper()
	response, body := e.exchange(exchangeForm(key.ID.String(), e.issuer.Token(e.job())))
	response.Is(http.StatusOK)
	return body.AccessToken
}

func eachExchange(t *testing.T, run func(t *testing.T, e *exchangeService)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) { run(t, newExchangeService(t, databaseURL)) })
}

func (s *service) as(token, path string) modelstest.Response {
	s.t.Helper()
	return modelstest.NewVisitor(s.t, s.url).Get(path, modelstest.Bearer(token))
}

func TestExchangeToken(t *testing.T) {
	eachExchange(t, func(t *testing.T, e *exchangeService) {
		key := e.trusting(e.rule())
		response, body := e.exchange(exchangeForm(key.ID.String(), e.issuer.Token(e.job())))
		response.Is(http.StatusOK)
		modelstest.Facts(t, body, map[string]bool{
			"no-store":    response.Header.Get("Cache-Control") == "no-store",
			"issued type": body.IssuedType == "urn:ietf:params:oauth:token-type:access_token",
			"Bearer":      body.TokenType == "Bearer", "scope": body.Scope == "api",
			"the subject token's end": body.ExpiresIn > 295 && body.ExpiresIn <= 300,
		})
		parts := strings.Split(body.AccessToken, ".")
		var header, claims map[string]any
		modelstest.Must(t, json.Unmarshal(modelstest.Value(base64.RawURLEncoding.DecodeString(parts[0]))(t), &header))
		modelstest.Must(t, json.Unmarshal(modelstest.Value(base64.RawURLEncoding.DecodeString(parts[1]))(t), &claims))
		modelstest.Facts(t, claims, map[string]bool{
			"typ": header["typ"] == "at+jwt", "aud": claims["aud"] == "api", "sub": claims["sub"] == e.customer.accountID.String(),
			"client_id": claims["client_id"] == key.ID.String(), "iss": claims["iss"] == issuer, "scope": claims["scope"] == "api",
		})
		e.as(body.AccessToken, "/api/agents").Is(http.StatusOK)
		e.as(body.AccessToken, "/api/authorize/v1/x").Is(http.StatusOK)
		own := e.as(body.AccessToken, "/api/key").Is(http.StatusOK)
		if !strings.Contains(own.Body, `"maskedKey":null`) || !strings.Contains(own.Body, `"credential":"workload"`) || !strings.Contains(own.Body, `"repository_id":"74"`) {
			t.Error(own.Body)
		}
		visitor := modelstest.NewVisitor(t, e.url)
		widgetToken := visitor.PostJSON("/api/widget/token", `{"agentId": "`+e.customer.agent.ID.String()+`"}`, modelstest.Bearer(body.AccessToken)).Is(http.StatusOK)
		var issued struct {
			AccessToken string `json:"access_token"`
		}
		widgetToken.JSON(&issued)
		e.as(issued.AccessToken, "/widget/authorize").Is(http.StatusOK)
		// Neither token is the other.
		e.as(body.AccessToken, "/widget/authorize").Is(http.StatusUnauthorized)
		if refused := e.as(issued.AccessToken, "/api/agents").Is(http.StatusUnauthorized); refused.Header.Get("X-Error-Reason") != "prefix" {
			t.Errorf("a widget token: %s", refused.Header.Get("X-Error-Reason"))
		}
		introspect := func(token string) string {
			return visitor.Send(http.MethodPost, "/api/widget/introspect", "token="+token, modelstest.Bearer(e.customer.secret), "Content-Type: application/x-www-form-urlencoded").
				Is(http.StatusOK).Body
		}
		if text := introspect(body.AccessToken); !strings.Contains(text, `"active":true`) || !strings.Contains(text, `"aud":"api"`) {
			t.Error(text)
		}
		modelstest.Must(t, func() error {
			_, err := e.store.Workload.SetTrust(t.Context(), key.AccountID, key.ID, "", e.rule(), record.Operator())
			return err
		}())
		if refused := e.as(body.AccessToken, "/api/agents").Is(http.StatusUnauthorized); refused.Header.Get("X-Error-Reason") != "trust_changed" {
			t.Errorf("after a change of the rule: %s", refused.Header.Get("X-Error-Reason"))
		}
		if text := introspect(body.AccessToken); strings.TrimSpace(text) != `{"active":false}` {
			t.Error(text)
		}
		latest := e.accessToken(key)
		e.clock.Advance(6 * time.Minute)
		for token, reason := range map[string]string{latest: "token_expired", latest[:len(latest)-4] + "AAAA": "token_invalid", "eyJ": "token_invalid", "ey": "prefix"} {
			if refused := e.as(token, "/api/agents").Is(http.StatusUnauthorized); refused.Header.Get("X-Error-Reason") != reason {
				t.Errorf("%s in place of %s", refused.Header.Get("X-Error-Reason"), reason)
			}
		}
	})
}

// Everything that is wrong with a key, a token or a rule has the same response. The page of the key
// has the reason if the issuer and the signature are right.
func TestRefusedExchanges(t *testing.T) {
	eachExchange(t, func(t *testing.T, e *exchangeService) {
		key := e.trusting(e.rule())
		good := e.issuer.Token(e.job())
		with := func(name string, value any) string {
			claims := e.job()
			claims[name] = value
			return e.issuer.Token(claims)
		}
		e.accessToken(key) // pins
		once := e.issuer.Token(e.job())
		first, _ := e.exchange(exchangeForm(key.ID.String(), once))
		first.Is(http.StatusOK)
		var want string
		for _, test := range []struct{ name, keyID, token, reason string }{
			{"an unknown key", uuid.NewString(), good, ""},
			{"no key id", "key", good, ""},
			{"a key with a secret", e.customer.key.ID.String(), good, ""},
			{"no token", key.ID.String(), "nas_x", ""},
			{"another issuer", key.ID.String(), with("iss", "https://token.actions.githubusercontent.com"), ""},
			{"a forged token", key.ID.String(), good[:len(good)-4] + "AAAA", ""},
			{"a used token", key.ID.String(), once, "the token was used before"},
			{"another environment", key.ID.String(), with("environment", "staging"), "environment is staging"},
			{"another audience", key.ID.String(), with("aud", "https://github.com/acme"), "aud is https://github.com/acme"},
			{"two audiences", key.ID.String(), with("aud", []string{issuer, "x"}), "aud has 2 values"},
			{"a new repository of the name", key.ID.String(), with("repository_id", "75"), "repository_id is 75 instead of 74"},
			{"expired", key.ID.String(), with("exp", e.clock.Now().Unix()), "the token expired at"},
		} {
			response, body := e.exchange(exchangeForm(test.keyID, test.token))
			if response.Is(http.StatusBadRequest); body.Error != "invalid_grant" || want != "" && response.Body != want {
				t.Errorf("%s: %s", test.name, response.Body)
			}
			want = response.Body
			listed := modelstest.Value(e.store.Workload.Exchanges(t.Context(), key.AccountID, key.ID))(t)
			if test.reason != "" && !strings.HasPrefix(listed[0].Reason, test.reason) {
				t.Errorf("%s: the reason is %q", test.name, listed[0].Reason)
			}
			if test.reason == "" && listed[0].Reason != "" {
				t.Errorf("%s is listed: %q", test.name, listed[0].Reason)
			}
		}
	})
}

func TestMalformedExchanges(t *testing.T) {
	eachExchange(t, func(t *testing.T, e *exchangeService) {
		key := e.trusting(e.rule())
		good := exchangeForm(key.ID.String(), e.issuer.Token(e.job()))
		change := func(name string, values ...string) url.Values {
			form := maps.Clone(good)
			form[name] = values
			return form
		}
		for name, test := range map[string]struct {
			form    url.Values
			code    string
			headers []string
		}{
			"no grant type":             {change("grant_type"), "invalid_request", nil},
			"another grant type":        {change("grant_type", "client_credentials"), "unsupported_grant_type", nil},
			"another token type":        {change("subject_token_type", "urn:ietf:params:oauth:token-type:saml2"), "invalid_request", nil},
			"no token":                  {change("subject_token"), "invalid_request", nil},
			"two tokens":                {change("subject_token", "a", "b"), "invalid_request", nil},
			"no client":                 {change("client_id"), "invalid_request", nil},
			"an actor":                  {change("actor_token", "x"), "invalid_request", nil},
			"another requested type":    {change("requested_token_type", "urn:ietf:params:oauth:token-type:refresh_token"), "invalid_request", nil},
			"an API key in the headers": {good, "invalid_request", []string{modelstest.Bearer(e.customer.secret)}},
		} {
			response, body := e.exchange(test.form, test.headers...)
			if response.Is(http.StatusBadRequest); body.Error != test.code || body.Description == "" {
				t.Errorf("%s: %s", name, response.Body)
			}
		}
		tooLarge, _ := e.exchange(change("subject_token", strings.Repeat("x", 16<<10+1)))
		tooLarge.Is(http.StatusRequestEntityTooLarge)
		visitor := modelstest.NewVisitor(t, e.url)
		visitor.PostJSON("/oauth/token", `{}`).Is(http.StatusBadRequest)
		visitor.Get("/oauth/token").Is(http.StatusMethodNotAllowed)
		if fetched := e.issuer.Fetches.Load(); fetched != 0 {
			t.Errorf("%d fetches", fetched)
		}
		metadata := visitor.Get("/.well-known/oauth-authorization-server").Is(http.StatusOK).Body
		if !strings.Contains(metadata, `"token_endpoint":"`+issuer+`/oauth/token"`) || !strings.Contains(metadata, `"token_endpoint_auth_methods_supported":["none"]`) {
			t.Error(metadata)
		}
		accepted := change("subject_token_type", "urn:ietf:params:oauth:token-type:id_token")
		// Both may be repeated (RFC 8693, section 2.1).
		for name := range accepted {
			accepted[name] = []string{accepted.Get(name) + "\n"} // of a file, as curl sends it
		}
		accepted["audience"], accepted["resource"] = []string{"a", "b"}, []string{"https://a.example.com", "https://b.example.com"}
		response, _ := e.exchange(accepted)
		response.Is(http.StatusOK)
	})
}

// Nothing is fetched for an unknown key or another issuer, and an unknown key id causes one fetch a
// minute. The keys are kept while the issuer is away or lies.
func TestKeysOfIssuers(t *testing.T) {
	t.Parallel()
	e := newExchangeService(t, modelstest.SQLiteURL(t))
	key := e.trusting(e.rule())
	status := func(want int) {
		t.Helper()
		response, _ := e.exchange(exchangeForm(key.ID.String(), e.issuer.Token(e.job())))
		if response.Is(want); want == http.StatusServiceUnavailable && response.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		e.clock.Advance(61 * time.Second)
	}
	lies := map[string]http.HandlerFunc{
		"HTML": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"huge": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Repeat(" ", 2<<20))) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, e.issuer.URL+"/jwks", http.StatusFound)
		},
		"away": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"another issuer": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"issuer":"https://gitlab.com","jwks_uri":"https://gitlab.com/x"}`))
		},
		"another host": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"issuer":"` + e.issuer.URL + `","jwks_uri":"http://127.0.0.1:1/jwks"}`))
		},
	}
	for _, lie := range lies {
		e.issuer.Answer(lie)
		status(http.StatusServiceUnavailable)
	}
	e.issuer.Answer(nil)
	status(http.StatusOK)
	e.clock.Advance(25 * time.Hour)
	for name, lie := range lies {
		e.issuer.Answer(lie)
		before := e.issuer.Fetches.Load()
		status(http.StatusOK)
		if e.issuer.Fetches.Load() == before {
			t.Errorf("%s: the old keys are not fetched again", name)
		}
	}
	e.issuer.Rotate() // the last lie goes on, so the new key cannot be had
	status(http.StatusServiceUnavailable)
	e.issuer.Answer(nil)
	status(http.StatusOK)
	before := e.issuer.Fetches.Load()
	other := handlerstest.NewIssuer(t)
	other.Rotate()
	other.Rotate()
	unknown := http.StatusBadRequest
	for range 5 {
		claims := e.job()
		response, _ := e.exchange(exchangeForm(key.ID.String(), other.Token(claims)))
		response.Is(unknown)
		unknown = http.StatusServiceUnavailable // It may have been published since the fetch.
		claims["iss"] = other.URL
		response, _ = e.exchange(exchangeForm(key.ID.String(), other.Token(claims)))
		response.Is(http.StatusBadRequest)
	}
	if fetched := e.issuer.Fetches.Load() - before; fetched != 2 || other.Fetches.Load() != 0 {
		t.Errorf("an unknown key id caused %d fetches, and another issuer %d", fetched, other.Fetches.Load())
	}
}

// inventing returns a token of a new job whose key nobody publishes.
func (e *exchangeService) inventing(keyID string) string {
	e.t.Helper()
	header := modelstest.Value(json.Marshal(map[string]string{"alg": "RS256", "kid": keyID}))(e.t)
	_, rest, _ := strings.Cut(e.issuer.Token(e.job()), ".")
	return base64.RawURLEncoding.EncodeToString(header) + "." + rest
}

// A new key of an issuer works within a minute, and until then its tokens are not refused for good,
// whatever others send. Identifiers that nobody publishes count for the key that they are sent for,
// and for the network that they come from.
func TestANewKeyOfAnIssuerWorksWithinAMinute(t *testing.T) {
	t.Parallel()
	e := newExchangeService(t, modelstest.SQLiteURL(t))
	key := e.trusting(e.rule())
	e.accessToken(key)
	e.customer = e.service.customer()
	foreign := e.trusting(e.rule())
	invent := func(of keys.Key, address string, status int, fetches int64) {
		t.Helper()
		before := e.issuer.Fetches.Load()
		response, body := e.exchange(exchangeForm(of.ID.String(), e.inventing(uuid.NewString())), "X-Forwarded-For: "+address)
		if response.Is(status); status == http.StatusServiceUnavailable && body.Error != "temporarily_unavailable" {
			t.Errorf("%s", response.Body)
		}
		if fetched := e.issuer.Fetches.Load() - before; fetched != 2*fetches { // the discovery document and the keys
			t.Errorf("%d requests to the issuer, want %d", fetched, 2*fetches)
		}
	}
	for range 10 {
		e.clock.Advance(time.Minute)
		invent(foreign, "192.0.2.1", http.StatusBadRequest, 1)
		invent(foreign, "192.0.2.1", http.StatusServiceUnavailable, 0)
	}
	e.clock.Advance(time.Minute)
	invent(foreign, "192.0.2.1", http.StatusServiceUnavailable, 0)
	for range 10 { // a stranger who knows the id of the key
		invent(key, "192.0.2.2", http.StatusBadRequest, 1)
		e.clock.Advance(time.Minute)
	}
	invent(key, "192.0.2.2", http.StatusServiceUnavailable, 0)
	invent(foreign, "192.0.2.3", http.StatusBadRequest, 1)

	e.issuer.Rotate()
	e.clock.Advance(20 * time.Second)
	token := e.issuer.Token(e.job())
	response, body := e.exchange(exchangeForm(key.ID.String(), token))
	if response.Is(http.StatusServiceUnavailable); body.Error != "temporarily_unavailable" || response.Header.Get("Retry-After") != "40" {
		t.Errorf("%s, Retry-After %s", response.Body, response.Header.Get("Retry-After"))
	}
	e.clock.Advance(40 * time.Second)
	invent(foreign, "192.0.2.4", http.StatusBadRequest, 1) // has the new key too
	response, _ = e.exchange(exchangeForm(key.ID.String(), token))
	response.Is(http.StatusOK)
	e.issuer.Rotate()
	e.clock.Advance(time.Minute)
	e.accessToken(key)
	e.clock.Advance(time.Hour)
	invent(foreign, "192.0.2.1", http.StatusBadRequest, 1)
}

// The address of the discovery document does not repeat the slash at the end of an issuer (OpenID
// Connect Discovery, section 4.1).
func TestIssuerWithASlash(t *testing.T) {
	t.Parallel()
	of := handlerstest.NewIssuer(t)
	of.URL += "/"
	e := newExchangeServiceOf(t, modelstest.SQLiteURL(t), of)
	e.accessToken(e.trusting(e.rule()))
}

// Only exchanges with a right signature count for the key, so that strangers cannot lock it out.
func TestRateOfExchanges(t *testing.T) {
	t.Parallel()
	e := newExchangeService(t, modelstest.SQLiteURL(t))
	key := e.trusting(e.rule())
	forged := e.issuer.Token(e.job())
	forged = forged[:len(forged)-4] + "AAAA"
	for range 60 {
		response, _ := e.exchange(exchangeForm(key.ID.String(), forged))
		response.Is(http.StatusBadRequest)
	}
	response, body := e.exchange(exchangeForm(key.ID.String(), forged))
	if response.Is(http.StatusTooManyRequests); body.Error != "temporarily_unavailable" || response.Header.Get("Retry-After") == "" {
		t.Errorf("%s, Retry-After %s", response.Body, response.Header.Get("Retry-After"))
	}
	e.clock.Advance(time.Minute)
	e.accessToken(key)
}

// The exchanges of a key are limited wherever they come from. Tokens whose signature is wrong do
// not count for the key, because a stranger can send them.
func TestRateOfExchangesOfAKey(t *testing.T) {
	t.Parallel()
	e := newExchangeService(t, modelstest.SQLiteURL(t))
	key := e.trusting(e.rule())
	from := func(address, token string) (modelstest.Response, exchangeResponse) {
		t.Helper()
		return e.exchange(exchangeForm(key.ID.String(), token), "X-Forwarded-For: "+address)
	}
	forged := e.issuer.Token(e.job())
	forged = forged[:len(forged)-4] + "AAAA"
	for range 60 {
		response, _ := from("192.0.2.1", forged)
		response.Is(http.StatusBadRequest)
	}
	for i := range 60 {
		response, _ := from(fmt.Sprintf("198.51.100.%d", i%2), e.issuer.Token(e.job()))
		response.Is(http.StatusOK)
	}
	response, body := from("203.0.113.1", e.issuer.Token(e.job()))
	if response.Is(http.StatusTooManyRequests); body.Error != "temporarily_unavailable" || response.Header.Get("Retry-After") == "" {
		t.Errorf("%s, Retry-After %s", response.Body, response.Header.Get("Retry-After"))
	}
	other := e.trusting(e.rule())
	response, _ = e.exchange(exchangeForm(other.ID.String(), e.issuer.Token(e.job())))
	response.Is(http.StatusOK)
}

// Anyone may have an old token of the workload, or a token of the issuer for something else. Those
// count for the key in a limit of their own.
func TestRefusedExchangesDoNotUseUpTheLimitOfTheKey(t *testing.T) {
	t.Parallel()
	e := newExchangeService(t, modelstest.SQLiteURL(t))
	key := e.trusting(e.rule())
	from := func(address, token string, status int) {
		t.Helper()
		response, body := e.exchange(exchangeForm(key.ID.String(), token), "X-Forwarded-For: "+address)
		if response.Is(status); status == http.StatusTooManyRequests && (body.Error != "temporarily_unavailable" || response.Header.Get("Retry-After") == "") {
			t.Errorf("%s, Retry-After %s", response.Body, response.Header.Get("Retry-After"))
		}
	}
	expired, foreign := e.job(), e.job()
	expired["exp"] = e.clock.Now().Unix()
	foreign["repository"] = "eve/site"
	for i := range 30 {
		from(fmt.Sprintf("192.0.2.%d", i%2), e.issuer.Token(expired), http.StatusBadRequest)
		from(fmt.Sprintf("192.0.2.%d", i%2), e.issuer.Token(foreign), http.StatusBadRequest)
	}
	from("198.51.100.1", e.issuer.Token(expired), http.StatusTooManyRequests)
	e.clock.Advance(time.Minute)
	once := e.issuer.Token(e.job())
	from("192.0.2.1", once, http.StatusOK)
	for i := range 60 {
		from(fmt.Sprintf("192.0.2.%d", i%2), once, http.StatusBadRequest)
	}
	from("198.51.100.1", once, http.StatusTooManyRequests)
	from("198.51.100.2", e.issuer.Token(e.job()), http.StatusOK)
}

func TestPastedKeys(t *testing.T) {
	t.Parallel()
	e := newExchangeService(t, modelstest.SQLiteURL(t))
	cluster := handlerstest.NewIssuer(t)
	rule := workload.Rule{
		Provider: workload.Kubernetes, Issuer: "https://kubernetes.default.svc.cluster.local", Audience: issuer,
		Claims: map[string][]string{"sub": {"system:serviceaccount:shop:backend"}}, JWKS: modelstest.Value(json.Marshal(cluster.JWKS()))(t),
	}
	key := e.trusting(rule)
	now := e.clock.Now().Unix()
	claims := map[string]any{
		"aud": []string{issuer}, "exp": now + 3600, "iat": now, "nbf": now, "iss": rule.Issuer, "sub": "system:serviceaccount:shop:backend",
		"kubernetes.io": map[string]any{"namespace": "shop", "serviceaccount": map[string]any{"name": "backend"}},
	}
	for range 2 { // the token of a pod is used again until it rotates
		response, body := e.exchange(exchangeForm(key.ID.String(), cluster.Token(claims)))
		if response.Is(http.StatusOK); body.ExpiresIn != 900 {
			t.Errorf("the access token is valid for %d s", body.ExpiresIn)
		}
	}
	if cluster.Fetches.Load() != 0 {
		t.Error("the keys of a customer's issuer were fetched")
	}
}

// A bundle of SPIFFE, and a token with the newer name of EdDSA (RFC 9864).
func TestPastedKeysOfSPIFFE(t *testing.T) {
	t.Parallel()
	e := newExchangeService(t, modelstest.SQLiteURL(t))
	public, private, err := ed25519.GenerateKey(rand.Reader)
	modelstest.Must(t, err)
	rule := workload.Rule{
		Provider: workload.Other, Issuer: "https://spire.acme.com", Audience: issuer, Claims: map[string][]string{"sub": {"spiffe://acme.com/backend"}},
		JWKS: fmt.Appendf(nil, `{"spiffe_sequence":1,"keys":[{"kty":"OKP","kid":"1","use":"jwt-svid","crv":"Ed25519","alg":"Ed25519","x":%q},`+
			`{"kty":"EC","use":"x509-svid","crv":"P-256","x5c":["AAAA"]}]}`, base64.URLEncoding.EncodeToString(public)),
	}
	key := e.trusting(rule)
	now := e.clock.Now().Unix()
	claims := modelstest.Value(json.Marshal(map[string]any{"aud": issuer, "exp": now + 3600, "iat": now, "iss": rule.Issuer, "sub": "spiffe://acme.com/backend"}))(t)
	for _, algorithm := range []string{"Ed25519", "EdDSA"} {
		encode := base64.RawURLEncoding.EncodeToString
		text := encode(fmt.Appendf(nil, `{"alg":%q,"kid":"1"}`, algorithm)) + "." + encode(claims)
		response, _ := e.exchange(exchangeForm(key.ID.String(), text+"."+encode(ed25519.Sign(private, []byte(text)))))
		response.Is(http.StatusOK)
	}
}

// The entries that cannot be used are in the log.
func TestOddPublicKeysOfAnIssuer(t *testing.T) {
	t.Parallel()
	e := newExchangeService(t, modelstest.SQLiteURL(t))
	for _, odd := range modelstest.OddPublicKeys(t, modelstest.Value(rsa.GenerateKey(rand.Reader, 2048))(t)) {
		e.issuer.Beside = append(e.issuer.Beside, odd)
	}
	e.accessToken(e.trusting(e.rule()))
	if log := e.log.String(); !strings.Contains(log, "some public keys cannot be used") || !strings.Contains(log, "secp256k1") || !strings.Contains(log, e.issuer.URL) {
		t.Errorf("log: %s", log)
	}
}

func TestExchangeFromAnotherNetwork(t *testing.T) {
	t.Parallel()
	e := newExchangeService(t, modelstest.SQLiteURL(t))
	key := e.trusting(e.rule())
	networks := modelstest.Value(value.ParseNetworks([]string{"198.51.100.0/24"}))(t)
	modelstest.Value(e.store.Keys.Restrict(t.Context(), key.AccountID, key.ID, "", keys.Restrictions{Networks: networks}, "", record.Operator()))(t)
	response, body := e.exchange(exchangeForm(key.ID.String(), e.issuer.Token(e.job())))
	if response.Is(http.StatusBadRequest); body.Error != "invalid_grant" {
		t.Error(response.Body)
	}
	if listed := modelstest.Value(e.store.Workload.Exchanges(t.Context(), key.AccountID, key.ID))(t); len(listed) != 1 || !strings.Contains(listed[0].Reason, "networks") {
		t.Errorf("%+v", listed)
	}
}

// A token is accepted once over two instances, and a revocation on one ends access on the other.
func TestExchangesOnTwoInstances(t *testing.T) {
	eachExchange(t, func(t *testing.T, e *exchangeService) {
		other := e.instance(t, e.database, e.clock)
		key := e.trusting(e.rule())
		token := e.issuer.Token(e.job())
		response, body := e.exchange(exchangeForm(key.ID.String(), token))
		response.Is(http.StatusOK)
		again, _ := other.exchange(exchangeForm(key.ID.String(), token))
		again.Is(http.StatusBadRequest)
		other.as(body.AccessToken, "/api/agents").Is(http.StatusOK)
		modelstest.Value(e.store.Keys.Revoke(t.Context(), key.AccountID, key.ID, "", record.Operator()))(t)
		if refused := other.as(body.AccessToken, "/api/agents").Is(http.StatusUnauthorized); refused.Header.Get("X-Error-Reason") != "revoked" {
			t.Errorf("the reason is %s", refused.Header.Get("X-Error-Reason"))
		}
		if noted := modelstest.Value(other.store.Usage.Refusals(t.Context(), key.AccountID, key.ID))(t); len(noted) != 1 || noted[0].Reason != "revoked" {
			t.Errorf("the refused requests of the key are %+v", noted)
		}
		late, _ := other.exchange(exchangeForm(key.ID.String(), e.issuer.Token(e.job())))
		late.Is(http.StatusBadRequest)
	})
}

func TestWorkloadIdentityOff(t *testing.T) {
	t.Parallel()
	s := &service{t: t, clock: modelstest.NewClock(time.Now()), log: &modelstest.LogBuffer{}}
	s.store = modelstest.Open(t, modelstest.SQLiteURL(t), models.Options{Issuers: workload.Issuers{Off: true}})
	s.start()
	modelstest.NewVisitor(t, s.url).Send(http.MethodPost, "/oauth/token", "").Is(http.StatusNotFound)
	if metadata := modelstest.NewVisitor(t, s.url).Get("/.well-known/oauth-authorization-server").Body; strings.Contains(metadata, "token_endpoint") {
		t.Error(metadata)
	}
}

func TestOperatorPutsKeys(t *testing.T) {
	eachExchange(t, func(t *testing.T, e *exchangeService) {
		id := uuid.NewString()
		path := "/operator/accounts/" + e.customer.accountID.String() + "/keys/" + id
		visitor := modelstest.NewVisitor(t, e.url)
		put := func(path, body string) modelstest.Response {
			t.Helper()
			return visitor.Send(http.MethodPut, path, body, "Content-Type: application/json", modelstest.Bearer(operatorToken))
		}
		trust := `"trust": {"provider": "github", "issuer": "` + e.issuer.URL + `", "claims": {"repository": ["acme/site"]}}`
		body := `{"label": "deploy", ` + trust + `, "networks": ["127.0.0.1"]}`
		created := put(path, body).Is(http.StatusCreated)
		var element struct {
			ID         string         `json:"id"`
			MaskedKey  *string        `json:"maskedKey"`
			Credential string         `json:"credential"`
			Networks   []string       `json:"networks"`
			Trust      map[string]any `json:"trust"`
		}
		created.JSON(&element)
		modelstest.Facts(t, created.Body, map[string]bool{
			"id": element.ID == id, "no masked key": element.MaskedKey == nil, "credential": element.Credential == "workload",
			"networks": len(element.Networks) == 1, "audience": element.Trust["audience"] == issuer, "pins": element.Trust["pins"] != nil,
		})
		response, exchanged := e.exchange(exchangeForm(id, e.issuer.Token(e.job())))
		response.Is(http.StatusOK)
		if repeated := put(path, body).Is(http.StatusOK); !strings.Contains(repeated.Body, `"repository_id":"74"`) {
			t.Error(repeated.Body)
		}
		put(path, `{"label": "deploy", `+trust+`}`).Is(http.StatusOK)
		// Values keep their order, in which a repeat may differ.
		two := strings.Replace(body, `["acme/site"]`, `["acme/site", "acme/app", "acme/site"]`, 1)
		if listed := put(strings.Replace(path, id, uuid.NewString(), 1), two).Is(http.StatusCreated); !strings.Contains(listed.Body, `["acme/site","acme/app"]`) {
			t.Error(listed.Body)
		}
		e.as(exchanged.AccessToken, "/api/agents").Is(http.StatusOK)
		if cleared := put(path, `{"label": "deploy", `+trust+`, "networks": null}`).Is(http.StatusOK); !strings.Contains(cleared.Body, `"networks":null`) {
			t.Error(cleared.Body)
		}
		put(path, strings.Replace(body, "acme/site", "acme/shop", 1)).Is(http.StatusOK)
		e.as(exchanged.AccessToken, "/api/agents").Is(http.StatusUnauthorized)
		for name, bad := range map[string]string{
			"no label": `{` + trust + `}`, "no rule": `{"label": "x"}`, "null": `{"label": "x", "trust": null}`, "a text": `{"label": "x", "trust": "github"}`,
			"wrong claims": `{"label": "x", "trust": {"provider": "github", "claims": {"repository": "acme/site"}}}`,
			"a wildcard":   strings.Replace(body, "acme/site", "acme/*", 1), "no keys": strings.Replace(body, e.issuer.URL, "https://ci.example.com", 1),
			"another case": strings.Replace(body, `"claims"`, `"Claims"`, 1),
			"year 10000":   strings.Replace(body, `"networks"`, `"expiresAt": "9999-12-31T23:59:59-01:00", "networks"`, 1),
			"networks":     strings.Replace(body, `"127.0.0.1"`, `"127"`, 1), "no networks": strings.Replace(body, `"127.0.0.1"`, ``, 1),
		} {
			if refused := put(path, bad); refused.StatusCode != http.StatusBadRequest || !strings.Contains(refused.Body, "INVALID_REQUEST") {
				t.Errorf("%s: %d %s", name, refused.StatusCode, refused.Body)
			}
		}
		// As in the form, the message names the network.
		hostBits := put(path, strings.Replace(body, `"127.0.0.1"`, `"10.0.0.1/8"`, 1)).Is(http.StatusBadRequest)
		if !strings.Contains(hostBits.Body, "Did you mean 10.0.0.0/8?") {
			t.Error(hostBits.Body)
		}
		taken := strings.Replace(path, id, e.customer.key.ID.String(), 1)
		put(taken, body).Is(http.StatusConflict)
		foreign := e.service.customer()
		put("/operator/accounts/"+foreign.accountID.String()+"/keys/"+id, body).Is(http.StatusConflict)
		modelstest.Value(e.store.Keys.Revoke(t.Context(), e.customer.accountID, uuid.MustParse(id), "", record.Operator()))(t)
		put(path, body).Is(http.StatusConflict)
	})
}
