package webhooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	deliverer "portal/handlers/webhooks"
	"portal/models"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/secret"
	"portal/models/value"
	"portal/models/webhooks"
)

func TestMain(m *testing.M) { modelstest.Main(m) }

// instance is a store with a sender.
type instance struct {
	t       *testing.T
	store   *models.Store
	url     string
	clock   *modelstest.Clock
	log     *modelstest.LogBuffer
	account people.Account
}

// loopback allows receivers on this machine.
func loopback() *webhooks.Guard {
	return &webhooks.Guard{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
}

func eachDatabase(t *testing.T, guard *webhooks.Guard, run func(t *testing.T, in *instance)) {
	t.Helper()
	modelstest.Databases(t, func(t *testing.T, url string) {
		in := &instance{t: t, url: url, clock: modelstest.NewClock(time.Now()), log: &modelstest.LogBuffer{}}
		in.store = in.open(guard)
		in.account = in.newAccount()
		run(t, in)
	})
}

func (in *instance) open(guard *webhooks.Guard) *models.Store {
	keyring := modelstest.Value(secret.NewKeyring(strings.Repeat("a secret of the tests. ", 2), ""))(in.t)
	return modelstest.Open(in.t, in.url, models.Options{Now: in.clock.Now, Webhooks: guard, Keyring: keyring, Logger: in.log.Logger(), Mail: true, ReportDelay: -time.Hour})
}

func (in *instance) newAccount() people.Account {
	in.t.Helper()
	return modelstest.Value(in.store.Accounts.Create(in.t.Context(), people.NewAccount{
		Name: "Acme", Email: uuid.NewString() + "@example.com", Password: "correct horse battery staple",
	}))(in.t)
}

// run runs a sender of a store until the test ends or stop is called.
func (in *instance) run(store *models.Store) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	sender := deliverer.New(store, in.log.Logger(), nil)
	sender.PollEvery(10 * time.Millisecond)
	go func() { defer close(done); sender.Run(ctx) }()
	stop = func() { cancel(); <-done }
	in.t.Cleanup(stop)
	return stop
}

// add adds an endpoint and returns it and its secret.
func (in *instance) add(accountID uuid.UUID, url string, groups ...record.EventGroup) (webhooks.Endpoint, string) {
	in.t.Helper()
	if len(groups) == 0 {
		groups = []record.EventGroup{record.GroupKeys}
	}
	endpoint, secret, err := in.store.Webhooks.Add(in.t.Context(), accountID, url, groups, record.Operator())
	modelstest.Must(in.t, err)
	return endpoint, secret
}

func (in *instance) agent(accountID uuid.UUID) agents.Agent {
	in.t.Helper()
	return modelstest.Value(in.store.Agents.Create(in.t.Context(), accountID, agents.NewAgent{Name: "Front <desk>"}, record.Operator()))(in.t)
}

func (in *instance) deliveries(e webhooks.Endpoint) []webhooks.Delivery {
	in.t.Helper()
	return modelstest.Value(in.store.Webhooks.Deliveries(in.t.Context(), e.AccountID, e.ID))(in.t)
}

// request is a request that a receiver got.
type request struct {
	header http.Header
	body   []byte
}

// receiver answers requests and keeps them.
type receiver struct {
	*httptest.Server

	mu     sync.Mutex
	got    []request
	answer http.HandlerFunc
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, sent *http.Request) {
		body, _ := io.ReadAll(sent.Body)
		r.mu.Lock()
		r.got = append(r.got, request{sent.Header.Clone(), body})
		r.mu.Unlock()
		r.answer(w, sent)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request{}, r.got...)
}

func ok(http.ResponseWriter, *http.Request) {}

// wait waits until the receiver has got n requests.
func (r *receiver) wait(t *testing.T, n int) []request {
	t.Helper()
	modelstest.Eventually(t, fmt.Sprintf("%d requests", n), func() bool { return len(r.requests()) >= n })
	return r.requests()
}

// verify checks a request with the official library.
func verify(t *testing.T, secret string, r request) error {
	t.Helper()
	return modelstest.Value(standard.NewWebhook(secret))(t).VerifyIgnoringTimestamp(r.body, r.header)
}

