package workload_test

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"portal/models/keyset"
	"portal/models/workload"
)

var now = time.Unix(1_800_000_000, 0)

// gitHubClaims are those of a real job, see the documentation of GitHub.
func gitHubClaims() map[string]any {
	return map[string]any{
		"jti": "example-id", "sub": "repo:octo-org/octo-repo:environment:prod", "environment": "prod", "aud": "https://portal.example.com",
		"ref": "refs/heads/main", "sha": "example-sha", "repository": "octo-org/octo-repo", "repository_owner": "octo-org",
		"actor_id": "12", "repository_visibility": "private", "repository_id": "74", "repository_owner_id": "65", "run_id": "example-run-id",
		"run_number": "10", "run_attempt": "2", "runner_environment": "github-hosted", "actor": "octocat", "workflow": "example-workflow",
		"head_ref": "", "base_ref": "", "event_name": "workflow_dispatch", "ref_type": "branch",
		"job_workflow_ref": "octo-org/octo-automation/.github/workflows/oidc.yml@refs/heads/main",
		"iss":              "https://token.actions.githubusercontent.com", "nbf": now.Unix() - 10, "exp": now.Unix() + 300, "iat": now.Unix(),
	}
}

// kubernetesClaims are those of a projected token, see the documentation of Kubernetes.
func kubernetesClaims() map[string]any {
	return map[string]any{
		"aud": []string{"https://portal.example.com"}, "exp": now.Unix() + 3600, "iat": now.Unix(), "nbf": now.Unix(),
		"iss": "https://oidc.eks.eu-central-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF", "jti": "ea28ed49-2e11-4280-9ec5-bc3d1d84661a",
		"kubernetes.io": map[string]any{
			"namespace": "shop", "node": map[string]any{"name": "n1", "uid": "1"}, "pod": map[string]any{"name": "backend-1", "uid": "2"},
			"serviceaccount": map[string]any{"name": "backend", "uid": "3"},
		},
		"sub": "system:serviceaccount:shop:backend",
	}
}

func gitHubRule() workload.Rule {
	return workload.Rule{
		Provider: workload.GitHub, Issuer: "https://token.actions.githubusercontent.com", Audience: "https://portal.example.com",
		Claims: map[string][]string{"repository": {"octo-org/octo-repo"}, "environment": {"prod"}},
	}
}

var rsaKey = must(rsa.GenerateKey(rand.Reader, 2048))

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// sign returns a token with these parts, signed by go-jose.
func sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, header, claims map[string]any) string {
	t.Helper()
	options := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{"kid": "1", "typ": "JWT"}}
	for name, value := range header {
		options.ExtraHeaders[jose.HeaderKey(name)] = value
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(must(json.Marshal(claims)))
	if err != nil {
		t.Fatal(err)
	}
	return must(signed.CompactSerialize())
}

// publicKey returns a public key as a JWKS of one key has it.
func publicKey(t *testing.T, private crypto.Signer) []jose.JSONWebKey {
	t.Helper()
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: private.Public(), KeyID: "1", Use: "sig"}}}
	return must(keyset.ParseNamed(must(json.Marshal(set)))).ByID()["1"]
}

// verify returns the claims of a token, as the token endpoint does.
func verify(token string, keys []jose.JSONWebKey) (workload.Claims, error) {
	parsed, err := workload.Parse(token)
	if err != nil {
		return workload.Claims{}, err
	}
	return parsed.Verify(keys)
}

func TestAlgorithms(t *testing.T) {
	t.Parallel()
	p256, p384 := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	keys := map[jose.SignatureAlgorithm]crypto.Signer{
		jose.RS256: rsaKey, jose.RS384: rsaKey, jose.RS512: rsaKey, jose.PS256: rsaKey, jose.ES256: p256, jose.ES384: p384, jose.EdDSA: ed,
	}
	for algorithm, key := range keys {
		token := sign(t, algorithm, key, nil, gitHubClaims())
		claims, err := verify(token, publicKey(t, key))
		if err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
		if reason := claims.Check(gitHubRule(), nil, now); reason != "" {
			t.Errorf("%s: %s", algorithm, reason)
		}
		for other, wrong := range keys {
			_, isRSA := key.(*rsa.PrivateKey)
			_, wrongIsRSA := wrong.(*rsa.PrivateKey)
			if other != algorithm && (!isRSA || !wrongIsRSA) {
				if _, err := verify(token, publicKey(t, wrong)); !errors.Is(err, workload.ErrInvalid) {
					t.Errorf("%s with a key for %s: %v", algorithm, other, err)
				}
			}
		}
	}
}

