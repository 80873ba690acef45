package identity_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"portal/handlers/portal/identity"
	"portal/models/modelstest"
	"portal/models/people"
)

// hostile is a provider whose responses a test can forge.
type hostile struct {
	*httptest.Server

	key      *rsa.PrivateKey
	keyID    string                         // of the key, in the key set
	odd      []any                          // entries of the key set before its key
	metadata map[string]any                 // changes of the metadata
	token    func(claims map[string]any)    // changes the claims of the ID token; may be nil
	sign     func(h *hostile) jose.Signer   // nil: with key
	answer   func(http.ResponseWriter) bool // answers the token request; may be nil
	userInfo map[string]any
	use      identity.EmailUse // of a sign-in; newHostile sets EmailRequired
	asked    int               // requests for UserInfo
	nonce    string
	requests atomic.Int64
	redeemed url.Values // the last token request
}

// hostileKey is the key of each hostile provider at its start.
var hostileKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newHostile(t *testing.T) *hostile {
	t.Helper()
	h := &hostile{key: modelstest.Value(hostileKey())(t), keyID: "1", metadata: map[string]any{}, use: identity.EmailRequired}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		h.requests.Add(1)
		document := map[string]any{
			"issuer": h.URL, "authorization_endpoint": h.URL + "/auth", "token_endpoint": h.URL + "/token", "jwks_uri": h.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
		}
		maps.Copy(document, h.metadata)
		reply(w, document)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"keys": append(h.odd, jose.JSONWebKey{Key: h.key.Public(), KeyID: h.keyID, Use: "sig"})})
	})
	mux.HandleFunc("/userinfo", func(w http.ResponseWriter, r *http.Request) {
		h.asked++
		switch h.userInfo["status"] {
		case nil:
			reply(w, h.userInfo)
		case http.StatusGatewayTimeout:
			<-r.Context().Done()
		default:
			w.WriteHeader(h.userInfo["status"].(int))
		}
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		h.redeemed = r.PostForm
		if h.answer == nil || !h.answer(w) {
			reply(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": h.idToken(t)})
		}
	})
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h
}

// rotate replaces the key.
func (h *hostile) emailUse(context.Context, people.Identity) (identity.EmailUse, error) {
	return h.use, nil
}

func (h *hostile) rotate(t *testing.T) {
	t.Helper()
	h.key = modelstest.Value(rsa.GenerateKey(rand.Reader, 2048))(t)
}

func reply(w http.ResponseWriter, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

func (h *hostile) idToken(t *testing.T) string {
	claims := map[string]any{
		"iss": h.URL, "sub": "ada", "aud": "portal", "nonce": h.nonce, "email": "ada@example.com", "email_verified": true,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(),
	}
	if h.token != nil {
		h.token(claims)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: h.key, KeyID: "1"}}, nil)
	if h.sign != nil {
		signer = h.sign(h)
	}
	if err != nil {
		t.Error(err)
		return ""
	}
	raw, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Error(err)
	}
	return raw
}

// signIn begins and finishes a sign-in, with these parameters changed in the response.
func (h *hostile) signIn(t *testing.T, parameters url.Values) (people.Identity, error) {
	t.Helper()
	return h.signInAt(t, h.client(), parameters)
}

func (h *hostile) client() *identity.Provider { return identity.New(h.config()) }

func (h *hostile) config() identity.Config {
	return identity.Config{
		Issuer: h.URL, ClientID: "portal", ClientSecret: "hunter2", Name: "Acme ID",
		RedirectURL: "http://portal.test/callback", Now: time.Now,
	}
}

func (h *hostile) signInAt(t *testing.T, p *identity.Provider, parameters url.Values) (people.Identity, error) {
	t.Helper()
	address, request, err := p.Begin(t.Context(), false)
	if err != nil {
		return people.Identity{}, err
	}
	sent := modelstest.Value(url.Parse(address))(t)
	query := sent.Query()
	h.nonce = query.Get("nonce")
	modelstest.Facts(t, query, map[string]bool{
		"challenge method": query.Get("code_challenge_method") == "S256",
		"challenge":        len(query.Get("code_challenge")) == 43,
		"response type":    query.Get("response_type") == "code",
		"scope":            query.Get("scope") == "openid email",
		"state":            len(query.Get("state")) >= 40,
		"nonce":            len(h.nonce) >= 40,
	})
	response := url.Values{"state": {request.State}, "code": {"the code"}}
	maps.Copy(response, parameters)
	return p.Finish(t.Context(), request, response, h.emailUse)
}

