// Package identity is the client of an OpenID Connect provider, by the authorization code flow with
// PKCE, state and nonce. It knows neither users nor sessions.
package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/oauth2"

	"portal/models/people"
)

const (
	// timeout limits all requests to the provider that one step of a sign-in takes.
	timeout = 8 * time.Second
	// maxSteps limits how many steps run at once. Further ones fail at once, so that a provider
	// that does not answer cannot use up the portal's capacity.
	maxSteps     = 64
	maxRedirects = 3
	// maxAge is how long ago the user may have entered credentials at the provider.
	maxAge = 30 * 24 * time.Hour
)

// The reasons why a sign-in at the provider fails.
var (
	// ErrExpired means that the sign-in was not started in this browser, took too long, was
	// completed before, or that its response was changed.
	ErrExpired = errors.New("the sign-in was not started in this browser or has expired")
	// ErrDenied means that the user cancelled, or that the provider refuses the user.
	ErrDenied = errors.New("the provider refused the sign-in")
	// ErrFailed means that the provider does not answer, or that its answer is invalid. It is
	// wrapped together with its cause, which is for the log.
	ErrFailed = errors.New("sign-in at the provider failed")
)

// Config describes the provider, and the portal as its client.
type Config struct {
	Issuer       string
	ClientID     string
	ClientSecret string
	Name         string // of the provider, for users
	TrustEmail   bool   // a verified email identifies a user
	Claims       bool   // claims of the ID token decide about accounts and roles

	RedirectURL string           // where the provider sends the browser back to
	Now         func() time.Time // the clock
	Logger      *slog.Logger     // nil: none
}

// Provider signs people in at an OpenID Connect provider. It is safe for concurrent use.
type Provider struct {
	config   Config
	metadata metadata
	steps    chan struct{}
}

// New returns the client of a provider without sending a request: the first sign-in reads the
// provider's metadata.
func New(c Config) *Provider {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Provider{
		config: c, metadata: metadata{config: c, client: newClient()}, steps: make(chan struct{}, maxSteps),
	}
}

// Name returns the provider's name for users.
func (p *Provider) Name() string { return p.config.Name }

// Issuer returns the provider's issuer, which is part of each identity.
func (p *Provider) Issuer() string { return p.config.Issuer }

// TrustsEmail reports whether a verified email identifies a user.
func (p *Provider) TrustsEmail() bool { return p.config.TrustEmail }

// DecidesAccess reports whether the provider decides about accounts and roles.
func (p *Provider) DecidesAccess() bool { return p.config.Claims }

// Check reads the metadata and the public keys of the provider anew, and returns the number of
// usable keys, or an error with a short text, which may quote the provider.
func (p *Provider) Check(ctx context.Context) (usable int, err error) {
	found, err := p.metadata.discover(ctx)
	if err != nil {
		return 0, fmt.Errorf("the provider's metadata at %s: %w", p.metadata.config.Issuer, err)
	}
	set, err := found.keys.fetch(ctx)
	if err != nil {
		return 0, fmt.Errorf("the public keys at %s: %w", found.keys.address, err)
	}
	return len(set.Keys), nil
}

// AuthRequest is a request to the provider. Only the browser that began it may have it.
type AuthRequest struct {
	State string // returned by the provider with the code
	Nonce string // in the ID token
	// Proves to the provider that the code was requested by the same client (PKCE).
	Verifier string
}

// Begin returns a new request, and the address at which the user continues, or an [ErrFailed]. If
// again is true, the provider asks the user to sign in even if it knows the user, and says when
// that was.
func (p *Provider) Begin(ctx context.Context, again bool) (address string, r AuthRequest, err error) {
	err = p.step(ctx, func(ctx context.Context) error {
		found, err := p.metadata.get(ctx, metadataAge)
		if err != nil {
			return err
		}
		r = AuthRequest{State: random(), Nonce: random(), Verifier: oauth2.GenerateVerifier()}
		// With max_age the ID token must have auth_time (OpenID Connect Core, section
		// 3.1.2.1).
		age := maxAge
		options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(r.Verifier), oauth2.SetAuthURLParam("nonce", r.Nonce)}
		if again {
			age = 0
			options = append(options, oauth2.SetAuthURLParam("prompt", "login"))
		}
		options = append(options, oauth2.SetAuthURLParam("max_age", strconv.Itoa(int(age/time.Second))))
		address = found.oauth.AuthCodeURL(r.State, options...)
		return nil
	})
	return address, r, err
}

