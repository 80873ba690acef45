package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models"
	"portal/models/usage"
)

const leaksPath = "/leaks"

const (
	maxLeakBody    = 1 << 20
	maxLeaks       = 1000 // texts in the report of a provider
	maxPublicLeaks = 100  // texts in a report without credentials

	// maxLeakBodies is how many bytes of bodies are in memory at once, in public reports and in
	// those of providers. A client that sends slowly holds only what it has sent.
	maxLeakBodies = 32 << 20
	// maxLeakBodiesOfAddress is how many bytes of public reports one address has sent. For
	// providers it is maxProviderBodiesOfAddress. A provider may send many reports at once, and
	// behind a proxy that the portal does not know all of them have one address. They have a
	// limit too, because a body must be read before its signature is checked, so that anyone
	// can send one.
	maxLeakBodiesOfAddress     = 4 << 20
	maxProviderBodiesOfAddress = 16 << 20
	// leakSlots is how many reports use the database at once, public ones and those of
	// providers. Together they are fewer than the connections that pages use too.
	leakSlots = 2
	// leakTimeout limits the work of a report and its wait for a slot. GitHub waits 30 seconds.
	leakTimeout = 20 * time.Second

	maxLeaksOfAddress = 60 // public reports in each leakWindow
	leakWindow        = time.Hour

	// A public report takes at least leakFloor and leakFloorOfKey for each text, so that the
	// time does not show which keys exist.
	leakFloor      = 100 * time.Millisecond
	leakFloorOfKey = 5 * time.Millisecond
)

// leakDoors are the doors for reports of leaked keys.
type leakDoors struct {
	limit *rateLimiter // of each address at the public door
	// The public door has slots and memory of its own, so that strangers do not keep providers
	// out.
	publicSlots, slots   middleware.Slots
	publicBodies, bodies leakBodies

	partners    []*leakPartner
	gitLabToken *sharedToken // nil: off
	reports     *prometheus.CounterVec
}

// leakRefused is the outcome of a report whose sender was refused.
const leakRefused = "refused"

func newLeakDoors(d deps.Deps) *leakDoors {
	doors := &leakDoors{
		limit: &rateLimiter{
			Limiter: middleware.NewWindowLimiter(maxLeaksOfAddress, leakWindow, d.Now),
			name:    "address", things: "from this address", policy: fmt.Sprintf(`"address";q=%d;w=%d`, maxLeaksOfAddress, int(leakWindow.Seconds())),
		},
		publicSlots: middleware.NewSlots(leakSlots), slots: middleware.NewSlots(leakSlots),
		publicBodies: leakBodies{ofAddress: maxLeakBodiesOfAddress}, bodies: leakBodies{ofAddress: maxProviderBodiesOfAddress},
		gitLabToken: newSharedToken(d.Scanners.GitLabToken),
		reports: promauto.With(d.Registry).NewCounterVec(prometheus.CounterOpts{
			Name: "portal_leak_reports_total",
			Help: "API keys reported as leaked, by source and outcome; inactive ones were revoked or had expired before; refused counts requests.",
		}, []string{"source", "outcome"}),
	}
	if d.Scanners.GitHubKeys != "" {
		doors.partners = append(doors.partners, newLeakPartner(models.LeakGitHub, "Github", d.Scanners.GitHubKeys, d))
	}
	if d.Scanners.GitLabKeys != "" {
		doors.partners = append(doors.partners, newLeakPartner(models.LeakGitLab, "Gitlab", d.Scanners.GitLabKeys, d))
	}
	for _, source := range []models.LeakSource{models.LeakPublic, models.LeakGitHub, models.LeakGitLab} {
		for _, outcome := range []models.LeakOutcome{models.LeakRevoked, models.LeakInactive, models.LeakUnknown, leakRefused} {
			doors.reports.WithLabelValues(string(source), string(outcome))
		}
	}
	return doors
}

// registerLeaks adds the routes of the doors that are open.
func (a *API) registerLeaks(r gin.IRouter) {
	r.POST(leaksPath, a.leak(models.LeakPublic, a.reportLeaks))
	for _, partner := range a.leaks.partners {
		r.POST(leaksPath+"/"+string(partner.source), a.leak(partner.source, func(c *gin.Context) error {
			return a.reportPartnerLeaks(c, partner)
		}))
	}
	if a.leaks.gitLabToken != nil {
		r.GET(leaksPath+"/v1/revocable_token_types", a.leak(models.LeakGitLab, a.listRevocableTypes))
		r.POST(leaksPath+"/v1/revoke_tokens", a.leak(models.LeakGitLab, a.revokeLeakedTokens))
	}
}

// leak adapts the handler of a door and counts the requests that it refuses.
func (a *API) leak(source models.LeakSource, h handler) gin.HandlerFunc {
	return a.public(func(c *gin.Context) error {
		c.Header("Cache-Control", "no-store")
		err := h(c)
		if err != nil && problem.From(err).Status < http.StatusInternalServerError {
			a.leaks.reports.WithLabelValues(string(source), leakRefused).Inc()
		}
		return err
	})
}

// reportLeaks revokes keys that anyone reports, with the same response for every text.
func (a *API) reportLeaks(c *gin.Context) error {
	started := time.Now()
	address := c.ClientIP()
	if err := a.leaks.limit.limit(c, addressID(address)); err != nil {
		return err
	}
	body, release, err := readLeaks(c, &a.leaks.publicBodies)
	defer release()
	if err != nil {
		return err
	}
	texts, err := parsePublicLeaks(body)
	if err != nil {
		return err
	}
	if _, err := a.reportLeaked(c, texts, models.LeakPublic, address); err != nil {
		return err
	}
	select {
	case <-time.After(time.Until(started.Add(leakFloor + time.Duration(len(texts))*leakFloorOfKey))):
	case <-c.Request.Context().Done():
	}
	c.PureJSON(http.StatusAccepted, struct{}{})
	return nil
}

