package handlerstest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"portal/models/modelstest"
)

// Issuer is a platform that gives its workloads tokens, and publishes its public keys.
type Issuer struct {
	URL     string
	Fetches atomic.Int64 // of the discovery document and of the keys
	Beside  []any        // entries of the published set before the key

	t testing.TB

	mu     sync.Mutex
	key    *rsa.PrivateKey
	keyID  int
	answer http.HandlerFunc // in place of the documents; nil: the documents
}

// NewIssuer starts an issuer.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t}
	i.Rotate()
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.URL = server.URL
	return i
}

// Rotate replaces the key.
func (i *Issuer) Rotate() {
	i.t.Helper()
	key := modelstest.Value(rsa.GenerateKey(rand.Reader, 2048))(i.t)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key = key
	i.keyID++
}

// Answer replaces the documents, or restores them if answer is nil.
func (i *Issuer) Answer(answer http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = answer
}

// Token returns a signed token with these claims.
func (i *Issuer) Token(claims map[string]any) string {
	i.t.Helper()
	i.mu.Lock()
	key := jose.JSONWebKey{Key: i.key, KeyID: strconv.Itoa(i.keyID)}
	i.mu.Unlock()
	signer := modelstest.Value(jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, nil))(i.t)
	signed := modelstest.Value(signer.Sign(modelstest.Value(json.Marshal(claims))(i.t)))(i.t)
	return modelstest.Value(signed.CompactSerialize())(i.t)
}

// JWKS returns the public keys.
func (i *Issuer) JWKS() jose.JSONWebKeySet {
	i.mu.Lock()
	defer i.mu.Unlock()
	return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: strconv.Itoa(i.keyID), Use: "sig", Algorithm: "RS256"}}}
}

// ServeHTTP serves the documents.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.Fetches.Add(1)
	i.mu.Lock()
	answer := i.answer
	i.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
	case r.URL.Path == "/.well-known/openid-configuration":
		encode(w, map[string]string{"issuer": i.URL, "jwks_uri": strings.TrimSuffix(i.URL, "/") + "/jwks"})
	case r.URL.Path == "/jwks":
		encode(w, map[string]any{"keys": append(slices.Clone(i.Beside), i.JWKS().Keys[0])})
	default:
		http.NotFound(w, r)
	}
}

func encode(w http.ResponseWriter, document any) {
	if err := json.NewEncoder(w).Encode(document); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
