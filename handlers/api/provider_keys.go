package api

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"portal/handlers/middleware"
	"portal/handlers/problem"
)

const (
	providerKeysAge     = 24 * time.Hour  // then they are fetched again
	providerKeysPause   = time.Minute     // between two fetches
	providerKeysTimeout = 5 * time.Second // of a fetch
	maxProviderKeys     = 1 << 20         // bytes of a response
	maxProviderWaits    = 64              // callers that fetch or wait for it; others get a 503
)

// providerKeys are the public keys that a provider signs its reports with. They are fetched when
// they are needed, so that the portal starts without the provider.
type providerKeys struct {
	url    string
	host   string // for the log, because the query of the URL may be secret
	client *http.Client
	now    func() time.Time
	logger *slog.Logger

	known   atomic.Pointer[fetchedKeys] // nil: none was ever fetched
	waiting middleware.Slots            // of the callers that fetch or wait for it
	turn    sync.Mutex                  // of the caller that may fetch
	tried   time.Time                   // the last fetch; turn guards it
}

// fetchedKeys are the keys of one response, by their identifiers.
type fetchedKeys struct {
	keys map[string]*ecdsa.PublicKey
	at   time.Time
}

func newProviderKeys(address string, now func() time.Time, logger *slog.Logger) *providerKeys {
	client := &http.Client{
		Timeout: providerKeysTimeout,
		// A redirect could lead to an address without TLS.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	k := &providerKeys{url: address, client: client, now: now, logger: logger, waiting: middleware.NewSlots(maxProviderWaits)}
	if u, err := url.Parse(address); err == nil {
		k.host = u.Host
	}
	return k
}

// find returns the key with this identifier. If the keys are old or do not have the identifier, it
// fetches them, but at most once a minute for all callers. While the provider does not answer, the
// old keys are used. The error is a 400 for an unknown identifier, or a 503 if no keys have been
// fetched yet.
func (k *providerKeys) find(ctx context.Context, id string) (key *ecdsa.PublicKey, err error) {
	if key, fresh := k.lookUp(id); fresh {
		return key, nil
	}
	err = k.waiting.Run(func() (err error) {
		key, err = k.findAgain(ctx, id)
		return err
	})
	return key, err
}

// findAgain is find for a key that is old or missing.
func (k *providerKeys) findAgain(ctx context.Context, id string) (*ecdsa.PublicKey, error) {
	k.turn.Lock() // for at most the time limit of a fetch
	defer k.turn.Unlock()
	key, fresh := k.lookUp(id) // another caller may have fetched it
	if fresh {
		return key, nil
	}
	var failure error
	if k.tried.IsZero() || k.now().Sub(k.tried) >= providerKeysPause {
		k.tried = k.now()
		// The fetch must not end when the caller leaves.
		if failure = k.fetch(context.WithoutCancel(ctx)); failure != nil {
			k.logger.WarnContext(ctx, "cannot fetch the public keys for reports of leaked keys",
				slog.String("host", k.host), slog.Any("cause", failure))
		}
		key, _ = k.lookUp(id)
	}
	switch {
	case key != nil:
		return key, nil
	case k.known.Load() == nil:
		missing := problem.Unavailable(errors.Join(errors.New("the public keys of the provider are missing"), failure))
		missing.RetryAfter = k.tried.Add(providerKeysPause).Sub(k.now()) // until the next fetch
		return nil, missing
	default:
		return nil, problem.InvalidRequest("The provider has no public key with this identifier.")
	}
}

// lookUp returns a key, or nil, and whether it need not be fetched again.
func (k *providerKeys) lookUp(id string) (key *ecdsa.PublicKey, fresh bool) {
	known := k.known.Load()
	if known == nil {
		return nil, false
	}
	key = known.keys[id]
	return key, key != nil && k.now().Sub(known.at) < providerKeysAge
}

// fetch replaces the keys by those of the provider.
func (k *providerKeys) fetch(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", jsonType)
	response, err := k.client.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err // without the URL
	}
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, response.Body, maxProviderKeys))
	if err != nil {
		return err
	}
	keys, err := parseProviderKeys(body)
	if err != nil {
		return err
	}
	k.known.Store(&fetchedKeys{keys, k.now()})
	return nil
}

// parseProviderKeys returns the keys for ECDSA with P-256. It ignores others, and whether a key is
// the current one: a key that is published verifies.
func parseProviderKeys(body []byte) (map[string]*ecdsa.PublicKey, error) {
	var published struct {
		Keys []struct {
			ID  string `json:"key_identifier"`
			PEM string `json:"key"`
		} `json:"public_keys"`
	}
	if err := json.Unmarshal(body, &published); err != nil {
		return nil, err
	}
	keys := map[string]*ecdsa.PublicKey{}
	for _, entry := range published.Keys {
		block, _ := pem.Decode([]byte(entry.PEM))
		if block == nil || entry.ID == "" {
			continue
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if key, ok := parsed.(*ecdsa.PublicKey); err == nil && ok && key.Curve == elliptic.P256() {
			keys[entry.ID] = key
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("no public key for ECDSA with P-256")
	}
	return keys, nil
}