func TestForgedSubjectTokens(t *testing.T) {
	t.Parallel()
	public := publicKey(t, rsaKey)
	good := sign(t, jose.RS256, rsaKey, nil, gitHubClaims())
	parts := strings.Split(good, ".")
	der := must(x509.MarshalPKIXPublicKey(rsaKey.Public()))
	encode := func(value any) string { return base64.RawURLEncoding.EncodeToString(must(json.Marshal(value))) }
	header := func(name string, value any) string {
		fields := map[string]any{"alg": "RS256", "kid": "1", "typ": "JWT"}
		fields[name] = value
		return encode(fields) + "." + parts[1] + "." + parts[2]
	}
	without := gitHubClaims()
	delete(without, "iss")
	for name, token := range map[string]string{
		"empty": "", "dots": "..", "words": "a token", "one part too few": parts[0] + "." + parts[1], "one too many": good + ".x",
		"an API key": "nas_" + strings.Repeat("0", 36), "JSON": `{"payload":"","signatures":[]}`,
		"not signed": parts[0] + "." + parts[1] + ".", "none": encode(map[string]any{"alg": "none", "kid": "1"}) + "." + parts[1] + ".",
		"none with a signature":    header("alg", "none"),
		"HMAC with the public key": sign(t, jose.HS256, der, nil, gitHubClaims()),
		"PS384":                    sign(t, jose.PS384, rsaKey, nil, gitHubClaims()),
		"jku":                      sign(t, jose.RS256, rsaKey, map[string]any{"jku": "https://evil.example.com"}, gitHubClaims()),
		"x5u":                      sign(t, jose.RS256, rsaKey, map[string]any{"x5u": "https://evil.example.com"}, gitHubClaims()),
		"a key inside":             header("jwk", map[string]any{"kty": "RSA"}),
		"critical":                 header("crit", []string{"exp"}),
		"no kid":                   sign(t, jose.RS256, rsaKey, map[string]any{"kid": ""}, gitHubClaims()),
		"kid a number":             header("kid", 1),
		"no issuer":                sign(t, jose.RS256, rsaKey, nil, without),
		"another signature":        parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])),
		"another key":              sign(t, jose.RS256, must(rsa.GenerateKey(rand.Reader, 2048)), nil, gitHubClaims()),
		"other claims":             parts[0] + "." + encode(kubernetesClaims()) + "." + parts[2],
		"claims a list":            parts[0] + "." + encode([]int{1}) + "." + parts[2],
		"a line break":             parts[0] + ".\n" + parts[1] + "." + parts[2],
		"padded":                   good + "=", "spaces": " " + good, "too long": good + strings.Repeat("A", workload.MaxToken),
	} {
		if _, err := verify(token, public); !errors.Is(err, workload.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := verify(good, public); err != nil {
		t.Error(err)
	}
}

// claimsOf returns the verified claims of a token with these changes.
func claimsOf(t *testing.T, claims, changes map[string]any) workload.Claims {
	t.Helper()
	changed := maps.Clone(claims)
	for name, value := range changes {
		if value == nil {
			delete(changed, name)
		} else {
			changed[name] = value
		}
	}
	verified, err := verify(sign(t, jose.RS256, rsaKey, nil, changed), publicKey(t, rsaKey))
	if err != nil {
		t.Fatal(err)
	}
	return verified
}

func TestCheckSubjectToken(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		changes map[string]any
		reason  string
	}{
		{"a real job", nil, ""},
		{"an audience in a list", map[string]any{"aud": []string{"https://portal.example.com"}}, ""},
		{"two audiences", map[string]any{"aud": []string{"https://portal.example.com", "x"}}, "aud has 2 values"},
		{"no audience", map[string]any{"aud": nil}, "aud is missing"},
		{"an empty list", map[string]any{"aud": []string{}}, "aud has 0 values"},
		{"another audience", map[string]any{"aud": "https://github.com/octo-org"}, "aud is https://github.com/octo-org"},
		{"an audience with a slash", map[string]any{"aud": "https://portal.example.com/"}, "aud is https://portal.example.com/"},
		{"another environment", map[string]any{"environment": "staging"}, "environment is staging"},
		{"no environment", map[string]any{"environment": nil}, "environment is missing"},
		{"an object", map[string]any{"environment": map[string]any{"prod": true}}, "environment is missing"},
		{"a list", map[string]any{"environment": []string{"prod"}}, "environment is missing"},
		{"another case", map[string]any{"repository": "Octo-Org/octo-repo"}, "repository is Octo-Org/octo-repo"},
		{"a longer name", map[string]any{"repository": "octo-org/octo-repo-evil"}, "repository is octo-org/octo-repo-evil"},
		{"control characters", map[string]any{"environment": "a\nb\u202e"}, "environment is a\uFFFDb\uFFFD"},
		{"expired", map[string]any{"exp": now.Unix()}, "the token expired at 2027-01-15T08:00:00Z"},
		{"no expiry", map[string]any{"exp": nil}, "exp is missing"},
		{"an expiry in words", map[string]any{"exp": "tomorrow"}, "exp is missing"},
		{"too large an expiry", map[string]any{"exp": 1e300}, "exp is missing"},
		{"a fraction", map[string]any{"exp": float64(now.Unix()) + 0.5}, ""},
		{"no iat", map[string]any{"iat": nil}, "iat is missing"},
		{"a clock ahead", map[string]any{"iat": now.Unix() + 60, "nbf": now.Unix() + 60}, ""},
		{"iat in the future", map[string]any{"iat": now.Unix() + 61}, "iat is in the future"},
		{"nbf in the future", map[string]any{"nbf": now.Unix() + 61}, "nbf is in the future"},
		{"an nbf of zero, as of old Keycloaks", map[string]any{"nbf": 0}, ""},
		{"an nbf that is null", map[string]any{"nbf": json.RawMessage("null")}, ""},
		{"an nbf in words", map[string]any{"nbf": "tomorrow"}, "nbf is not a time"},
		{"the longest life", map[string]any{"exp": now.Unix() + 86_700}, ""},
		{"a longer life", map[string]any{"exp": now.Unix() + 86_701}, "the token is valid for more than 24 hours and 5 minutes"},
		{"no jti", map[string]any{"jti": nil}, "jti is missing"},
		{"another repository id", map[string]any{"repository_id": "75"}, "repository_id is 75 instead of 74"},
		{"a number", map[string]any{"repository_id": 74}, ""},
		{"no repository id", map[string]any{"repository_id": nil}, "repository_id is missing"},
	} {
		pins := map[string]string{"repository_id": "74", "repository_owner_id": "65"}
		if reason := claimsOf(t, gitHubClaims(), test.changes).Check(gitHubRule(), pins, now); reason != test.reason {
			t.Errorf("%s: %q", test.name, reason)
		}
	}
	if reason := claimsOf(t, gitHubClaims(), map[string]any{"repository_owner_id": nil}).Check(gitHubRule(), nil, now); reason != "repository_owner_id is missing" {
		t.Errorf("a first token without a claim to pin: %q", reason)
	}
	pod := workload.Rule{Provider: workload.Kubernetes, Audience: "https://portal.example.com", Claims: map[string][]string{"sub": {"system:serviceaccount:shop:backend"}}}
	if reason := claimsOf(t, kubernetesClaims(), nil).Check(pod, nil, now); reason != "" {
		t.Errorf("a pod: %q", reason)
	}
	person := workload.Rule{Provider: workload.Google, Audience: "a", Claims: map[string][]string{"email": {"a@example.com"}}}
	google := map[string]any{"iss": "https://accounts.google.com", "aud": "a", "iat": now.Unix(), "exp": now.Unix() + 60, "email": "a@example.com"}
	for verified, want := range map[any]string{true: "", false: "email is not verified", "": "email is not verified"} {
		if reason := claimsOf(t, google, map[string]any{"email_verified": verified}).Check(person, nil, now); reason != want {
			t.Errorf("email_verified %v: %q", verified, reason)
		}
	}
}