func TestIdentityOfAValidResponse(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	found, err := h.signIn(t, nil)
	modelstest.Must(t, err)
	modelstest.Facts(t, found, map[string]bool{
		"issuer":         found.Issuer == h.URL,
		"subject":        found.Subject == "ada",
		"email":          found.Email == "ada@example.com",
		"verified email": found.EmailVerified,
	})
	if h.redeemed.Get("code") != "the code" || len(h.redeemed.Get("code_verifier")) < 43 {
		t.Errorf("the token request is %v", h.redeemed)
	}
	if h.redeemed.Has("client_secret") {
		t.Error("the client secret is not in the Authorization header")
	}
}

func TestForgedIDTokensAreRefused(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(map[string]any){
		"nonce":                     func(c map[string]any) { c["nonce"] = "of another request" },
		"no nonce":                  func(c map[string]any) { delete(c, "nonce") },
		"issuer":                    func(c map[string]any) { c["iss"] = "https://evil.example" },
		"audience":                  func(c map[string]any) { c["aud"] = "another client" },
		"audiences without party":   func(c map[string]any) { c["aud"] = []string{"portal", "another client"} },
		"authorized party":          func(c map[string]any) { c["azp"] = "another client" },
		"expired":                   func(c map[string]any) { c["exp"] = time.Now().Add(-time.Minute).Unix() },
		"not yet valid":             func(c map[string]any) { c["nbf"] = time.Now().Add(time.Hour).Unix() },
		"no subject":                func(c map[string]any) { delete(c, "sub") },
		"long subject":              func(c map[string]any) { c["sub"] = strings.Repeat("a", 256) },
		"subject with a zero byte":  func(c map[string]any) { c["sub"] = "a\x00" },
		"subject that is no string": func(c map[string]any) { c["sub"] = 1 },
	} {
		h := newHostile(t)
		h.token = forge
		if found, err := h.signIn(t, nil); !errors.Is(err, identity.ErrFailed) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	for name, sign := range map[string]func(h *hostile) jose.Signer{
		"with the client secret": func(*hostile) jose.Signer { return signer(t, jose.HS256, []byte("hunter2hunter2hunter2hunter2hunt")) },
		"with another key": func(*hostile) jose.Signer {
			key := modelstest.Value(rsa.GenerateKey(rand.Reader, 2048))(t)
			return signer(t, jose.RS256, key)
		},
	} {
		h := newHostile(t)
		h.sign = sign
		if found, err := h.signIn(t, nil); !errors.Is(err, identity.ErrFailed) {
			t.Errorf("signed %s: %+v, %v", name, found, err)
		}
	}
}

// Others sign in whatever else the provider publishes (RFC 7517, section 5).
func TestOddPublicKeysOfTheProvider(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	for name, entry := range modelstest.OddPublicKeys(t, modelstest.Value(rsa.GenerateKey(rand.Reader, 2048))(t)) {
		h.odd = []any{entry}
		if _, err := h.signIn(t, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A provider with one key may leave out its id, in the key set and in tokens.
func TestKeysOfTheProviderWithoutID(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	h.keyID = ""
	unnamed := func(h *hostile) jose.Signer { return signer(t, jose.RS256, h.key) }
	for _, sign := range []func(*hostile) jose.Signer{nil, unnamed} {
		h.sign = sign
		modelstest.Must(t, errOf(h.signIn(t, nil)))
	}
	h.keyID = "1"
	modelstest.Must(t, errOf(h.signIn(t, nil)))
}

// A provider may use a new key at once, also under the id of the old one.
func TestTheProviderRotatesItsKey(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	p := h.client()
	modelstest.Must(t, errOf(h.signInAt(t, p, nil)))
	h.rotate(t)
	modelstest.Must(t, errOf(h.signInAt(t, p, nil)))
}

func errOf(_ people.Identity, err error) error { return err }

func signer(t *testing.T, algorithm jose.SignatureAlgorithm, key any) jose.Signer {
	t.Helper()
	s := modelstest.Value(jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil))(t)
	return s
}

func TestInvalidResponsesAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		parameters url.Values
		want       error
	}{
		{url.Values{"state": {"another"}}, identity.ErrExpired},
		{url.Values{"state": nil}, identity.ErrExpired},
		{url.Values{"state": nil, "code": nil, "error": {"access_denied"}}, identity.ErrDenied},
		{url.Values{"state": nil, "code": nil, "error": {"server_error"}}, identity.ErrExpired},
		{url.Values{"state": {"another"}, "code": nil, "error": {"access_denied"}}, identity.ErrExpired},
		{url.Values{"code": {"one", "another"}}, identity.ErrExpired},
		{url.Values{"code": nil}, identity.ErrFailed},
		{url.Values{"code": nil, "error": {"access_denied"}}, identity.ErrDenied},
		{url.Values{"error": {"server_error"}}, identity.ErrFailed},
		{url.Values{"iss": {"https://evil.example"}}, identity.ErrExpired},
	} {
		h := newHostile(t)
		if _, err := h.signIn(t, test.parameters); !errors.Is(err, test.want) {
			t.Errorf("%v: %v, want %v", test.parameters, err, test.want)
		}
		if h.redeemed != nil {
			t.Errorf("%v: the code was redeemed", test.parameters)
		}
	}
	h := newHostile(t)
	h.metadata["authorization_response_iss_parameter_supported"] = true
	if _, err := h.signIn(t, nil); !errors.Is(err, identity.ErrExpired) {
		t.Errorf("without the issuer that the provider always sends: %v", err)
	}
	if _, err := h.signIn(t, url.Values{"iss": {h.URL}}); err != nil {
		t.Errorf("with the issuer: %v", err)
	}
	h.metadata["authorization_response_iss_parameter_supported"] = "true"
	if _, err := h.signIn(t, nil); !errors.Is(err, identity.ErrExpired) {
		t.Errorf("without the issuer that the provider says in text to send: %v", err)
	}
	if _, err := identity.New(identity.Config{Issuer: h.URL, Now: time.Now}).Finish(t.Context(), identity.AuthRequest{}, url.Values{"state": {""}}, nil); !errors.Is(err, identity.ErrExpired) {
		t.Errorf("without a request: %v", err)
	}
}

// A provider may close a connection while a request on it is under way. A request for tokens must
// not be sent twice.
func TestSignInUsesNoOldConnection(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	answer := h.Config.Handler
	var used sync.Map // connections
	h.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, again := used.LoadOrStore(r.RemoteAddr, true); again {
			panic(http.ErrAbortHandler) // closes the connection
		}
		answer.ServeHTTP(w, r)
	})
	if _, err := h.signIn(t, nil); err != nil {
		t.Error(err)
	}
}

