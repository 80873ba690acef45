// Package webhooks sends the events in the queue of models/webhooks to the URLs of accounts. Each
// instance of the portal runs one [Sender], and the queue leases each delivery to one of them at a
// time.
package webhooks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/value"
	"portal/models/webhooks"
)

const (
	pollInterval = time.Second
	// attemptTimeout limits an attempt, from the name of the host to the end of the response.
	attemptTimeout = 15 * time.Second
	// stopTimeout is how long the attempts in progress may take after a stop.
	stopTimeout = 3 * time.Second

	// The attempts at a time of this instance and of an endpoint. An account starts none while
	// it has as many as the instance has left, and an endpoint none while its own are as many
	// as its account can still start. So receivers that hang leave room for those of other
	// accounts, and for the other endpoints of their account.
	maxAttempts         = 32
	maxEndpointAttempts = 4
	// maxServed limits the endpoints of a round.
	maxServed = 200

	maxResponseHeader = 16 << 10 // bytes
	maxResponse       = 1 << 10  // bytes that are read
	shownResponse     = 200      // characters that are kept
)

// Sender sends webhooks.
type Sender struct {
	store  *models.Store
	logger *slog.Logger
	now    func() time.Time
	poll   time.Duration

	// Of each scheme, because http is for loopback addresses alone.
	encrypted, unencrypted *http.Client

	ended  chan struct{} // an attempt has ended
	served []uuid.UUID   // the endpoints that had their turn in this round

	mu       sync.Mutex
	attempts map[uuid.UUID]map[uuid.UUID]int // in progress, by account and endpoint

	delivered, failed atomic.Uint64
}

// Stats count attempts since the start of the process.
type Stats struct {
	Delivered uint64
	Failed    uint64
}

// New returns a sender of the store's webhooks, which are not off. The clock is that of signatures;
// nil means time.Now.
func New(store *models.Store, logger *slog.Logger, now func() time.Time) *Sender {
	if now == nil {
		now = time.Now
	}
	guard := store.Webhooks.Guard()
	return &Sender{
		store: store, logger: logger, now: now, poll: pollInterval,
		encrypted: newClient(guard, false), unencrypted: newClient(guard, true),
		ended: make(chan struct{}, 1), attempts: map[uuid.UUID]map[uuid.UUID]int{},
	}
}

// newClient returns a client that follows no redirect, uses no proxy and connects anew for each
// request, so that the guard sees the address of each one.
func newClient(guard *webhooks.Guard, unencrypted bool) *http.Client {
	dialer := &net.Dialer{Control: guard.Control(unencrypted)}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, DisableCompression: true,
			MaxResponseHeaderBytes: maxResponseHeader, TLSHandshakeTimeout: attemptTimeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       attemptTimeout,
	}
}

// Stats returns the counts.
func (s *Sender) Stats() Stats { return Stats{s.delivered.Load(), s.failed.Load()} }

// Run sends webhooks until ctx ends. After that, the attempts in progress have three seconds. What
// takes longer is sent again after its lease.
func (s *Sender) Run(ctx context.Context) {
	sending, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	var attempts sync.WaitGroup
	for ctx.Err() == nil {
		started, err := s.start(ctx, sending, &attempts)
		if err != nil && ctx.Err() == nil {
			s.logger.ErrorContext(ctx, "cannot use the queue of webhooks", slog.Any("cause", err))
		}
		if started {
			continue
		}
		select {
		case <-ctx.Done():
		case <-s.ended:
		case <-time.After(s.poll):
		}
	}
	timer := time.AfterFunc(stopTimeout, abandon)
	defer timer.Stop()
	attempts.Wait()
}

// start claims a delivery and begins to send it, and reports whether it did.
func (s *Sender) start(ctx, sending context.Context, attempts *sync.WaitGroup) (bool, error) {
	endpoints, accounts, free := s.busy()
	if !free {
		return false, nil
	}
	turn := webhooks.Turn{Endpoints: endpoints, Accounts: accounts, Served: s.served}
	claiming, cancel := context.WithTimeout(ctx, s.store.Timeout())
	defer cancel()
	content, err := s.store.Webhooks.Claim(claiming, turn)
	if errors.Is(err, value.ErrNoDelivery) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Endpoints take turns, so that one with many deliveries that are due delays nobody else's.
	if len(s.served) == maxServed || slices.Contains(s.served, content.EndpointID) {
		s.served = nil
	}
	s.served = append(s.served, content.EndpointID)
	s.count(content.Delivery, 1)
	attempts.Go(func() {
		defer func() {
			s.count(content.Delivery, -1)
			select {
			case s.ended <- struct{}{}:
			default:
			}
		}()
		result := s.send(sending, content)
		if sending.Err() != nil {
			return // the outcome is unknown, so the lease stays
		}
		s.finish(sending, content.Delivery, result)
	})
	return true, nil
}