func TestCleanRule(t *testing.T) {
	t.Parallel()
	own := "http://127.0.0.1:8443"
	issuers := workload.Issuers{Own: []string{own}}
	set := must(json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: rsaKey.Public(), KeyID: "1"}}}))
	private := must(json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: rsaKey, KeyID: "1"}}}))
	small := must(json.Marshal(map[string]any{"keys": []any{map[string]any{"kty": "RSA", "kid": "1", "n": "AQAB", "e": "AQAB"}}}))
	for _, test := range []struct {
		name   string
		change func(*workload.Rule)
		field  string // empty: the rule is right
	}{
		{"GitHub", func(*workload.Rule) {}, ""},
		{"no provider", func(r *workload.Rule) { r.Provider = "" }, "provider"},
		{"no audience", func(r *workload.Rule) { r.Audience = "" }, "audience"},
		{"no issuer", func(r *workload.Rule) { r.Issuer = "" }, "issuer"},
		{"http", func(r *workload.Rule) { r.Issuer = "http://token.actions.githubusercontent.com" }, "issuer"},
		{"a query", func(r *workload.Rule) { r.Issuer += "?x" }, "issuer"},
		{"a user", func(r *workload.Rule) { r.Issuer = "https://a@token.actions.githubusercontent.com" }, "issuer"},
		{"a port", func(r *workload.Rule) { r.Issuer += ":8443" }, "issuer"},
		{"a host in capitals", func(r *workload.Rule) { r.Issuer = "https://TOKEN.actions.githubusercontent.com" }, "issuer"},
		{"an enterprise", func(r *workload.Rule) { r.Issuer += "/acme" }, ""},
		{"a path", func(r *workload.Rule) { r.Issuer += "/acme/site" }, "issuer"},
		{"a path with its keys", func(r *workload.Rule) { r.Issuer, r.JWKS = r.Issuer+"/acme/site", set }, "issuer"},
		{"loopback", func(r *workload.Rule) { r.Issuer = "http://127.0.0.1:8080" }, "issuer"},
		{"the operator's issuer", func(r *workload.Rule) { r.Issuer = own }, ""},
		{"another provider's issuer", func(r *workload.Rule) { r.Issuer = "https://gitlab.com" }, "issuer"},
		{"a shared issuer as other", func(r *workload.Rule) { r.Provider = workload.Other }, "issuer"},
		{"in capitals", func(r *workload.Rule) { r.Provider, r.Issuer, r.JWKS = workload.Other, "https://GitLab.com", set }, "issuer"},
		{"an enterprise server", func(r *workload.Rule) { r.Issuer = "https://github.acme.com/_services/token" }, "jwks"},
		{"with its keys", func(r *workload.Rule) { r.Issuer, r.JWKS = "https://github.acme.com/_services/token", set }, ""},
		{"with private keys", func(r *workload.Rule) { r.Issuer, r.JWKS = "https://github.acme.com/_services/token", private }, "jwks"},
		{"with short keys", func(r *workload.Rule) { r.Issuer, r.JWKS = "https://github.acme.com/_services/token", small }, "jwks"},
		{"with HTML", func(r *workload.Rule) { r.Issuer, r.JWKS = "https://github.acme.com/_services/token", []byte("<p>") }, "jwks"},
		{"keys that are fetched", func(r *workload.Rule) { r.JWKS = set }, "jwks"},
		{"no claims", func(r *workload.Rule) { r.Claims = nil }, "claims"},
		{"none that identifies", func(r *workload.Rule) { delete(r.Claims, "repository") }, "claims.repository"},
		{"a reserved claim", func(r *workload.Rule) { r.Claims["aud"] = []string{"x"} }, "claims.aud"},
		{"a wildcard", func(r *workload.Rule) { r.Claims["repository"] = []string{"octo-org/*"} }, "claims.repository"},
		{"no values", func(r *workload.Rule) { r.Claims["ref"] = nil }, "claims.ref"},
		{"an empty value", func(r *workload.Rule) { r.Claims["ref"] = []string{""} }, "claims.ref"},
		{"a line break", func(r *workload.Rule) { r.Claims["ref"] = []string{"a\nb"} }, "claims.ref"},
		{"too long a value", func(r *workload.Rule) { r.Claims["ref"] = []string{strings.Repeat("x", 501)} }, "claims.ref"},
		{"too many values", func(r *workload.Rule) { r.Claims["ref"] = strings.Split("abcdefghijk", "") }, "claims.ref"},
		{"too many claims", func(r *workload.Rule) {
			for _, name := range strings.Split("abcdefghi", "") {
				r.Claims[name] = []string{"1"}
			}
		}, "claims"},
		{"other", func(r *workload.Rule) {
			*r = workload.Rule{Provider: workload.Other, Issuer: "https://ci.acme.com", Audience: "a", Claims: map[string][]string{"sub": {"x"}}, JWKS: set}
		}, ""},
	} {
		rule := gitHubRule()
		test.change(&rule)
		_, problems := rule.Clean(issuers)
		if test.field == "" && len(problems) > 0 || test.field != "" && !slices.ContainsFunc(problems, func(p workload.Problem) bool { return p.Field == test.field }) {
			t.Errorf("%s: %+v", test.name, problems)
		}
	}
}