func TestDelivery(t *testing.T) {
	eachDatabase(t, loopback(), func(t *testing.T, in *instance) {
		r := newReceiver(t, ok)
		endpoint, secret := in.add(in.account.ID, r.URL+"/hook?x=1")
		other, _ := in.add(in.account.ID, r.URL+"/people", record.GroupPeople)
		recorded := func() {
			t.Helper()
			modelstest.Eventually(t, "all are recorded as delivered", func() bool {
				return !slices.ContainsFunc(in.deliveries(endpoint), func(d webhooks.Delivery) bool { return d.DeliveredAt == nil })
			})
		}
		in.run(in.store)
		agent := in.agent(in.account.ID)
		// Also the second endpoint was added. The order of deliveries is not certain.
		first := r.wait(t, 2)
		got := first[slices.IndexFunc(first, func(sent request) bool { return bytes.Contains(sent.body, []byte(agent.ID.String())) })]
		if err := verify(t, secret, got); err != nil {
			t.Errorf("verify: %v", err)
		}
		for name, change := range map[string]func(*request){
			"body":      func(c *request) { c.body[7] ^= 1 },
			"id":        func(c *request) { c.header.Set("webhook-id", uuid.NewString()) },
			"timestamp": func(c *request) { c.header.Set("webhook-timestamp", "1763899200") },
		} {
			changed := request{got.header.Clone(), bytes.Clone(got.body)}
			if change(&changed); verify(t, secret, changed) == nil {
				t.Errorf("another %s is accepted", name)
			}
		}
		if got.header.Get("Content-Type") != "application/json" || got.header.Get("User-Agent") != "Portal-Webhooks/1" {
			t.Errorf("headers %v", got.header)
		}
		var body struct {
			Type      string
			Timestamp time.Time
			Data      record.ActivityElement
		}
		modelstest.Must(t, json.Unmarshal(got.body, &body))
		activities := modelstest.Value(in.store.Activity.Report(t.Context(), record.ActivityReport{AccountID: in.account.ID, Limit: 10}))(t)
		reported := activities[len(activities)-1].Element()
		element := modelstest.Value(json.Marshal(reported))(t)
		if body.Type != "agent.created" || body.Data.ID.String() != got.header.Get("webhook-id") || body.Data.ID != reported.ID || *body.Data.Subject.ID != agent.ID {
			t.Errorf("body %s", got.body)
		}
		if !bytes.Contains(bytes.ReplaceAll(element, []byte(`\u003c`), []byte("<")), []byte("Front <desk")) || !bytes.Contains(got.body, []byte(`"label":"Front <desk>"`)) {
			t.Errorf("the report has %s, the webhook %s", element, got.body)
		}
		if d := in.deliveries(other); len(d) != 0 {
			t.Errorf("the endpoint for other events got %v", d)
		}

		// After a rotation both secrets sign, for a day.
		_, rotated, err := in.store.Webhooks.Rotate(t.Context(), in.account.ID, endpoint.ID, record.Operator())
		modelstest.Must(t, err)
		got = r.wait(t, 3)[2]
		if verify(t, secret, got) != nil || verify(t, rotated, got) != nil {
			t.Errorf("signatures %s", got.header.Get("webhook-signature"))
		}
		recorded() // otherwise the lease of a delivery ends, and it is sent again
		in.clock.Advance(24*time.Hour + time.Second)
		in.agent(in.account.ID)
		got = r.wait(t, 4)[3]
		if verify(t, secret, got) == nil || verify(t, rotated, got) != nil {
			t.Errorf("a day later: signatures %s", got.header.Get("webhook-signature"))
		}
		modelstest.Must(t, in.store.Webhooks.Test(t.Context(), in.account.ID, endpoint.ID))
		got = r.wait(t, 5)[4]
		if !bytes.Contains(got.body, []byte(`"type":"webhook.test"`)) || verify(t, rotated, got) != nil {
			t.Errorf("a test: %s", got.body)
		}
		recorded()
		// Resent with the same id.
		last := in.deliveries(endpoint)[1]
		modelstest.Must(t, in.store.Webhooks.Resend(t.Context(), in.account.ID, endpoint.ID, last.EventID, last.Event))
		if got = r.wait(t, 6)[5]; got.header.Get("webhook-id") != last.EventID.String() {
			t.Errorf("resent as %s", got.header.Get("webhook-id"))
		}
		if log := in.log.String(); strings.Contains(log, "whsec_") || strings.Contains(log, "Front") || strings.Contains(log, "/hook") {
			t.Errorf("log: %s", log)
		}
	})
}

