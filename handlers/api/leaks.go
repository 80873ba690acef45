package api

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/handlers/publickeys"
	"portal/models/keys"
	"portal/models/keyset"
	"portal/models/record"
	"portal/models/value"
)

const (
	// leakSlots is how many reports use the database at the same time, public ones and those of
	// the scanner. Together they are fewer than the connections that pages use too.
	leakSlots = 2
	// leakTimeout limits the work of a report and its wait for a slot. GitHub waits 30 seconds.
	leakTimeout = 20 * time.Second

	maxLeaksOfAddress = 60 // public reports in each leakWindow
	leakWindow        = time.Hour
)

// leakReports have the endpoints for reports of leaked keys.
type leakReports struct {
	leaks *keys.Leaks
	limit *rateLimiter // of the public reports of each address
	// Public reports have slots and memory of their own, so that strangers do not keep the
	// scanner out.
	publicSlots, slots   middleware.Slots
	publicBodies, bodies leakBodies

	scanner *publickeys.Keys[*ecdsa.PublicKey] // nil: off
	counts  *prometheus.CounterVec
}

// leakRefused is the outcome of a report whose sender was refused.
const leakRefused = "refused"

func newLeakReports(d deps.Deps) *leakReports {
	l := &leakReports{
		leaks:       d.Store.Leaks,
		limit:       newWindowLimiter("address", "from this address", maxLeaksOfAddress, leakWindow, d.Now),
		publicSlots: middleware.NewSlots(leakSlots), slots: middleware.NewSlots(leakSlots),
		publicBodies: leakBodies{limit: maxPublicBody}, bodies: leakBodies{limit: maxScannerBody},
		counts: promauto.With(d.Registry).NewCounterVec(prometheus.CounterOpts{
			Name: "portal_leak_reports_total",
			Help: "API keys reported as leaked, by source and outcome; inactive ones were revoked or had expired before; refused counts requests.",
		}, []string{"source", "outcome"}),
	}
	if d.GitHubKeysURL != "" {
		l.scanner = newScannerKeys(d)
	}
	for _, from := range []record.LeakReporter{record.LeakPublic, record.LeakGitHub} {
		for _, outcome := range []keys.LeakOutcome{keys.LeakRevoked, keys.LeakInactive, keys.LeakUnknown, leakRefused} {
			l.counts.WithLabelValues(string(from), string(outcome))
		}
	}
	return l
}

// handle adapts a handler of reports and counts the requests that it refuses.
func (l *leakReports) handle(from record.LeakReporter, h handler) gin.HandlerFunc {
	return handle(func(c *gin.Context) error {
		c.Header("Cache-Control", "no-store")
		err := h(c)
		if err != nil && problem.From(err).Status < http.StatusInternalServerError {
			l.counts.WithLabelValues(string(from), leakRefused).Inc()
		}
		return err
	})
}

// leakContext is the context of a report, which goes on if its client disconnects.
func leakContext(c *gin.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request.Context()), leakTimeout)
}

// report reports texts and counts the outcomes.
func (l *leakReports) report(
	ctx context.Context, texts []keys.LeakedText, from record.LeakReporter, address string,
) ([]keys.LeakOutcome, error) {
	outcomes, err := l.leaks.Revoke(ctx, texts, from, address)
	for _, outcome := range outcomes {
		l.counts.WithLabelValues(string(from), string(outcome)).Inc()
	}
	return outcomes, err
}

const (
	// A public report takes at least leakFloor and leakFloorOfKey for each text, so that the
	// time does not show which keys exist.
	leakFloor      = 100 * time.Millisecond
	leakFloorOfKey = 5 * time.Millisecond
)

// createPublic revokes keys that anyone reports, with the same response for every text.
func (l *leakReports) createPublic(c *gin.Context) error {
	started := time.Now()
	client := middleware.ClientOf(c)
	if err := l.limit.limit(c, addressID(client)); err != nil {
		return err
	}
	body, release, err := readLeaks(c, &l.publicBodies)
	defer release()
	if err != nil {
		return err
	}
	ctx, cancel := leakContext(c)
	defer cancel()
	var texts []keys.LeakedText
	err = l.publicSlots.Run(func() (err error) {
		if texts, err = parsePublicLeaks(body); err == nil {
			_, err = l.report(ctx, texts, record.LeakPublic, client.String())
		}
		return err
	})
	if err != nil {
		return err
	}
	select {
	case <-time.After(time.Until(started.Add(leakFloor + time.Duration(len(texts))*leakFloorOfKey))):
	case <-c.Request.Context().Done():
	}
	c.PureJSON(http.StatusAccepted, struct{}{})
	return nil
}