// Of pasted keys only what is public is stored, so that no private key is.
func TestPastedKeysAreStoredWithoutOtherMembers(t *testing.T) {
	t.Parallel()
	var key map[string]any
	if err := json.Unmarshal(must(json.Marshal(jose.JSONWebKey{Key: rsaKey.Public(), KeyID: "1"})), &key); err != nil {
		t.Fatal(err)
	}
	want := string(must(json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: rsaKey.Public(), KeyID: "1"}}})))
	key["n"] = base64.StdEncoding.EncodeToString(rsaKey.N.Bytes())
	for _, name := range []string{"p", "q", "dp", "dq", "qi", "oth", "D", "K", "priv", "x5c", "note"} {
		key[name] = "c2VjcmV0"
	}
	rule := gitHubRule()
	rule.Issuer = "https://github.acme.com/_services/token"
	rule.JWKS = must(json.Marshal(map[string]any{"note": "c2VjcmV0", "keys": []any{key, map[string]any{"kid": "2", "kty": "X", "P": "c2VjcmV0"}}}))
	for range 2 {
		var problems []workload.Problem
		if rule, problems = rule.Clean(workload.Issuers{}); len(problems) > 0 || string(rule.JWKS) != want {
			t.Fatalf("%s, %v, want %s", rule.JWKS, problems, want)
		}
	}
}