func TestRetries(t *testing.T) {
	eachDatabase(t, loopback(), func(t *testing.T, in *instance) {
		var code atomic.Int64
		code.Store(http.StatusFound)
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			if code.Load() == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "3599.9")
			}
			w.WriteHeader(int(code.Load()))
			_, _ = io.WriteString(w, "no\x00\xff<b>"+strings.Repeat("é", 5000))
		})
		endpoint, _ := in.add(in.account.ID, r.URL)
		in.run(in.store)
		in.agent(in.account.ID)
		for attempt, wait := range []time.Duration{5 * time.Second, time.Hour, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour} {
			r.wait(t, attempt+1)
			var d webhooks.Delivery
			modelstest.Eventually(t, "the next attempt is scheduled", func() bool {
				d = in.deliveries(endpoint)[0]
				return d.Status != 0 && d.DueAt != nil && d.Attempts == attempt+1 && (d.DueAt.Sub(in.clock.Now())-time.Minute).Abs() > time.Second
			})
			if due := d.DueAt.Sub(in.clock.Now()); due < wait*9/10-time.Millisecond || due > wait*11/10 {
				t.Errorf("attempt %d: the next one is after %s, want about %s", attempt+1, due, wait)
			}
			if d.Status != int(code.Load()) || !strings.HasPrefix(d.Response, "no �<b>éé") || len([]rune(d.Response)) != 200 {
				t.Errorf("status %d, response %q", d.Status, d.Response)
			}
			code.Store(http.StatusInternalServerError)
			if attempt == 0 {
				code.Store(http.StatusTooManyRequests)
			}
			in.clock.Advance(wait*11/10 + time.Second)
		}
		r.wait(t, 8)
		modelstest.Eventually(t, "the delivery has failed", func() bool { return in.deliveries(endpoint)[0].DueAt == nil })
		if d := in.deliveries(endpoint)[0]; d.DeliveredAt != nil || d.Attempts != 8 {
			t.Errorf("%+v", d)
		}
		// 410 disables the endpoint, which then gets nothing.
		code.Store(http.StatusGone)
		in.agent(in.account.ID)
		modelstest.Eventually(t, "the endpoint is disabled", func() bool {
			return modelstest.Value(in.store.Webhooks.Find(t.Context(), in.account.ID, endpoint.ID))(t).DisabledAt != nil
		})
		before := len(in.deliveries(endpoint))
		in.agent(in.account.ID)
		if n := len(in.deliveries(endpoint)); n != before {
			t.Errorf("a disabled endpoint has %d deliveries, had %d", n, before)
		}
		modelstest.Must(t, in.store.Webhooks.Enable(t.Context(), in.account.ID, endpoint.ID, record.Operator()))
		if n := len(in.deliveries(endpoint)); n != before {
			t.Errorf("an enabled endpoint got %d events of the time before", n-before)
		}
	})
}

// An endpoint that fails for 5 days with at least 20 deliveries is disabled, after a mail.
func TestEndpointThatFailsForLong(t *testing.T) {
	eachDatabase(t, loopback(), func(t *testing.T, in *instance) {
		endpoint, _ := in.add(in.account.ID, "http://127.0.0.1:1/")
		fail := func() {
			t.Helper()
			in.agent(in.account.ID)
			content := modelstest.Value(in.store.Webhooks.Claim(t.Context(), webhooks.Turn{}))(t)
			modelstest.Must(t, in.store.Webhooks.Finish(t.Context(), content.Delivery, webhooks.DeliveryResult{Text: "The connection failed."}))
		}
		disabled := func() bool {
			return modelstest.Value(in.store.Webhooks.Find(t.Context(), in.account.ID, endpoint.ID))(t).DisabledAt != nil
		}
		for range 19 {
			fail()
		}
		in.clock.Advance(5 * value.Day)
		waiting := modelstest.Value(in.store.Outbox.Waiting(t.Context()))(t)
		content := modelstest.Value(in.store.Webhooks.Claim(t.Context(), webhooks.Turn{}))(t)
		modelstest.Must(t, in.store.Webhooks.Finish(t.Context(), content.Delivery, webhooks.DeliveryResult{}))
		if disabled() {
			t.Error("the endpoint is disabled after 19 deliveries")
		}
		if n := modelstest.Value(in.store.Outbox.Waiting(t.Context()))(t); n != waiting+1 {
			t.Errorf("%d mails about an endpoint that fails for an hour", n-waiting)
		}
		in.agent(in.account.ID)
		for !disabled() {
			content := modelstest.Value(in.store.Webhooks.Claim(t.Context(), webhooks.Turn{}))(t)
			modelstest.Must(t, in.store.Webhooks.Finish(t.Context(), content.Delivery, webhooks.DeliveryResult{}))
		}
		if n := modelstest.Value(in.store.Outbox.Waiting(t.Context()))(t); n != waiting+2 {
			t.Errorf("%d mails about the disabled endpoint", n-waiting-1)
		}
		_, err := in.store.Webhooks.Claim(t.Context(), webhooks.Turn{})
		if err == nil {
			t.Error("deliveries to a disabled endpoint wait")
		}
	})
}