func TestFailuresOfTheProviderHaveAShortCause(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", 2<<20)
	for name, test := range map[string]struct {
		change func(h *hostile)
		want   error
	}{
		"another issuer": {func(h *hostile) {
			h.metadata["issuer"] = "https://evil.example"
		}, identity.ErrFailed},
		"endpoint without TLS": {func(h *hostile) {
			h.metadata["token_endpoint"] = "ftp://" + h.Listener.Addr().String()
		}, identity.ErrFailed},
		"huge metadata": {func(h *hostile) { h.metadata["x"] = huge }, identity.ErrFailed},
		"redirect": {func(h *hostile) {
			h.answer = func(w http.ResponseWriter) bool {
				w.Header().Set("Location", h.URL+"/token")
				w.WriteHeader(http.StatusTemporaryRedirect)
				return true
			}
		}, identity.ErrFailed},
		"HTML": {func(h *hostile) {
			h.answer = func(w http.ResponseWriter) bool { _, _ = fmt.Fprint(w, "<html>"); return true }
		}, identity.ErrFailed},
		"used code":  {refusing("invalid_grant"), identity.ErrExpired},
		"bad secret": {refusing("invalid_client"), identity.ErrFailed},
		"huge error": {refusing(huge), identity.ErrFailed},
		"another subject at UserInfo": {func(h *hostile) {
			h.metadata["userinfo_endpoint"] = h.URL + "/userinfo"
			h.userInfo = map[string]any{"sub": "eve", "email": "eve@example.com", "email_verified": true}
			h.token = func(c map[string]any) { delete(c, "email") }
		}, identity.ErrFailed},
	} {
		h := newHostile(t)
		test.change(h)
		_, err := h.signIn(t, nil)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text := err.Error(); len(text) > 500 || strings.Contains(text, "hunter2") {
			t.Errorf("%s: the cause is %d bytes long: %.600s", name, len(text), text)
		}
	}
}