// A refusal of pasted keys names what is wrong with them.
func TestRefusedPastedKeysAreNamed(t *testing.T) {
	t.Parallel()
	rule := gitHubRule()
	rule.Issuer, rule.JWKS = "https://github.acme.com/_services/token", []byte(`{"keys":[{"kty":"EC","kid":"7","crv":"secp256k1","x":"AA","y":"AA"}]}`)
	_, problems := rule.Clean(workload.Issuers{})
	if len(problems) != 1 || !strings.HasSuffix(problems[0].Message, `entry 1 ("7"): a key of the type "EC secp256k1" is not supported.`) {
		t.Errorf("%+v", problems)
	}
}

func TestWhoCanUse(t *testing.T) {
	t.Parallel()
	rule := gitHubRule()
	rule.Claims["environment"] = []string{"prod", "staging"}
	rule.Claims["run_attempt"] = []string{"1"}
	if text := rule.String(); text != "Jobs of octo-org/octo-repo in environment prod or staging with run_attempt 1" {
		t.Error(text)
	}
	for _, platform := range workload.Platforms() {
		rule := workload.Rule{Provider: platform.Provider, Issuer: "https://ci.acme.com", Claims: map[string][]string{"x": {"1"}}}
		for _, claim := range platform.Claims {
			rule.Claims[claim.Name] = []string{claim.Example}
			if !strings.Contains(rule.String(), claim.Example) {
				t.Errorf("%q lacks %s", rule, claim.Name)
			}
		}
	}
}

// The hosts of providers may also serve files of their users, which are no issuers.
func TestIssuersOfProviders(t *testing.T) {
	t.Parallel()
	for issuer, want := range map[string]bool{
		"https://gitlab.com": true, "https://gitlab.com/": false, "https://gitlab.com/evil/site/-/raw/main": false,
		"https://oidc.vercel.com": true, "https://oidc.vercel.com/..": false, "https://accounts.google.com/x": false,
		"https://login.microsoftonline.com/../v2.0": false, "https://login.microsoftonline.com/0198c2f4/%2e%2e/v2.0": false,
		"https://oidc.eks.eu-central-1.amazonaws.com": false,
	} {
		if fetched := (workload.Issuers{}).Fetched(issuer); fetched != want {
			t.Errorf("%s: %t", issuer, fetched)
		}
	}
	for _, platform := range workload.Platforms() {
		if issuer := cmp.Or(platform.Issuer, platform.Example); !(workload.Issuers{}).Fetched(issuer) && platform.Provider != workload.Other {
			t.Errorf("%s is not fetched", issuer)
		}
	}
}

func TestHostsOfKeys(t *testing.T) {
	t.Parallel()
	issuers := workload.Issuers{Own: []string{"http://127.0.0.1:8443"}}
	for keys, want := range map[string]map[string]bool{
		"https://accounts.google.com": {
			"https://www.googleapis.com/oauth2/v3/certs": true, "https://accounts.google.com/keys": true, "http://www.googleapis.com/x": false,
			"https://evil.example.com/": false, "https://www.googleapis.com:8443/": false, "https://www.googleapis.com@evil.example.com/": false, "": false,
		},
		"http://127.0.0.1:8443": {"http://127.0.0.1:8443/jwks": true, "http://127.0.0.1:9000/jwks": false, "file:///etc/passwd": false},
	} {
		for at, allowed := range want {
			if got := issuers.AllowsKeys(keys, at); got != allowed {
				t.Errorf("%s for %s: %t", at, keys, got)
			}
		}
	}
}
