// Package handlerstest builds the handlers for tests.
package handlerstest

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portal/handlers"
	"portal/models"
	"portal/models/modelstest"
	"portal/models/secret"
	"portal/models/widget"
)

// TokenTTL is the lifetime of a widget token.
const TokenTTL = 10 * time.Minute

// Deps returns dependencies for the handlers, without a log and without a rate limit. Every call
// uses the same secret. A nil now means time.Now. Tests may change the result before they call
// [New].
func Deps(t testing.TB, store *models.Store, baseURL string, now func() time.Time) handlers.Deps {
	t.Helper()
	base := modelstest.Value(url.Parse(baseURL))(t)
	keyring := Keyring(t, strings.Repeat("a secret of the tests. ", 2), "")
	return handlers.Deps{
		Store: store, Logger: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Now: now, BaseURL: base,
		CookieKeys: keyring.CookieKeys(), SessionMax: 720 * time.Hour, Name: "Voice Portal",
		Tokens: widget.NewTokens(keyring, baseURL, TokenTTL, now),
	}
}

// Keyring returns the keys derived from these values of PORTAL_SECRET and PORTAL_SECRET_PREVIOUS.
func Keyring(t testing.TB, current, previous string) secret.Keyring {
	t.Helper()
	return modelstest.Value(secret.NewKeyring(current, previous))(t)
}

// New returns the handler with these dependencies.
func New(t testing.TB, deps handlers.Deps) http.Handler {
	t.Helper()
	return modelstest.Value(handlers.New(deps))(t)
}
