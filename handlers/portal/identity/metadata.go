package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"
)

const (
	// metadataAge is how long the provider's metadata are used without reading them again.
	metadataAge = time.Hour
	// metadataPause is how long new metadata are trusted. Until then a failure is not their
	// fault.
	metadataPause = time.Minute
	// discoveryTimeout limits reading the metadata, with all attempts.
	discoveryTimeout = 5 * time.Second
	// discoveryAttempts is how often the portal tries to read the metadata for one sign-in.
	discoveryAttempts = 3
	discoveryPause    = 200 * time.Millisecond
	// maxResponse limits the size of a response of the provider.
	maxResponse = 1 << 20
)

// metadata holds the provider's metadata (OpenID Connect Discovery). They are read when they are
// needed, so that the portal starts without the provider.
type metadata struct {
	config  Config
	client  *http.Client
	reading singleflight.Group
	found   atomic.Pointer[discovered]
}

// discovered is the content of the metadata.
type discovered struct {
	provider    *oidc.Provider
	keys        *keys
	verifier    *oidc.IDTokenVerifier
	oauth       oauth2.Config
	userInfo    bool // there is a UserInfo endpoint
	sendsIssuer bool // every response has the parameter iss (RFC 9207)
	// The token endpoint takes the client secret in the body and not in a header.
	secretInBody bool
	readAt       time.Time
	metadata     *metadata
}

// get returns the metadata, and reads them if they are missing or not below an age. Concurrent
// callers share one attempt. If the provider does not answer, get returns the old metadata.
func (m *metadata) get(ctx context.Context, age time.Duration) (*discovered, error) {
	known, fresh := m.known(age)
	if fresh {
		return known, nil
	}
	// The attempt must not end when the caller who began it leaves.
	result := m.reading.DoChan("", func() (any, error) {
		if found, fresh := m.known(age); fresh {
			return found, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discoveryTimeout)
		defer cancel()
		return m.read(ctx)
	})
	select {
	case <-ctx.Done():
		return nil, failure("the provider's metadata", ctx.Err())
	case r := <-result:
		found, ok := r.Val.(*discovered)
		switch {
		case r.Err == nil && ok:
			return found, nil
		case known != nil:
			return known, nil
		default:
			return nil, failure("the provider's metadata", r.Err)
		}
	}
}

// known returns the metadata that were read last, or nil, and whether they are below the age.
func (m *metadata) known(age time.Duration) (found *discovered, fresh bool) {
	found = m.found.Load()
	return found, found != nil && m.config.Now().Sub(found.readAt) < age
}

// read reads the metadata and stores them.
func (m *metadata) read(ctx context.Context) (found *discovered, err error) {
	for attempt := range discoveryAttempts {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return nil, errors.Join(ctx.Err(), err)
			case <-time.After(discoveryPause << attempt):
			}
		}
		if found, err = m.discover(ctx); err == nil {
			m.found.Store(found)
			return found, nil
		}
	}
	return nil, err
}

func (m *metadata) discover(ctx context.Context) (*discovered, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, m.client), m.config.Issuer)
	if err != nil {
		return nil, err
	}
	var claims struct {
		AuthURL     string `json:"authorization_endpoint"`
		TokenURL    string `json:"token_endpoint"`
		UserInfoURL string `json:"userinfo_endpoint"`
		KeysURL     string `json:"jwks_uri"`
		Methods     any    `json:"token_endpoint_auth_methods_supported"`
		SendsIssuer truth  `json:"authorization_response_iss_parameter_supported"`
	}
	if err := provider.Claims(&claims); err != nil {
		return nil, err
	}
	for _, address := range []string{claims.AuthURL, claims.TokenURL, claims.KeysURL} {
		if err := m.checkEndpoint(address); err != nil {
			return nil, err
		}
	}
	methods, _ := claims.Methods.([]any)
	published := &keys{address: claims.KeysURL, config: m.config, client: m.client}
	return &discovered{
		provider: provider, keys: published,
		verifier: oidc.NewVerifier(m.config.Issuer, published, &oidc.Config{
			ClientID: m.config.ClientID, Now: m.config.Now, SupportedSigningAlgs: algorithms(),
		}),
		secretInBody: len(methods) > 0 && !slices.Contains(methods, any("client_secret_basic")),
		oauth: oauth2.Config{
			ClientID: m.config.ClientID, Endpoint: provider.Endpoint(), RedirectURL: m.config.RedirectURL, Scopes: []string{oidc.ScopeOpenID, "email"},
		},
		userInfo: claims.UserInfoURL != "", sendsIssuer: claims.SendsIssuer.is(true),
		readAt: m.config.Now(), metadata: m,
	}, nil
}

// checkEndpoint returns an error unless the address is a URL with the issuer's scheme.
func (m *metadata) checkEndpoint(address string) error {
	issuer, err := url.Parse(m.config.Issuer)
	if err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != issuer.Scheme && u.Scheme != "https" {
		return fmt.Errorf("the endpoint %.100q is not a valid %s address", address, issuer.Scheme)
	}
	return nil
}

// limited limits the size of responses.
type limited struct{ next http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxResponse)
	}
	return response, err
}