// leakFeedback is the response to one text.
type leakFeedback struct {
	TokenHash string `json:"token_hash"` // SHA-256 in hexadecimal
	TokenType string `json:"token_type"`
	Label     string `json:"label"`
}

// createSigned revokes the keys that the scanner reports. It reads the body only if the scanner has
// the public key that the request names, and parses it only if the signature is right.
func (l *leakReports) createSigned(c *gin.Context) error {
	id, err := oneHeader(c, scannerIdentifier)
	if err != nil {
		return err
	}
	encoded, err := oneHeader(c, scannerSignature)
	if err != nil {
		return err
	}
	signature, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return problem.InvalidRequest("The header " + scannerSignature + " is not base64.")
	}
	key, err := l.key(c, id)
	if err != nil {
		return err
	}
	body, release, err := readLeaks(c, &l.bodies)
	defer release()
	if err != nil {
		return err
	}
	if hash := sha256.Sum256(body); !ecdsa.VerifyASN1(key, hash[:], signature) {
		return problem.InvalidRequest("The signature does not match the request body.")
	}
	leaks, err := parseScannerReport(body)
	if err != nil {
		return err
	}
	texts, kinds := distinct(leaks)
	release() // The report may wait for a slot.
	ctx, cancel := leakContext(c)
	defer cancel()
	var outcomes []keys.LeakOutcome
	// The scanner waits, because it might not repeat a refused report.
	err = l.slots.RunWhenFree(ctx, func() (err error) {
		outcomes, err = l.report(ctx, texts, record.LeakGitHub, "")
		return err
	})
	if err != nil {
		return err
	}
	feedback := make([]leakFeedback, 0, len(texts))
	for i, text := range texts {
		label := "true_positive"
		if outcomes[i] == keys.LeakUnknown {
			label = "false_positive"
		}
		hash := text.Hash()
		feedback = append(feedback, leakFeedback{TokenHash: hex.EncodeToString(hash[:]), TokenType: kinds[i], Label: label})
	}
	c.PureJSON(http.StatusOK, feedback)
	return nil
}

// The headers of a report of GitHub's secret scanning.
const (
	scannerIdentifier = "Github-Public-Key-Identifier"
	scannerSignature  = "Github-Public-Key-Signature"
)

// newScannerKeys returns the public keys of GitHub's secret scanning, which signs its reports.
func newScannerKeys(d deps.Deps) *publickeys.Keys[*ecdsa.PublicKey] {
	return publickeys.New(publickeys.Config[*ecdsa.PublicKey]{
		URL: d.GitHubKeysURL,
		Parse: func(ctx context.Context, body []byte) (map[string]*ecdsa.PublicKey, error) {
			keys, skipped, err := keyset.ParseScanner(body)
			keyset.LogSkipped(ctx, d.Logger, "GitHub", skipped)
			return keys, err
		},
		Logger: d.Logger, Now: d.Now,
	})
}

// oneHeader returns the value of a header that must occur once, or a 400.
func oneHeader(c *gin.Context, name string) (string, error) {
	values := c.Request.Header.Values(name)
	if len(values) != 1 || values[0] == "" {
		return "", problem.InvalidRequest("The header " + name + " must occur exactly once.")
	}
	return values[0], nil
}

// key returns the public key of the scanner with this identifier. The error is a 400 for an unknown
// identifier, or a 503 if no keys have been fetched yet, or new ones cannot be fetched. Unknown
// identifiers count for the network of the client.
func (l *leakReports) key(c *gin.Context, id string) (*ecdsa.PublicKey, error) {
	key, err := l.scanner.Get(c.Request.Context(), id, addressID(middleware.ClientOf(c)).String())
	missing, isMissing := errors.AsType[*publickeys.MissingError](err)
	unconfirmed, isUnconfirmed := errors.AsType[*publickeys.UnconfirmedError](err)
	switch {
	case isMissing:
		return nil, keysMissing(missing.RetryAfter, err)
	case isUnconfirmed && unconfirmed.Away:
		return nil, keysMissing(unconfirmed.RetryAfter, err)
	case errors.Is(err, publickeys.ErrUnknown):
		return nil, problem.InvalidRequest("GitHub has no public key with this identifier.")
	case err != nil:
		return nil, problem.Unavailable(fmt.Errorf("%w report leaked keys: %w", value.ErrBusy, err))
	}
	return key, nil
}

// keysMissing returns the 503 while the public keys of the scanner cannot be fetched.
func keysMissing(retryAfter time.Duration, cause error) error {
	unavailable := problem.Unavailable(cause)
	unavailable.RetryAfter = retryAfter
	return unavailable
}