// busy returns the endpoints and the accounts that start no further attempt now, and whether this
// instance has room for another one.
func (s *Sender) busy() (endpoints, accounts []uuid.UUID, free bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := maxAttempts
	for _, attempts := range s.attempts {
		left -= sum(attempts)
	}
	for account, attempts := range s.attempts {
		n := sum(attempts)
		if n >= left {
			accounts = append(accounts, account)
		}
		for endpoint, own := range attempts {
			if own >= min(maxEndpointAttempts, left-n) {
				endpoints = append(endpoints, endpoint)
			}
		}
	}
	return endpoints, accounts, left > 0
}

func sum(attempts map[uuid.UUID]int) (n int) {
	for _, own := range attempts {
		n += own
	}
	return n
}

func (s *Sender) count(d webhooks.Delivery, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	attempts := s.attempts[d.AccountID]
	if attempts == nil {
		attempts = map[uuid.UUID]int{}
		s.attempts[d.AccountID] = attempts
	}
	if attempts[d.EndpointID] += change; attempts[d.EndpointID] == 0 {
		delete(attempts, d.EndpointID)
	}
	if len(attempts) == 0 {
		delete(s.attempts, d.AccountID)
	}
}

func (s *Sender) send(ctx context.Context, content webhooks.DeliveryContent) webhooks.DeliveryResult {
	switch {
	case content.Body == nil:
		return webhooks.DeliveryResult{Text: "The event no longer exists."}
	case len(content.Secrets) == 0:
		return webhooks.DeliveryResult{Text: "The signing secret cannot be read. Rotate it."}
	}
	// The rules may have become stricter since the URL was saved.
	if message := s.store.Webhooks.Guard().CheckURL(content.URL); message != "" {
		return webhooks.DeliveryResult{Text: message}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, content.URL, bytes.NewReader(content.Body))
	if err != nil {
		return webhooks.DeliveryResult{Text: "The URL is invalid."}
	}
	at, id := s.now(), content.EventID.String()
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "Portal-Webhooks/1",
		"webhook-id": id, "webhook-timestamp": strconv.FormatInt(at.Unix(), 10),
		"webhook-signature": webhooks.Sign(id, at, content.Body, content.Secrets...),
	} {
		request.Header.Set(name, value)
	}
	client := s.encrypted
	if request.URL.Scheme == "http" {
		client = s.unencrypted
	}
	response, err := client.Do(request)
	if err != nil {
		return webhooks.DeliveryResult{Text: reason(err)}
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	return webhooks.DeliveryResult{
		Status: response.StatusCode, Text: shown(text), RetryAfter: retryAfter(response.Header.Get("Retry-After"), at),
		Gone: response.StatusCode == http.StatusGone,
	}
}

// finish records the outcome of an attempt. The log has nothing of the request or the response.
func (s *Sender) finish(ctx context.Context, d webhooks.Delivery, result webhooks.DeliveryResult) {
	outcome := &s.failed
	if result.Succeeded() {
		outcome = &s.delivered
	}
	outcome.Add(1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.store.Timeout())
	defer cancel()
	if err := s.store.Webhooks.Finish(ctx, d, result); err != nil {
		s.logger.ErrorContext(ctx, "cannot record a delivery; it will be sent again", slog.String("endpoint", d.EndpointID.String()), slog.Any("cause", err))
	}
}

// reason says why there was no response, without the URL.
func reason(err error) string {
	var unresolved *net.DNSError
	switch timeout, _ := errors.AsType[net.Error](err); {
	case errors.Is(err, webhooks.ErrAddress), errors.Is(err, webhooks.ErrOwnAddress):
		return "The portal does not send webhooks to this address."
	case timeout != nil && timeout.Timeout():
		return "There was no response within 15 seconds."
	case errors.As(err, &unresolved):
		return "The name of the host was not found."
	case strings.Contains(err.Error(), "tls:") || strings.Contains(err.Error(), "x509:"):
		return "The certificate is not valid, or TLS failed."
	}
	return "The connection failed."
}

// shown returns the first characters of a response as text.
func shown(response []byte) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(response), "�"))
	runes := []rune(strings.TrimSpace(text))
	return string(runes[:min(len(runes), shownResponse)])
}

// retryAfter returns the wait in a header Retry-After (RFC 9110, section 10.2.3), or 0.
func retryAfter(value string, now time.Time) time.Duration {
	// Some receivers send fractions. The limit is far beyond what is honored.
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1e9) * float64(time.Second))
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}