// A sign-in needs the ID token only, so whatever else the response of the token endpoint has cannot
// make it fail.
func TestOddResponsesOfTheTokenEndpoint(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	for _, odd := range []string{
		`"expires_in": ""`, `"expires_in": 3599.5`, `"expires_in": "3600.0"`, `"expires_in": "never"`, `"expires_in": {}`, `"expires_in": 1e3`,
		`"token_type": 1`, `"scope": ["openid"]`, `"access_token": null`, `"refresh_token": null, "error": ""`, `"error_description": null`,
	} {
		for _, media := range []string{"application/json", "text/plain; charset=utf-8", "application/x-www-form-urlencoded", ""} {
			h.answer = func(w http.ResponseWriter) bool {
				w.Header().Set("Content-Type", media)
				fmt.Fprintf(w, `{"access_token": "a", "token_type": "Bearer", "id_token": %q, %s}`, h.idToken(t), odd)
				return true
			}
			if _, err := h.signIn(t, nil); err != nil {
				t.Errorf("%s, %s: %v", odd, media, err)
			}
		}
	}
}

// Some providers take the client secret in the body only, without saying so, or do not decode it in
// a header, although RFC 6749 section 2.3.1 says so.
func TestClientSecretInTheWayThatTheProviderTakes(t *testing.T) {
	t.Parallel()
	const secret = "a+b/c= %ü:"
	inHeader := func(r *http.Request) string {
		_, password, _ := r.BasicAuth()
		return password
	}
	for name, test := range map[string]struct {
		methods any
		given   func(r *http.Request) string
	}{
		"header":                     {nil, func(r *http.Request) string { decoded, _ := url.QueryUnescape(inHeader(r)); return decoded }},
		"body, as the metadata say":  {[]string{"client_secret_post"}, func(r *http.Request) string { return r.PostFormValue("client_secret") }},
		"body, metadata in one text": {"client_secret_post", func(r *http.Request) string { return r.PostFormValue("client_secret") }},
		"body, without metadata":     {nil, func(r *http.Request) string { return r.PostFormValue("client_secret") }},
		"not decoded": {[]string{"client_secret_basic"}, func(r *http.Request) string {
			return cmp.Or(inHeader(r), r.PostFormValue("client_secret"))
		}},
	} {
		for _, status := range []int{http.StatusUnauthorized, http.StatusBadRequest} {
			h := newHostile(t)
			h.metadata["token_endpoint_auth_methods_supported"] = test.methods
			answer := h.Config.Handler
			h.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/token" || test.given(r) == secret {
					answer.ServeHTTP(w, r)
					return
				}
				w.WriteHeader(status)
				_, _ = fmt.Fprintf(w, `{"error": "invalid_client", "error_description": "%s is wrong"}`, secret)
			})
			config := h.config()
			config.ClientSecret = secret
			if _, err := h.signInAt(t, identity.New(config), nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			config.ClientSecret = "wrong"
			_, err := h.signInAt(t, identity.New(config), nil)
			if !errors.Is(err, identity.ErrFailed) || !strings.Contains(err.Error(), `"invalid_client"`) {
				t.Errorf("%s, wrong secret: %v", name, err)
			}
		}
	}
}