// Finish returns the identity of the user whom the provider has sent back with these parameters, or
// an error that wraps [ErrExpired], [ErrDenied] or [ErrFailed], or is of emailUse. A zero request
// means that the browser has none. Finish calls emailUse with the identity of the ID token. Without
// an email that is required, the error is [ErrFailed] if the provider might have given one.
func (p *Provider) Finish(ctx context.Context, r AuthRequest, parameters url.Values, emailUse func(context.Context, people.Identity) (EmailUse, error)) (identity people.Identity, err error) {
	for _, name := range []string{"state", "iss", "error", "code"} {
		if len(parameters[name]) > 1 { // RFC 6749, section 3.1
			return identity, expired("the response", fmt.Errorf("it has the parameter %s %d times", name, len(parameters[name])))
		}
	}
	refused := fmt.Errorf("the error is %s", described(parameters.Get("error"), parameters.Get("error_description")))
	switch state := parameters.Get("state"); {
	case state == "" && parameters.Get("error") == "access_denied": // some providers leave out the state
		return identity, fmt.Errorf("%w: %w", ErrDenied, refused)
	case r.State == "" || !equal(state, r.State):
		return identity, expired("the response without a known state", refused)
	}
	err = p.step(ctx, func(ctx context.Context) error {
		found, err := p.metadata.get(ctx, metadataAge)
		if err != nil {
			return err
		}
		if err := p.checkResponse(found, parameters, refused); err != nil {
			return err
		}
		identity, err = found.redeem(ctx, r, parameters.Get("code"), emailUse)
		return err
	})
	return identity, err
}

// checkResponse returns an error unless the parameters have a code from this provider. The argument
// refused is the error in the parameters.
func (p *Provider) checkResponse(found *discovered, parameters url.Values, refused error) error {
	// Otherwise an attacker's provider could send the response of another one (RFC 9207). A
	// visitor can change iss as well as state, so it is no failure of the provider.
	issuer := parameters.Get("iss")
	if issuer != "" && issuer != p.config.Issuer || issuer == "" && found.sendsIssuer {
		return expired("the response", fmt.Errorf("its parameter iss is %.200q, not the issuer", issuer))
	}
	switch code := parameters.Get("error"); {
	case code == "access_denied":
		return fmt.Errorf("%w: %w", ErrDenied, refused)
	case code != "":
		return failure("the response", refused)
	case parameters.Get("code") == "":
		return failure("the response", errors.New("it has no code"))
	}
	return nil
}

// step runs f with the time limit, unless too many steps are running.
func (p *Provider) step(ctx context.Context, f func(context.Context) error) error {
	select {
	case p.steps <- struct{}{}:
		defer func() { <-p.steps }()
	default:
		return failure("the provider", errors.New("too many sign-ins wait for it"))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return f(ctx)
}

// failure returns an [ErrFailed] with a short cause, which may quote the provider.
func failure(what string, cause error) error {
	if errors.Is(cause, context.Canceled) {
		return fmt.Errorf("%w: %w", ErrFailed, context.Canceled)
	}
	return fmt.Errorf("%w: %s", ErrFailed, reason(what, cause))
}

// expired returns an [ErrExpired] with a short cause, as failure does.
func expired(what string, cause error) error {
	return fmt.Errorf("%w: %s", ErrExpired, reason(what, cause))
}

// described returns an error code of the provider with its description.
func described(code, description string) string {
	if code == "" {
		return "missing"
	}
	return fmt.Sprintf("%.100q (%.200q)", code, description)
}

// reason returns the beginning of the cause of a failure.
func reason(what string, cause error) string {
	text := cause.Error()
	return what + ": " + text[:min(len(text), 300)]
}

// random returns 256 random bits.
func random() string {
	value := make([]byte, 32)
	_, _ = rand.Read(value) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(value)
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// newClient returns a client for requests to the provider. A redirect could send the client secret
// or a token elsewhere, so the client follows only those of metadata and public keys. It connects
// anew for each request: the provider may close an old connection at any moment, and a code cannot
// be redeemed twice.
func newClient() *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: limited{&http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: timeout,
		}},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			first := via[0]
			secret := first.Method != http.MethodGet || first.Header.Get("Authorization") != ""
			if secret || r.URL.Scheme != "https" && r.URL.Scheme != first.URL.Scheme || len(via) > maxRedirects {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}