// reportLeaked reports texts in a slot and counts the outcomes, even if the client disconnects. A
// provider waits for its slot, because it might not repeat a refused report.
func (a *API) reportLeaked(
	c *gin.Context, texts []models.LeakedText, source models.LeakSource, address string,
) (outcomes []models.LeakOutcome, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), leakTimeout)
	defer cancel()
	report := func() (err error) {
		outcomes, err = a.store.Keys.ReportLeaked(ctx, texts, source, address)
		return err
	}
	if source == models.LeakPublic {
		err = a.leaks.publicSlots.Run(report)
	} else {
		err = a.leaks.slots.RunWhenFree(ctx, report)
	}
	for _, outcome := range outcomes {
		a.leaks.reports.WithLabelValues(string(source), string(outcome)).Inc()
	}
	return outcomes, err
}

// parsePublicLeaks returns the texts of a report without credentials, or a 400.
func parsePublicLeaks(body []byte) ([]models.LeakedText, error) {
	const example = `{"keys": ["nas_..."]}`
	// Parsed values would take a multiple of the memory of the body.
	var fields map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &fields) != nil || fields == nil {
		return nil, problem.InvalidRequest("The request body is not exactly one JSON object. Send " + example + ".")
	}
	var keys []*string
	err := json.Unmarshal(fields["keys"], &keys)
	if err != nil || len(keys) < 1 || len(keys) > maxPublicLeaks || slices.Contains(keys, nil) {
		return nil, problem.InvalidRequest(fmt.Sprintf("The field keys must be a list of 1 to %d strings. Send %s.", maxPublicLeaks, example))
	}
	leaks := make([]providerLeak, 0, len(keys))
	for _, key := range keys {
		leaks = append(leaks, providerLeak{LeakedText: models.NewLeakedText(*key, "")})
	}
	texts, _ := distinct(leaks)
	return texts, nil
}

// providerLeak is one entry in the report of a provider.
type providerLeak struct {
	models.LeakedText

	kind string // the provider's name for keys of this portal
}

// parseProviderLeaks returns the entries of a report that is a list of objects with type, token and
// a URL in the field with this name, or a 400 for any other body. It stops at the first entry that
// is too many, so that a body cannot use a multiple of its own memory.
func parseProviderLeaks(body []byte, urlField string) (leaks []providerLeak, err error) {
	invalid := problem.InvalidRequest(fmt.Sprintf(
		`The request body is not a list of at most %d reports. Send [{"type": "...", "token": "nas_...", %q: "..."}].`, maxLeaks, urlField))
	decoder := json.NewDecoder(bytes.NewReader(body))
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') || !utf8.Valid(body) {
		return nil, invalid
	}
	for decoder.More() {
		var fields map[string]any
		if err := decoder.Decode(&fields); err != nil || len(leaks) == maxLeaks {
			return nil, invalid
		}
		token, ok := fields["token"].(string)
		if !ok {
			return nil, invalid
		}
		kind, _ := fields["type"].(string)
		where, _ := fields[urlField].(string)
		leaks = append(leaks, providerLeak{models.NewLeakedText(token, where), kind})
	}
	if _, err := decoder.Token(); err != nil { // the end of the list
		return nil, invalid
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid
	}
	return leaks, nil
}

// readLeaks returns a body of any type. After using the body, the caller must call release. The
// error is a 413, a 400 for an incomplete body, or a 503 if too many bodies are in memory.
func readLeaks(c *gin.Context, held *leakBodies) (body []byte, release func(), err error) {
	if c.Request.ContentLength > maxLeakBody {
		return nil, func() {}, problem.PayloadTooLarge(maxLeakBody)
	}
	reader := &heldReader{Reader: http.MaxBytesReader(c.Writer, c.Request.Body, maxLeakBody), held: held, address: addressID(c.ClientIP())}
	body, err = io.ReadAll(reader)
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		err = problem.PayloadTooLarge(maxLeakBody)
	case err != nil && !errors.Is(err, models.ErrBusy):
		err = problem.InvalidRequest("The request body is incomplete.")
	}
	return body, reader.release, err
}

// leakBodies counts the bytes of bodies in memory, all of them and those of each address.
type leakBodies struct {
	ofAddress int64 // the limit of an address

	mu  sync.Mutex
	all int64
	of  map[uuid.UUID]int64
}

// add adds n bytes of an address, or removes them if n is negative, and reports whether they fit.
func (b *leakBodies) add(address uuid.UUID, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[uuid.UUID]int64{}
	}
	b.all += n
	if b.of[address] += n; b.of[address] == 0 {
		delete(b.of, address)
	}
	return b.all <= maxLeakBodies && b.of[address] <= b.ofAddress
}

// heldReader counts the bytes that it has read, until they are released.
type heldReader struct {
	io.Reader

	held    *leakBodies
	address uuid.UUID
	own     int64
}

var errLeaksBusy = problem.Unavailable(fmt.Errorf("%w send reports of leaked keys", models.ErrBusy))

// Read implements [io.Reader].
func (r *heldReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.own += int64(n)
	if !r.held.add(r.address, int64(n)) {
		return n, errLeaksBusy
	}
	return n, err
}

// release releases the bytes. Further calls do nothing.
func (r *heldReader) release() {
	r.held.add(r.address, -r.own)
	r.own = 0
}

// addressID returns the id of the bucket of the network of an address. All unknown addresses share
// one.
func addressID(address string) uuid.UUID {
	ip, _ := netip.ParseAddr(address)
	hash := sha256.Sum256([]byte(usage.Network(ip).String()))
	return uuid.UUID(hash[:16])
}
