// Package publickeys fetches the public keys that a signer publishes at a URL, and keeps them. It
// imports nothing of ours.
package publickeys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxAge     = 24 * time.Hour  // then the keys are fetched again
	pause      = time.Minute     // between two fetches
	maxMisses  = 10              // fetches in missAge that find nothing for one caller
	missAge    = time.Hour       // see maxMisses
	timeout    = 5 * time.Second // of a fetch
	maxSize    = 1 << 20         // bytes of a response
	maxID      = 256             // bytes of an identifier
	maxWaiting = 64              // callers that fetch or wait for it; others get ErrBusy
)

var (
	// ErrUnknown means that the signer publishes no key with the identifier.
	ErrUnknown = errors.New("unknown public key")
	// ErrBusy means that too many callers wait for the signer.
	ErrBusy = errors.New("too many callers wait for public keys")
)

// MissingError means that no keys have been fetched yet.
type MissingError struct {
	RetryAfter time.Duration // until the next fetch
	Cause      error         // nil if the caller came between two fetches
}

// Error implements error.
func (e *MissingError) Error() string {
	if e.Cause == nil {
		return "the public keys are missing"
	}
	return "the public keys are missing: " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *MissingError) Unwrap() error { return e.Cause }

// UnconfirmedError is [ErrUnknown] for an identifier that may be new: no fetch has succeeded since
// the caller came.
type UnconfirmedError struct {
	RetryAfter time.Duration // until the next fetch
	Away       bool          // the last fetch failed
}

// Error implements error.
func (e *UnconfirmedError) Error() string { return "the signer cannot be asked for a public key" }

// Unwrap returns [ErrUnknown].
func (e *UnconfirmedError) Unwrap() error { return ErrUnknown }

// Config describes a signer.
type Config[K any] struct {
	URL string
	// Resolve returns the URL of the keys from the document at URL; nil: the document has them.
	Resolve func(document []byte) (url string, err error)

	// Returns the keys of a response by their identifiers.
	Parse  func(ctx context.Context, body []byte) (map[string]K, error)
	Logger *slog.Logger
	Now    func() time.Time
}

// Keys are the public keys of a signer. They are fetched when they are needed, so that the portal
// starts without the signer. Keys is safe for concurrent use.
type Keys[K any] struct {
	config Config[K]
	host   string // for the log, because the query of the URL may be secret
	client *http.Client

	known atomic.Pointer[fetched[K]] // nil: none was ever fetched
	// It has a value of each caller that fetches or waits.
	waiting chan struct{}
	begun   atomic.Int64 // fetches
	turn    sync.Mutex   // of the caller that may fetch
	tried   time.Time    // the last fetch; turn guards it
	failed  bool         // the last fetch failed; turn guards it
	misses  []miss       // of the last missAge, the oldest first; turn guards it
}

// miss is a fetch that did not find the identifier of its caller.
type miss struct {
	caller string
	at     time.Time
}

// fetched are the keys of one response.
type fetched[K any] struct {
	keys map[string]K
	at   time.Time
}

// New returns the keys of a signer without fetching them.
func New[K any](config Config[K]) *Keys[K] {
	k := &Keys[K]{config: config, waiting: make(chan struct{}, maxWaiting)}
	k.client = &http.Client{
		Timeout: timeout,
		// A redirect could lead to an address without TLS.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if u, err := url.Parse(config.URL); err == nil {
		k.host = u.Host
	}
	return k
}

// Get returns the key with this identifier. If the keys are old or do not have the identifier, Get
// fetches them, but at most once a minute for all callers, and ten times an hour for a caller whose
// identifiers stay unknown. So a caller who invents identifiers delays no other: what others fetch
// has every new key. While the signer does not answer, the old keys are used. The error is
// [ErrUnknown], an [UnconfirmedError], [ErrBusy] or a [MissingError].
func (k *Keys[K]) Get(ctx context.Context, id, caller string) (key K, err error) {
	if key, _, fresh := k.lookUp(id); fresh {
		return key, nil
	}
	if len(id) > maxID {
		return key, ErrUnknown
	}
	select {
	case k.waiting <- struct{}{}:
		defer func() { <-k.waiting }()
		return k.fetchFor(ctx, id, caller)
	default:
		return key, ErrBusy
	}
}

// fetchFor is Get for a key that is old or missing, which it fetches first.
func (k *Keys[K]) fetchFor(ctx context.Context, id, caller string) (K, error) {
	before := k.begun.Load()
	k.turn.Lock() // for at most the time limit of a fetch
	defer k.turn.Unlock()
	key, found, fresh := k.lookUp(id) // another caller may have fetched it
	if fresh {
		return key, nil
	}
	var failure error
	if now := k.config.Now(); k.pause(now) <= 0 && (found || k.pauseOf(caller, now) <= 0) {
		k.begun.Add(1)
		k.tried = now
		// The fetch must not end when the caller leaves.
		failure = k.fetch(context.WithoutCancel(ctx))
		if k.failed = failure != nil; k.failed {
			k.config.Logger.WarnContext(ctx, "cannot fetch the public keys", slog.String("host", k.host), slog.Any("cause", failure))
		}
		key, found, _ = k.lookUp(id)
		if failure == nil && !found {
			k.misses = append(k.misses, miss{caller, now})
		}
	}
	now := k.config.Now()
	switch {
	case found:
		return key, nil
	case k.known.Load() == nil:
		return key, &MissingError{k.pause(now), failure}
	case k.failed || k.begun.Load() == before:
		return key, &UnconfirmedError{max(k.pause(now), k.pauseOf(caller, now)), k.failed}
	default:
		return key, ErrUnknown
	}
}

// pause returns the time until the next fetch. turn is held.
func (k *Keys[K]) pause(now time.Time) time.Duration {
	if k.tried.IsZero() {
		return 0
	}
	return k.tried.Add(pause).Sub(now)
}

// pauseOf returns the time until a caller may cause a fetch for an unknown identifier. turn is
// held.
func (k *Keys[K]) pauseOf(caller string, now time.Time) time.Duration {
	k.misses = slices.DeleteFunc(k.misses, func(m miss) bool { return now.Sub(m.at) >= missAge })
	var own []time.Time
	for _, m := range k.misses {
		if m.caller == caller {
			own = append(own, m.at)
		}
	}
	if len(own) < maxMisses {
		return 0
	}
	return own[len(own)-maxMisses].Add(missAge).Sub(now)
}

// lookUp returns a key, whether there is one, and whether it need not be fetched again.
func (k *Keys[K]) lookUp(id string) (key K, found, fresh bool) {
	known := k.known.Load()
	if known == nil {
		return key, false, false
	}
	key, found = known.keys[id]
	return key, found, found && k.config.Now().Sub(known.at) < maxAge
}

// fetch replaces the keys by those of the signer.
func (k *Keys[K]) fetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, err := k.get(ctx, k.config.URL)
	if err == nil && k.config.Resolve != nil {
		var address string
		if address, err = k.config.Resolve(body); err == nil {
			body, err = k.get(ctx, address)
		}
	}
	if err != nil {
		return err
	}
	keys, err := k.config.Parse(ctx, body)
	if err != nil {
		return err
	}
	k.known.Store(&fetched[K]{keys, k.config.Now()})
	return nil
}

// get returns the body of a 200.
func (k *Keys[K]) get(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := k.client.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return nil, failed.Err // without the URL
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	return io.ReadAll(http.MaxBytesReader(nil, response.Body, maxSize))
}