// The log says what the provider says, without the client secret.
func TestCausesHaveTheDescriptionOfTheProvider(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		parameters url.Values
		change     func(h *hostile)
		want       error
		cause      string
	}{
		{
			parameters: url.Values{"error": {"invalid_scope"}, "error_description": {"AADSTS70011: not valid"}},
			want:       identity.ErrFailed, cause: `"invalid_scope" ("AADSTS70011: not valid")`,
		},
		{
			parameters: url.Values{"error": {"access_denied"}, "error_description": {"Verify your email first"}},
			want:       identity.ErrDenied, cause: `"access_denied" ("Verify your email first")`,
		},
		{
			parameters: url.Values{"state": nil, "error": {"access_denied"}, "error_description": {"Unauthorized"}},
			want:       identity.ErrDenied, cause: `"access_denied" ("Unauthorized")`,
		},
		{
			parameters: url.Values{"state": nil, "error": {"unauthorized_client"}, "error_description": {"Not assigned"}},
			want:       identity.ErrExpired, cause: `"unauthorized_client" ("Not assigned")`,
		},
		{parameters: url.Values{"iss": {"https://login.example.com/"}}, want: identity.ErrExpired, cause: `iss is "https://login.example.com/"`},
		{parameters: url.Values{"code": {"one", "another"}}, want: identity.ErrExpired, cause: "the parameter code 2 times"},
		{parameters: url.Values{"state": {"another"}}, want: identity.ErrExpired, cause: "without a known state: the error is missing"},
		{change: refusing("invalid_grant"), want: identity.ErrExpired, cause: `"invalid_grant" ("… is not the secret")`},
		{change: refusing("invalid_client"), want: identity.ErrFailed, cause: `401 Unauthorized, the error is "invalid_client" ("… is not the secret")`},
		{change: func(h *hostile) {
			answers := []func(h *hostile){refusing("invalid_client"), refusing("invalid_request")}
			h.answer = func(w http.ResponseWriter) bool {
				answer := hostile{}
				answers[0](&answer)
				answers = answers[1:]
				return answer.answer(w)
			}
		}, want: identity.ErrFailed, cause: `401 Unauthorized, the error is "invalid_client" ("… is not the secret"); then with the secret in the`},
		{change: func(h *hostile) { h.token = func(c map[string]any) { c["aud"] = []string{"portal", "api"} } }, want: identity.ErrFailed, cause: "2 audiences (aud) and no authorized party (azp)"},
	} {
		h := newHostile(t)
		if test.change != nil {
			test.change(h)
		}
		if _, err := h.signIn(t, test.parameters); !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.cause) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %s", err, test.cause)
		}
	}
}

// Parameters that are not part of the protocol may occur several times.
func TestOtherParametersOfTheResponseAreIgnored(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	modelstest.Must(t, errOf(h.signIn(t, url.Values{"scope": {"openid", "email"}, "session_state": {"a", "b"}})))
}

// Providers forget to name the algorithm of their ID tokens.
func TestAlgorithmThatTheMetadataDoNotName(t *testing.T) {
	t.Parallel()
	for _, named := range []any{nil, []string{}, []string{"RS256"}, []string{"HS256"}} {
		h := newHostile(t)
		h.metadata["id_token_signing_alg_values_supported"] = named
		h.sign = func(h *hostile) jose.Signer { return signer(t, jose.PS256, jose.JSONWebKey{Key: h.key, KeyID: "1"}) }
		if _, err := h.signIn(t, nil); err != nil {
			t.Errorf("%v: %v", named, err)
		}
	}
}

// Metadata and public keys may be elsewhere, such as at Nextcloud. The secret and tokens stay.
func TestMetadataAndKeysMayBeRedirected(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	answer := h.Config.Handler
	h.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path, moved := strings.CutPrefix(r.URL.Path, "/index.php"); moved {
			r.URL.Path = path
		} else if r.Method == http.MethodGet {
			http.Redirect(w, r, "/index.php"+r.URL.Path, http.StatusMovedPermanently)
			return
		}
		answer.ServeHTTP(w, r)
	})
	modelstest.Must(t, errOf(h.signIn(t, nil)))
	h.metadata["userinfo_endpoint"] = h.URL + "/userinfo"
	h.token = func(c map[string]any) { delete(c, "email") }
	if _, err := h.signIn(t, nil); !errors.Is(err, identity.ErrFailed) || !strings.Contains(err.Error(), "301") {
		t.Errorf("redirected UserInfo: %v", err)
	}
}

func refusing(code string) func(h *hostile) {
	return func(h *hostile) {
		h.answer = func(w http.ResponseWriter) bool {
			w.Header().Set("Content-Type", "application/json")
			status := http.StatusBadRequest
			if code == "invalid_client" {
				status = http.StatusUnauthorized
			}
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": code, "error_description": "hunter2 is not the secret"})
			return true
		}
	}
}

func TestEmailComesFromUserInfo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		verified any
		want     bool
	}{{true, true}, {"true", true}, {false, false}, {"false", false}} {
		h := newHostile(t)
		h.metadata["userinfo_endpoint"] = h.URL + "/userinfo"
		h.userInfo = map[string]any{"sub": "ada", "email": "ada@example.com", "email_verified": test.verified}
		h.token = func(c map[string]any) { delete(c, "email"); delete(c, "email_verified") }
		found, err := h.signIn(t, nil)
		if err != nil || found.Email != "ada@example.com" || found.EmailVerified != test.want {
			t.Errorf("email_verified %v: %+v, %v", test.verified, found, err)
		}
	}
}