func TestForbiddenAddresses(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	eachDatabase(t, loopback(), func(t *testing.T, in *instance) {
		r := newReceiver(t, ok)
		// A name that resolves to loopback addresses, saved while they were allowed.
		endpoint, _ := in.add(in.account.ID, strings.Replace(r.URL, "127.0.0.1", "localhost", 1))
		literal, _ := in.add(in.account.ID, r.URL)
		strict := in.open(&webhooks.Guard{})
		if _, _, err := strict.Webhooks.Add(t.Context(), in.account.ID, "https://localhost:4711/", []record.EventGroup{record.GroupKeys}, record.Operator()); err != nil {
			t.Errorf("saving resolves a name: %v", err)
		}
		if _, _, err := strict.Webhooks.Add(t.Context(), in.account.ID, "https://127.0.0.1/", []record.EventGroup{record.GroupKeys}, record.Operator()); err == nil {
			t.Error("a forbidden address is saved")
		}
		stop := in.run(strict)
		in.agent(in.account.ID)
		for _, e := range []webhooks.Endpoint{endpoint, literal} {
			modelstest.Eventually(t, "the attempts fail", func() bool {
				d := in.deliveries(e)
				return len(d) > 0 && d[0].Response != ""
			})
		}
		stop()
		if n := len(r.requests()); n != 0 {
			t.Errorf("%d requests to a forbidden address", n)
		}
		// The portal's own listener is refused even in an allowed network, a proxy is not
		// used.
		own := loopback()
		own.Own = []netip.AddrPort{netip.MustParseAddrPort(r.Listener.Addr().String())}
		stop = in.run(in.open(own))
		in.clock.Advance(time.Minute)
		modelstest.Eventually(t, "the second attempts fail", func() bool {
			return in.deliveries(literal)[0].Attempts == 2 && in.deliveries(literal)[0].DueAt.Sub(in.clock.Now()) > time.Minute
		})
		stop()
		if n := len(r.requests()); n != 0 {
			t.Errorf("%d requests to the portal itself", n)
		}
		in.run(in.store)
		in.clock.Advance(time.Hour)
		r.wait(t, 1)
	})
}

// Receivers of one account that hang hold up neither its other endpoint, nor another account's, nor
// a revocation. What an instance that was killed has claimed is sent by another one.
func TestHangingReceivers(t *testing.T) {
	eachDatabase(t, loopback(), func(t *testing.T, in *instance) {
		release := make(chan struct{})
		var busy, most atomic.Int64
		hanging := newReceiver(t, func(http.ResponseWriter, *http.Request) {
			most.Store(max(most.Load(), busy.Add(1)))
			<-release
			busy.Add(-1)
		})
		t.Cleanup(func() { close(release) })
		other := in.newAccount()
		good, own := newReceiver(t, ok), newReceiver(t, ok)
		in.add(other.ID, good.URL)
		for i := range webhooks.MaxWebhooks - 1 {
			in.add(in.account.ID, fmt.Sprintf("%s/%d", hanging.URL, i))
		}
		in.add(in.account.ID, own.URL)
		// Two instances. One is killed after it has claimed a delivery.
		in.agent(other.ID)
		killed := modelstest.Value(in.store.Webhooks.Claim(t.Context(), webhooks.Turn{}))(t)
		for range 5 {
			in.agent(in.account.ID)
		}
		in.run(in.open(loopback()))
		modelstest.Eventually(t, "the account has as many attempts as it may", func() bool { return busy.Load() >= 15 })
		in.agent(other.ID)
		good.wait(t, 1)
		own.wait(t, 5)
		key, _, err := in.store.Keys.Generate(t.Context(), in.account.ID, keys.NewKey{Label: "key", FormID: uuid.New()}, record.Operator())
		modelstest.Must(t, err)
		modelstest.Value(in.store.Keys.Revoke(t.Context(), in.account.ID, key.ID, "", record.Operator()))(t)
		in.clock.Advance(time.Minute + time.Second)
		for _, got := range good.wait(t, 2) {
			if got.header.Get("webhook-id") == "" {
				t.Error("no id")
			}
		}
		if got := good.requests()[1].header.Get("webhook-id"); got != killed.EventID.String() {
			t.Errorf("after the lease %s was sent, want %s", got, killed.EventID)
		}
		if most.Load() > 16 {
			t.Errorf("%d attempts at a time", most.Load())
		}
	})
}

