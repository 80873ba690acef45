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

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models"
)

const (
	scannerKeysAge     = 24 * time.Hour  // then they are fetched again
	scannerKeysPause   = time.Minute     // between two fetches
	scannerKeysTimeout = 5 * time.Second // of a fetch
	maxScannerKeys     = 1 << 20         // bytes of a response
	maxScannerWaits    = 64              // callers that fetch or wait for it; others get a 503
)

// scanner is a scanner for secrets that signs its reports. Its public keys are fetched when they are
// needed, so that the portal starts without the scanner.
type scanner struct {
	*site

	name   models.LeakSource
	header string // the beginning of the names of its headers
	url    string // of its keys
	host   string // for the log, because the query of the URL may be secret
	client *http.Client

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

func newScanner(s *site, name models.LeakSource, header, keysURL string) *scanner {
	from := &scanner{site: s, name: name, header: header + "-Public-Key-", url: keysURL, waiting: middleware.NewSlots(maxScannerWaits)}
	from.client = &http.Client{
		Timeout: scannerKeysTimeout,
		// A redirect could lead to an address without TLS.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if u, err := url.Parse(keysURL); err == nil {
		from.host = u.Host
	}
	return from
}

// oneHeader returns the value of a header that must occur once, or a 400.
func (s *scanner) oneHeader(c *gin.Context, name string) (string, error) {
	values := c.Request.Header.Values(s.header + name)
	if len(values) != 1 || values[0] == "" {
		return "", problem.InvalidRequest("The header " + s.header + name + " must occur exactly once.")
	}
	return values[0], nil
}

// key returns the public key with this identifier. If the keys are old or do not have the
// identifier, it fetches them, but at most once a minute for all callers. While the scanner does not
// answer, the old keys are used. The error is a 400 for an unknown identifier, or a 503 if no keys
// have been fetched yet.
func (s *scanner) key(ctx context.Context, id string) (key *ecdsa.PublicKey, err error) {
	if key, fresh := s.lookUp(id); fresh {
		return key, nil
	}
	err = s.waiting.Run(func() (err error) {
		key, err = s.fetchedKey(ctx, id)
		return err
	})
	return key, err
}

// fetchedKey is key for a key that is old or missing, which it fetches first.
func (s *scanner) fetchedKey(ctx context.Context, id string) (*ecdsa.PublicKey, error) {
	s.turn.Lock() // for at most the time limit of a fetch
	defer s.turn.Unlock()
	key, fresh := s.lookUp(id) // another caller may have fetched it
	if fresh {
		return key, nil
	}
	var failure error
	if s.tried.IsZero() || s.Now().Sub(s.tried) >= scannerKeysPause {
		s.tried = s.Now()
		// The fetch must not end when the caller leaves.
		if failure = s.fetch(context.WithoutCancel(ctx)); failure != nil {
			s.Logger.WarnContext(ctx, "cannot fetch the public keys for reports of leaked keys",
				slog.String("host", s.host), slog.Any("cause", failure))
		}
		key, _ = s.lookUp(id)
	}
	switch {
	case key != nil:
		return key, nil
	case s.known.Load() == nil:
		missing := problem.Unavailable(errors.Join(errors.New("the public keys of the scanner are missing"), failure))
		missing.RetryAfter = s.tried.Add(scannerKeysPause).Sub(s.Now()) // until the next fetch
		return nil, missing
	default:
		return nil, problem.InvalidRequest("The provider has no public key with this identifier.")
	}
}

// lookUp returns a key, or nil, and whether it need not be fetched again.
func (s *scanner) lookUp(id string) (key *ecdsa.PublicKey, fresh bool) {
	known := s.known.Load()
	if known == nil {
		return nil, false
	}
	key = known.keys[id]
	return key, key != nil && s.Now().Sub(known.at) < scannerKeysAge
}

// fetch replaces the keys by those of the scanner.
func (s *scanner) fetch(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", jsonType)
	response, err := s.client.Do(request)
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
	body, err := io.ReadAll(http.MaxBytesReader(nil, response.Body, maxScannerKeys))
	if err != nil {
		return err
	}
	keys, err := parseScannerKeys(body)
	if err != nil {
		return err
	}
	s.known.Store(&fetchedKeys{keys, s.Now()})
	return nil
}

// parseScannerKeys returns the keys for ECDSA with P-256. It ignores others, and whether a key is
// the current one: a key that is published verifies.
func parseScannerKeys(body []byte) (map[string]*ecdsa.PublicKey, error) {
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