func TestConcurrentSignInsShareOneDiscovery(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	p := identity.New(identity.Config{Issuer: h.URL, ClientID: "portal", ClientSecret: "hunter2", Now: time.Now})
	results := make(chan error)
	for range 20 {
		go func() {
			_, _, err := p.Begin(context.Background(), false)
			results <- err
		}()
	}
	for range 20 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := h.requests.Load(); n != 1 {
		t.Errorf("%d requests for the metadata", n)
	}
}

func TestOldMetadataAreUsedWhileTheProviderIsAway(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	now := time.Now()
	p := identity.New(identity.Config{Issuer: h.URL, ClientID: "portal", ClientSecret: "hunter2", Now: func() time.Time { return now }})
	if _, _, err := p.Begin(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	h.Close()
	now = now.Add(2 * time.Hour)
	if address, _, err := p.Begin(t.Context(), true); err != nil || !strings.Contains(address, "max_age=0") || !strings.Contains(address, "prompt=login") {
		t.Errorf("%s, %v", address, err)
	}
}

func TestNewAddressOfThePublicKeysIsReadAtOnce(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	now := time.Now().Add(-2 * time.Minute)
	config := h.config()
	config.Now = func() time.Time { return now }
	p := identity.New(config)
	h.metadata["jwks_uri"] = h.URL + "/old-keys"
	if _, err := h.signInAt(t, p, nil); !errors.Is(err, identity.ErrFailed) {
		t.Errorf("without public keys: %v", err)
	}
	delete(h.metadata, "jwks_uri")
	if _, err := h.signInAt(t, p, nil); !errors.Is(err, identity.ErrFailed) {
		t.Errorf("within a minute of reading the metadata: %v", err)
	}
	now = now.Add(2 * time.Minute)
	if _, err := h.signInAt(t, p, nil); err != nil {
		t.Errorf("after the public keys have moved: %v", err)
	}
	if n := h.requests.Load(); n != 2 {
		t.Errorf("%d requests for the metadata", n)
	}
}

func TestIdentityHasTheTimeOfTheSignIn(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	if found, err := h.signIn(t, nil); err != nil || !found.AuthenticatedAt.IsZero() {
		t.Errorf("without auth_time: %+v, %v", found, err)
	}
	h.token = func(c map[string]any) { c["auth_time"] = 1_700_000_000 }
	if found, err := h.signIn(t, nil); err != nil || found.AuthenticatedAt.Unix() != 1_700_000_000 {
		t.Errorf("with auth_time: %+v, %v", found, err)
	}
}

func TestUserInfoRefusesOnlyWhatNeedsAnEmail(t *testing.T) {
	t.Parallel()
	works := map[string]any{"sub": "ada", "email": []string{"ada@example.com"}, "email_verified": "True"}
	for name, test := range map[string]struct {
		userInfo map[string]any
		use      identity.EmailUse
		email    string
		asked    int
		want     error
	}{
		"connected":                  {works, identity.EmailUnused, "", 0, nil},
		"shown":                      {works, identity.EmailShown, "ada@example.com", 1, nil},
		"required":                   {works, identity.EmailRequired, "ada@example.com", 1, nil},
		"connected, another subject": {map[string]any{"sub": "eve"}, identity.EmailUnused, "", 0, nil},
		"shown, another subject":     {map[string]any{"sub": "eve"}, identity.EmailShown, "", 1, identity.ErrFailed},
		"shown, 401":                 {map[string]any{"status": 401}, identity.EmailShown, "", 1, nil},
		"shown, no answer":           {map[string]any{"status": 504}, identity.EmailShown, "", 1, nil},
		"required, 401":              {map[string]any{"status": 401}, identity.EmailRequired, "", 1, identity.ErrFailed},
		"required, no answer":        {map[string]any{"status": 504}, identity.EmailRequired, "", 1, identity.ErrFailed},
		"shown, no subject":          {map[string]any{"error": "hunter2"}, identity.EmailShown, "", 1, nil},
		"required, no subject":       {map[string]any{"error": "hunter2"}, identity.EmailRequired, "", 1, identity.ErrFailed},
		"required, unreadable":       {map[string]any{"sub": "ada", "email": 7}, identity.EmailRequired, "", 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHostile(t)
			h.metadata["userinfo_endpoint"] = h.URL + "/userinfo"
			h.userInfo, h.use = test.userInfo, test.use
			h.token = func(c map[string]any) { delete(c, "email"); delete(c, "email_verified") }
			found, err := h.signIn(t, nil)
			if !errors.Is(err, test.want) || found.Email != test.email || found.EmailVerified != (test.email != "") || h.asked != test.asked {
				t.Errorf("%+v, asked %d times, %v", found, h.asked, err)
			}
		})
	}
	h := newHostile(t)
	h.metadata["userinfo_endpoint"] = h.URL + "/userinfo"
	h.token = func(c map[string]any) { delete(c, "email_verified") }
	h.userInfo = map[string]any{"status": 401}
	if found, err := h.signIn(t, nil); err != nil || found.Email != "ada@example.com" || found.EmailVerified {
		t.Errorf("an email that is not known to be verified: %+v, %v", found, err)
	}
	h.userInfo = works
	if found, err := h.signIn(t, nil); err != nil || found.Email != "ada@example.com" || !found.EmailVerified {
		t.Errorf("an email that only UserInfo says is verified: %+v, %v", found, err)
	}
}