// Endpoints take turns, so one with many deliveries that are due delays nobody else's.
func TestEndpointsTakeTurns(t *testing.T) {
	eachDatabase(t, loopback(), func(t *testing.T, in *instance) {
		r := newReceiver(t, ok)
		in.add(in.account.ID, r.URL)
		for range 15 {
			in.agent(in.account.ID)
		}
		other := in.newAccount()
		endpoint, _ := in.add(other.ID, r.URL)
		in.clock.Advance(time.Second)
		agent := in.agent(other.ID)
		in.run(in.store)
		first := r.wait(t, 15)[:8]
		if !slices.ContainsFunc(first, func(got request) bool { return bytes.Contains(got.body, []byte(agent.ID.String())) }) {
			t.Errorf("the newest delivery, to %s, is not among the first", endpoint.ID)
		}
	})
}

func TestNothingWaitsWhileWebhooksAreOff(t *testing.T) {
	eachDatabase(t, loopback(), func(t *testing.T, in *instance) {
		in.add(in.account.ID, "http://127.0.0.1:1/")
		before := modelstest.Value(in.store.Webhooks.Waiting(t.Context()))(t)
		in.store = modelstest.Open(t, in.url, models.Options{Now: in.clock.Now, WebhooksOff: true})
		in.agent(in.account.ID)
		if waiting := modelstest.Value(in.store.Webhooks.Waiting(t.Context()))(t); waiting != before {
			t.Errorf("%d deliveries wait, %d before", waiting, before)
		}
	})
}

// Beyond 10,000 waiting deliveries of an account the oldest fail.
func TestManyWaitingDeliveries(t *testing.T) {
	eachDatabase(t, loopback(), func(t *testing.T, in *instance) {
		endpoint, _ := in.add(in.account.ID, "http://127.0.0.1:1/")
		numbers := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 10050) "
		id, uuidType, future := "printf('00000000-0000-7000-8000-%012d', i)", "", "'2100-01-01 00:00:00+00:00'"
		created := "'2026-01-01 00:' || printf('%02d:%02d', i/600, i/10%60) || '+00:00'"
		if strings.HasPrefix(in.url, "postgres") {
			id, uuidType = "'00000000-0000-7000-8000-' || lpad(i::text, 12, '0')", "::uuid"
			created, future = "'2026-01-01 00:00:00+00'::timestamptz + i * interval '1 second'", future+"::timestamptz"
		}
		modelstest.Exec(t, in.url, fmt.Sprintf("INSERT INTO webhook_deliveries (endpoint_id, event_id, event, account_id, created_at, due_at) %s SELECT '%s'%s, (%s)%s, 'agent.created', '%s'%s, %s, %s FROM n",
			numbers, endpoint.ID, uuidType, id, uuidType, in.account.ID, uuidType, created, future))
		in.agent(in.account.ID)
		content := modelstest.Value(in.store.Webhooks.Claim(t.Context(), webhooks.Turn{}))(t)
		modelstest.Must(t, in.store.Webhooks.Finish(t.Context(), content.Delivery, webhooks.DeliveryResult{Status: 500}))
		waiting := modelstest.Value(in.store.Webhooks.Waiting(t.Context()))(t)
		if waiting > 10_000 || waiting < 9_980 {
			t.Errorf("%d deliveries wait", waiting)
		}
	})
}
