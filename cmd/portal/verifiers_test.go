package main

import (
	"encoding/base64"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/golang-jwt/jwt/v5"

	"portal/models/modelstest"
	"portal/models/secret"
	"portal/models/widget"
)

// verify verifies a token without our code and returns its agent's id.
type verify func(token string) (agentID string, err error)

// The browser tests verify tokens with jose and PyJWT.
func TestStandardLibrariesVerifyTokens(t *testing.T) {
	t.Parallel()
	for _, algorithms := range []string{"EdDSA", "ES256,EdDSA"} {
		t.Run(algorithms, func(t *testing.T) {
			t.Parallel()
			signing, _, _ := strings.Cut(algorithms, ",")
			i, account := startWithAccount(t, modelstest.SQLiteURL(t), "PORTAL_WIDGET_TOKEN_ALG="+algorithms)
			s := signer{i, account}
			s.check(t, "golang-jwt with keyfunc", withKeyfunc(t, s.URL, signing))
			s.check(t, "go-oidc", withOIDC(t, s.URL))
			s.check(t, "go-oidc without discovery", withRemoteKeys(t, s.URL, signing))
			s.check(t, "the guide's program", withGuide(t, s.URL))
		})
	}
}

// signer is a portal with an agent whose tokens are verified.
type signer struct {
	*instance

	account accountWithKey
}

// check checks that a verifier accepts a token of the portal and no other.
func (s signer) check(t *testing.T, name string, verify verify) {
	t.Helper()
	token := s.token(t, s.account.secret, s.account.agentID)
	if agentID, err := verify(token); err != nil || agentID != s.account.agentID.String() {
		t.Errorf("%s: agent %q, error %v, want %s", name, agentID, err, s.account.agentID)
	}
	algorithm := widget.Algorithm(fmt.Sprint(tokenHeader(t, token)["alg"]))
	parts := strings.Split(token, ".")
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"at+jwt","alg":"none"}`))
	_, ownSecret, _ := strings.Cut(testSecret, "=")
	elsewhere := "https://elsewhere.example"
	for wrong, token := range map[string]string{
		"with a changed signature":      parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])),
		"without a signature":           parts[0] + "." + parts[1] + ".",
		"with the algorithm none":       unsigned + "." + parts[1] + ".",
		"signed with another secret":    signToken(t, strings.Repeat("another", 5), s.URL, algorithm, time.Now),
		"of another issuer":             signToken(t, ownSecret, elsewhere, algorithm, time.Now),
		"expired":                       signToken(t, ownSecret, s.URL, algorithm, func() time.Time { return time.Now().Add(-time.Hour) }),
		"that is an API key":            s.account.secret,
		"that is empty":                 "",
		"with claims of another token":  parts[0] + "." + strings.Split(signToken(t, ownSecret, s.URL, algorithm, time.Now), ".")[1] + "." + parts[2],
		"with another algorithm's name": base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"at+jwt","alg":"HS256"}`)) + "." + parts[1] + "." + parts[2],
	} {
		if agentID, err := verify(token); err == nil {
			t.Errorf("%s accepts a token %s, of agent %q", name, wrong, agentID)
		}
	}
}

// signToken returns a token that a portal with this secret and issuer signs at a time.
func signToken(t *testing.T, current, issuer string, algorithm widget.Algorithm, now func() time.Time) string {
	t.Helper()
	keyring := modelstest.Value(secret.NewKeyring(current, ""))(t)
	token, _, err := widget.NewTokens(keyring, issuer, time.Minute, now, algorithm).Issue(nil, widget.Grant{})
	modelstest.Must(t, err)
	return string(token)
}

func withKeyfunc(t *testing.T, issuer, algorithm string) verify {
	t.Helper()
	keys := modelstest.Value(keyfunc.NewDefaultCtx(t.Context(), []string{issuer + "/.well-known/jwks.json"}))(t)
	return func(token string) (string, error) {
		claims := jwt.MapClaims{}
		_, err := jwt.ParseWithClaims(token, claims, keys.Keyfunc, jwt.WithValidMethods([]string{algorithm}),
			jwt.WithIssuer(issuer), jwt.WithAudience("widget"), jwt.WithExpirationRequired())
		return fmt.Sprint(claims["agent_id"]), err
	}
}

// withGuide verifies with verify.go of the guide.
func withGuide(t *testing.T, issuer string) verify {
	t.Helper()
	program := buildProgram(t, guideFiles+"verify.go.txt", map[string]string{"BASE_URL": issuer})
	return func(token string) (string, error) {
		output, err := exec.CommandContext(t.Context(), program, token).Output()
		return strings.TrimSpace(string(output)), err
	}
}

// go-oidc finds the keys and the algorithms by the discovery document.
func withOIDC(t *testing.T, issuer string) verify {
	t.Helper()
	provider := modelstest.Value(oidc.NewProvider(t.Context(), issuer))(t)
	return verifyWith(t, provider.Verifier(&oidc.Config{ClientID: "widget"}))
}

// Without discovery, go-oidc accepts RS256 only, unless SupportedSigningAlgs names other
// algorithms.
func withRemoteKeys(t *testing.T, issuer, algorithm string) verify {
	t.Helper()
	keys := oidc.NewRemoteKeySet(t.Context(), issuer+"/.well-known/jwks.json")
	return verifyWith(t, oidc.NewVerifier(issuer, keys, &oidc.Config{ClientID: "widget", SupportedSigningAlgs: []string{algorithm}}))
}

func verifyWith(t *testing.T, verifier *oidc.IDTokenVerifier) verify {
	t.Helper()
	return func(token string) (string, error) {
		verified, err := verifier.Verify(t.Context(), token)
		if err != nil {
			return "", err
		}
		var claims struct {
			AgentID string `json:"agent_id"`
		}
		err = verified.Claims(&claims)
		return claims.AgentID, err
	}
}