// Most providers put the email into the ID token, so most sign-ins need no UserInfo endpoint.
func TestUserInfoMayHaveNoUsableAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []any{"/userinfo", "ftp://127.0.0.1/userinfo", "::"} {
		h := newHostile(t)
		h.metadata["userinfo_endpoint"] = address
		if found, err := h.signIn(t, nil); err != nil || found.Email != "ada@example.com" {
			t.Errorf("%v, not needed: %+v, %v", address, found, err)
		}
		h.token = func(c map[string]any) { delete(c, "email") }
		if _, err := h.signIn(t, nil); !errors.Is(err, identity.ErrFailed) || !strings.Contains(err.Error(), "is not a valid") {
			t.Errorf("%v, needed: %v", address, err)
		}
	}
}

func TestFailureOfTheTokenEndpointHasItsStatus(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	h.answer = func(w http.ResponseWriter) bool {
		http.Error(w, "<html>hunter2</html>", http.StatusBadGateway)
		return true
	}
	if _, err := h.signIn(t, nil); !errors.Is(err, identity.ErrFailed) || !strings.Contains(err.Error(), "502") || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestClaimsInTheShapesThatProvidersSend(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	account := uuid.NewString()
	for _, shapes := range []map[string]any{
		{"email": []string{"ada@example.com"}, "email_verified": "true", "auth_time": "1700000000", "portal_account": []string{account}, "portal_role": "owner"},
		{"email_verified": "True", "auth_time": 1.7e9, "portal_account": account, "portal_role": []string{"owner"}},
		{"auth_time": 1700000000.75, "portal_account": account, "portal_role": "owner", "azp": nil},
		{"email_verified": 1, "auth_time": 1700000000, "portal_account": account, "portal_role": "owner"},
		{"email_verified": []any{true}, "auth_time": 1700000000, "portal_account": account, "portal_role": "owner"},
	} {
		h.token = func(c map[string]any) { maps.Copy(c, shapes) }
		found, err := h.signIn(t, nil)
		if err != nil || found.Access == nil {
			t.Errorf("%v: %+v, %v", shapes, found, err)
			continue
		}
		if found.Email != "ada@example.com" || !found.EmailVerified || found.AuthenticatedAt.Unix() != 1_700_000_000 {
			t.Errorf("%v: %+v", shapes, found)
		}
		if found.Access.AccountID.String() != account || found.Access.Role != people.RoleOwner {
			t.Errorf("%v: access %+v", shapes, found.Access)
		}
	}
	for _, odd := range []any{nil, true, -1, 1e300, "", "soon", "NaN", []any{}, []any{"a", "b"}, []any{1}, map[string]any{"a": "b"}, "a\x00b", 1700000000000} {
		for _, name := range []string{"email", "email_verified", "auth_time", "portal_account", "portal_role"} {
			h.token = func(c map[string]any) { c[name] = odd }
			found, err := h.signIn(t, nil)
			if err != nil || found.Access != nil || !found.AuthenticatedAt.IsZero() || strings.ContainsRune(found.Email, 0) {
				t.Errorf("%s %v: %+v, %v", name, odd, found, err)
			}
		}
	}
}
