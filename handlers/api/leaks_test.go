package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
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
	"github.com/prometheus/client_golang/prometheus"

	"portal/handlers"
	"portal/models/keys"
	"portal/models/modelstest"
)

// keysServer is a scanner's server of public keys.
type keysServer struct {
	*httptest.Server

	t        *testing.T
	requests atomic.Int64
	answer   atomic.Pointer[http.HandlerFunc]
}

// newKeysServer starts a server that publishes the key of each signer.
func newKeysServer(t *testing.T, signers ...signer) *keysServer {
	t.Helper()
	k := &keysServer{t: t}
	var keys []publishedKey
	for _, s := range signers {
		keys = append(keys, s.published(t, true))
	}
	k.publish(keys...)
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.requests.Add(1)
		(*k.answer.Load())(w, r)
	}))
	t.Cleanup(k.Close)
	return k
}

// publish publishes these keys, or none, which is an error of the server.
func (k *keysServer) publish(keys ...publishedKey) {
	content, err := json.Marshal(map[string][]publishedKey{"public_keys": keys})
	modelstest.Must(k.t, err)
	k.respond(func(w http.ResponseWriter, _ *http.Request) {
		if len(keys) == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write(content)
	})
}

func (k *keysServer) respond(answer http.HandlerFunc) { k.answer.Store(&answer) }

// block lets requests hang until the result is called.
func (k *keysServer) block() (release func()) {
	before, hang := k.answer.Load(), make(chan struct{})
	k.respond(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
			(*before)(w, r)
		case <-r.Context().Done():
		}
	})
	return func() {
		k.answer.Store(before)
		close(hang)
	}
}

type publishedKey struct {
	ID      string `json:"key_identifier"`
	PEM     string `json:"key"`
	Current bool   `json:"is_current"`
}

// signer signs reports as a scanner does.
type signer struct {
	id  string
	key *ecdsa.PrivateKey
}

func newSigner(t *testing.T) signer {
	t.Helper()
	return signer{uuid.NewString(), modelstest.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)}
}

func (s signer) published(t *testing.T, current bool) publishedKey {
	t.Helper()
	der := modelstest.Value(x509.MarshalPKIXPublicKey(&s.key.PublicKey))(t)
	return publishedKey{ID: s.id, PEM: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), Current: current}
}

// signed are the options of a report that a scanner has signed.
func (s signer) signed(t testing.TB, report string) option {
	t.Helper()
	hash := sha256.Sum256([]byte(report))
	signature := base64.StdEncoding.EncodeToString(modelstest.Value(ecdsa.SignASN1(rand.Reader, s.key, hash[:]))(t))
	return func(r *http.Request) {
		jsonBody(report)(r)
		r.Header.Set("Github-Public-Key-Identifier", s.id)
		r.Header.Set("Github-Public-Key-Signature", signature)
	}
}

func report(url string, keys ...string) string {
	entries := []map[string]string{}
	for _, key := range keys {
		entries = append(entries, map[string]string{"type": "nas_api_key", "token": key, "url": url, "source": "commit"})
	}
	content, err := json.Marshal(entries)
	if err != nil {
		panic(err)
	}
	return string(content)
}

// newLeakService starts an instance with the scanner.
func newLeakService(t *testing.T, databaseURL string, keys *keysServer) *service {
	t.Helper()
	return newService(t, databaseURL, func(d *handlers.Deps) {
		d.GitHubKeysURL = keys.URL + "?token=hunter2"
		d.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
}

func (s *service) leak(key keys.Key) string {
	s.t.Helper()
	return modelstest.Value(s.store.Keys.Find(s.t.Context(), key.AccountID, key.ID))(s.t).Leak.String()
}

// The vectors are those of GitHub's documentation and of PyPI.
func TestSignaturesOfGitHubVerify(t *testing.T) {
	t.Parallel()
	vectors := []struct{ id, key, body, signature string }{
		{
			"bcb53661c06b4728e59d897fb6165d5c9cda0fd9cdf9d09ead458168deb7518c",
			"MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYAGMWO8XgCamYKMJS6jc/qgvSlAd\nAjPuDPRcXU22YxgBrz+zoN19MzuRyW87qEt9/AmtoNP5GrobzUvQSyJFVw==",
			`[{"source":"commit","token":"some_token","type":"some_type","url":"https://example.com/base-repo-url/"}]`,
			"MEQCIQDaMKqrGnE27S0kgMrEK0eYBmyG0LeZismAEz/BgZyt7AIfXt9fErtRS4XaeSt/AO1RtBY66YcAdjxji410VQV4xg==",
		},
		{
			"f9525bf080f75b3506ca1ead061add62b8633a346606dc5fe544e29231c6ee0d",
			"MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEsz9ugWDj5jK5ELBK42ynytbo38gP\nHzZFI03Exwz8Lh/tCfL3YxwMdLjB+bMznsanlhK0RwcGP3IDb34kQDIo3Q==",
			`[{"token":"some_token","type":"some_type","url":"some_url","source":"some_source"}]`,
			"MEUCIFLZzeK++IhS+y276SRk2Pe5LfDrfvTXu6iwKKcFGCrvAiEAhHN2kDOhy2I6eGkOFmxNkOJ+L2y8oQ9A2T9GGJo6WJY=",
		},
	}
	keys := newKeysServer(t)
	var published []publishedKey
	for i, v := range vectors {
		published = append(published, publishedKey{ID: v.id, PEM: "-----BEGIN PUBLIC KEY-----\n" + v.key + "\n-----END PUBLIC KEY-----\n", Current: i == 1})
	}
	keys.publish(published...)
	s := newLeakService(t, modelstest.SQLiteURL(t), keys)
	for i, v := range vectors {
		send := func(id, content, signature string) answer {
			return s.post("/leaks/github", jsonBody(content), header("Github-Public-Key-Identifier", id), header("Github-Public-Key-Signature", signature))
		}
		hash := sha256.Sum256([]byte("some_token"))
		send(v.id, v.body, v.signature).is(http.StatusOK).
			isExactly(fmt.Sprintf(`[{"token_hash":"%x","token_type":"some_type","label":"false_positive"}]`, hash))
		other := vectors[1-i]
		for name, wrong := range map[string][3]string{
			"another key":       {other.id, v.body, v.signature},
			"an unknown key":    {"0" + v.id[1:], v.body, v.signature},
			"a changed byte":    {v.id, strings.Replace(v.body, "some_token", "some-token", 1), v.signature},
			"another signature": {v.id, v.body, other.signature},
			"no identifier":     {"", v.body, v.signature},
			"no signature":      {v.id, v.body, ""},
			"no base64":         {v.id, v.body, "?"},
		} {
			t.Log(name)
			send(wrong[0], wrong[1], wrong[2]).fails(http.StatusBadRequest, "INVALID_REQUEST")
		}
	}
	s.post("/leaks/github", jsonBody(vectors[0].body)).fails(http.StatusBadRequest, "INVALID_REQUEST")
}

func TestReportsOfGitHubRevokeKeys(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		scanner := newSigner(t)
		s := newLeakService(t, databaseURL, newKeysServer(t, scanner))
		c := s.customer()
		content := report("https://example.com/"+c.secret, c.secret, unknownKey, c.secret, c.secret[:39]+"!")
		var feedback []map[string]string
		for range 2 { // a repeat has the same feedback
			s.post("/leaks/github", scanner.signed(t, content)).is(http.StatusOK).into(&feedback)
			var labels []string
			for _, entry := range feedback {
				labels = append(labels, entry["label"])
			}
			if !slices.Equal(labels, []string{"true_positive", "false_positive", "false_positive"}) || len(feedback[0]) != 3 {
				t.Errorf("feedback %v", feedback)
			}
		}
		s.get("/api/agents", bearer(c.secret)).fails(http.StatusUnauthorized, "UNAUTHORIZED")
		if got := s.leak(c.key); got != "Reported as leaked by GitHub: https://example.com/"+c.key.Masked() {
			t.Error(got)
		}
		s.post("/leaks/github", scanner.signed(t, `{"token": "x"}`)).fails(http.StatusBadRequest, "INVALID_REQUEST")
		s.get("/leaks/github").fails(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED")
		if strings.Contains(s.log.String(), c.secret) {
			t.Error("the log contains the key")
		}
	})
}

// One odd entry must not keep the other keys of the report usable.
func TestEntriesOfGitHubWithoutATokenAreSkipped(t *testing.T) {
	t.Parallel()
	scanner := newSigner(t)
	s := newLeakService(t, modelstest.SQLiteURL(t), newKeysServer(t, scanner))
	c := s.customer()
	var feedback []map[string]string
	content := `[{"type": "nas_api_key"}, {"token": null}, {"token": 1}, null, "x", {"token": "` + c.secret + `", "type": null, "url": 1}]`
	s.post("/leaks/github", scanner.signed(t, content)).is(http.StatusOK).into(&feedback)
	if len(feedback) != 1 || feedback[0]["label"] != "true_positive" {
		t.Errorf("feedback %v", feedback)
	}
	s.get("/api/agents", bearer(c.secret)).fails(http.StatusUnauthorized, "UNAUTHORIZED")
}

func TestPublicReportSaysNothingAboutKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		s.disable(c)
		content := func(keys ...string) string {
			return `{"keys": ` + string(modelstest.Value(json.Marshal(keys))(t)) + `}`
		}
		reported := func(content option) answer {
			t.Helper()
			started := time.Now()
			a := s.post("/leaks", content).is(http.StatusAccepted)
			if took := time.Since(started); took < 110*time.Millisecond {
				t.Errorf("it took %s, so the time may depend on the keys", took)
			}
			return a
		}
		known := reported(jsonBody(content(unknownKey+" "+c.secret, "any string")))
		unknown := reported(body("text/plain", content(unknownKey+" "+unknownKey, "any string")))
		for _, a := range []answer{known, unknown} {
			for _, differs := range []string{"Date", "X-Request-Id"} {
				a.header.Del(differs)
			}
		}
		if string(known.body) != string(unknown.body) || fmt.Sprint(known.header) != fmt.Sprint(unknown.header) {
			t.Errorf("%s %v, and for an unknown key %s %v", known.body, known.header, unknown.body, unknown.header)
		}
		if got := s.leak(c.key); got != "Reported as leaked" {
			t.Errorf("the key: %q", got)
		}
		for _, invalid := range []string{"", "[]", "{}", `{"keys": []}`, `{"keys": "x"}`, `{"keys": [1]}`, `{"keys": ["x", null]}`, `{"Keys": ["x"]}`, content(make([]string, 101)...), content(strings.Repeat(unknownKey, 101))} {
			s.post("/leaks", jsonBody(invalid)).fails(http.StatusBadRequest, "INVALID_REQUEST")
		}
		s.post("/leaks", jsonBody(`{"other": [{}], "keys": ["x"]}`+strings.Repeat(" ", 64<<10-30))).is(http.StatusAccepted)
		for _, large := range []option{jsonBody(strings.Repeat(" ", 64<<10+1)), body("text/plain", "{"+strings.Repeat(" ", 64<<10))} {
			s.post("/leaks", large).fails(http.StatusRequestEntityTooLarge, "PAYLOAD_TOO_LARGE")
			s.post("/leaks", large, chunked()).fails(http.StatusRequestEntityTooLarge, "PAYLOAD_TOO_LARGE")
		}
		s.get("/leaks").fails(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED")
		s.get("/leaks").has("Allow", "POST")
		for _, closed := range []string{"/leaks/github", "/leaks/x"} {
			s.post(closed).fails(http.StatusNotFound, "NOT_FOUND")
		}
	})
}

func TestPublicReportsAreLimitedByNetwork(t *testing.T) {
	t.Parallel()
	s := newLeakService(t, modelstest.SQLiteURL(t), newKeysServer(t))
	c := s.customer()
	from := func(address, key string) answer {
		return s.post("/leaks", jsonBody(`{"keys": ["`+key+`"]}`), header("X-Forwarded-For", address))
	}
	for i := range 60 {
		s.post("/leaks", jsonBody("{}"), header("X-Forwarded-For", fmt.Sprintf("2001:db8::%x", i))).is(http.StatusBadRequest)
	}
	refused := func(wait string) {
		t.Helper()
		a := from("2001:db8::ffff", c.secret).is(http.StatusTooManyRequests)
		a.has("Retry-After", wait)
		a.has("RateLimit", `"address";r=0;t=`+wait)
		a.has("RateLimit-Policy", `"address";q=60;w=3600`)
		a.fails(http.StatusTooManyRequests, "RATE_LIMITED").says("AddressRateLimited", "address")
	}
	refused("3600")
	from("2001:db8:0:1::1", unknownKey).is(http.StatusAccepted)
	s.clock.Advance(time.Hour - time.Second)
	refused("1")
	if got := s.leak(c.key); got != "" {
		t.Error(got)
	}
	s.clock.Advance(time.Second)
	from("2001:db8::1", c.secret).is(http.StatusAccepted)
	if got := s.leak(c.key); got != "Reported as leaked" {
		t.Error(got)
	}
}

func TestPublicKeysOfAProviderAreFetchedRarelyAndKept(t *testing.T) {
	t.Parallel()
	keys, first, second, third := newKeysServer(t), newSigner(t), newSigner(t), newSigner(t)
	s := newLeakService(t, modelstest.SQLiteURL(t), keys)
	content := report("", unknownKey)
	is := func(when string, by signer, status int, requests int64) answer {
		t.Helper()
		got := s.post("/leaks/github", by.signed(t, content))
		if n := keys.requests.Swap(0); got.status != status || n != requests {
			t.Errorf("%s: status %d after %d fetches, want %d after %d: %s", when, got.status, n, status, requests, got.body)
		}
		return got
	}
	is("away at the start", first, 503, 1).has("Retry-After", "60")
	keys.publish(first.published(t, true))
	s.clock.Advance(15 * time.Second)
	is("in the same minute", first, 503, 0).has("Retry-After", "45")
	s.clock.Advance(45 * time.Second)
	is("after a minute", first, 200, 1)
	is("the second report", first, 200, 0)
	keys.publish(first.published(t, false), second.published(t, true))
	is("rotated in the same minute", second, 400, 0)
	s.clock.Advance(time.Minute)
	is("rotated", second, 200, 1)
	is("the old key, while it is published", first, 200, 0)
	keys.publish(second.published(t, true))
	is("a key that is no longer published", first, 200, 0)
	s.clock.Advance(24 * time.Hour)
	is("a day later", first, 400, 1)
	is("the new key", second, 200, 0)
	s.clock.Advance(24 * time.Hour)
	keys.publish()
	is("away", second, 200, 1)
	is("away, once more", second, 200, 0)
	is("a key that may be new, in the same minute", third, 503, 0).has("Retry-After", "60")
	s.clock.Advance(time.Minute)
	is("a key that may be new", third, 503, 1).has("Retry-After", "60")
	keys.publish(first.published(t, true), second.published(t, true))
	stranger := newSigner(t)
	s.clock.Advance(time.Minute)
	is("of a stranger", stranger, 400, 1)
	s.clock.Advance(time.Minute)
	is("of the stranger, once more", stranger, 400, 1)
	keys.publish(first.published(t, true), second.published(t, true), third.published(t, true))
	s.clock.Advance(time.Minute)
	is("a new key after the stranger", third, 200, 1)
	fetches := int64(0)
	for range 60 { // a stranger with a new identifier each minute
		s.clock.Advance(time.Minute)
		s.post("/leaks/github", newSigner(t).signed(t, content)).is(http.StatusBadRequest)
		fetches += keys.requests.Swap(0)
	}
	if fetches < 9 || fetches > 11 {
		t.Errorf("%d fetches in an hour of unknown identifiers", fetches)
	}
	s.clock.Advance(time.Hour)
	keys.publish(publishedKey{ID: "x", PEM: strings.Repeat("x", 1<<20), Current: true})
	s.clock.Advance(24 * time.Hour)
	s.clock.Advance(time.Minute)
	is("too much", second, 200, 1)

	keys.publish(first.published(t, true), second.published(t, true))
	s.clock.Advance(time.Minute)
	release := keys.block()
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			if got := s.post("/leaks/github", first.signed(t, content)); got.status != http.StatusOK {
				t.Errorf("while the scanner hangs: %d %s", got.status, got.body)
			}
		})
	}
	modelstest.Eventually(t, "a fetch hangs", func() bool { return keys.requests.Load() == 1 })
	release()
	running.Wait()
	if n := keys.requests.Swap(0); n != 1 {
		t.Errorf("%d fetches for eight reports", n)
	}
	// A scanner that hangs for longer than the deadline is away.
	s.clock.Advance(24 * time.Hour)
	release = keys.block()
	defer release()
	is("hangs", second, 200, 1)
	if log := s.log.String(); !strings.Contains(log, "deadline") || strings.Contains(log, "hunter2") {
		t.Errorf("the log must have the cause, but not the query of the URL: %s", log)
	}
}

// slowReports sends n reports at once from an address, each without its end. finish sends the ends,
// waits for the responses and returns how many had each status; 0 is a connection that ended.
// responses counts the responses.
func (s *service) slowReports(scanner signer, address string, n int, responses *atomic.Int64) (finish func() map[int]int) {
	var senders sync.WaitGroup
	statuses, ends := make([]int, n), make([]*io.PipeWriter, n)
	for i := range n {
		rest, end := io.Pipe()
		ends[i] = end
		begin := io.MultiReader(strings.NewReader(strings.Repeat(" ", 640<<10)), rest)
		r := modelstest.Value(http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/leaks/github", http.NoBody))(s.t)
		scanner.signed(s.t, "[]")(r)
		r.Body, r.ContentLength = struct {
			io.Reader
			io.Closer
		}{begin, rest}, 1<<20
		r.Header.Set("X-Forwarded-For", address)
		senders.Go(func() {
			defer responses.Add(1)
			if response, err := http.DefaultClient.Do(r); err == nil {
				_ = response.Body.Close()
				statuses[i] = response.StatusCode
			}
		})
	}
	return func() map[int]int {
		for _, end := range ends {
			// Returns when the beginning is sent, or the report refused.
			_, _ = end.Write([]byte(" "))
		}
		for _, end := range ends {
			modelstest.Must(s.t, end.Close())
		}
		senders.Wait()
		counts := map[int]int{}
		for _, status := range statuses {
			counts[status]++
		}
		return counts
	}
}

// The identifier of a scanner's key is public, so anyone can send a body in its name. But all
// reports of a scanner come from one address too, if the portal does not know the proxy.
func TestOneAddressCannotFillTheMemoryForReports(t *testing.T) {
	t.Parallel()
	scanner := newSigner(t)
	s := newLeakService(t, modelstest.SQLiteURL(t), newKeysServer(t, scanner))
	var responses atomic.Int64
	if counts := s.slowReports(scanner, "203.0.113.9", 16, &responses)(); counts[http.StatusServiceUnavailable] > 0 {
		t.Errorf("statuses of 16 reports: %v", counts)
	}
	responses.Store(0)
	// Together they would fill the memory.
	finish := s.slowReports(scanner, "203.0.113.9", 52, &responses)
	modelstest.Eventually(t, "half of the slow bodies are refused", func() bool { return responses.Load() >= 27 })
	s.post("/leaks/github", scanner.signed(t, report("", unknownKey))).is(http.StatusOK)
	finish()
}

func TestIncompleteReportsGiveWayToOthers(t *testing.T) {
	t.Parallel()
	scanner := newSigner(t)
	s := newLeakService(t, modelstest.SQLiteURL(t), newKeysServer(t, scanner))
	var responses atomic.Int64
	first := s.slowReports(scanner, "203.0.113.9", 26, &responses)
	second := s.slowReports(scanner, "203.0.113.10", 26, &responses)
	modelstest.Eventually(t, "the bodies fill the memory", func() bool { return responses.Load() >= 2 })
	large := report("", unknownKey) + strings.Repeat(" ", 900<<10)
	for _, content := range []string{report("", unknownKey), large} {
		s.post("/leaks/github", scanner.signed(t, content)).is(http.StatusOK)
	}
	first()
	second()
}

func TestALargeReportMustArriveQuickly(t *testing.T) {
	t.Parallel()
	scanner := newSigner(t)
	s := newLeakService(t, modelstest.SQLiteURL(t), newKeysServer(t, scanner))
	var responses atomic.Int64
	finish := s.slowReports(scanner, "203.0.113.9", 1, &responses)
	modelstest.Eventually(t, "the report ends", func() bool { return responses.Load() == 1 })
	if counts := finish(); counts[http.StatusBadRequest] != 1 {
		t.Errorf("statuses: %v", counts)
	}
}

func TestReportThatFailsCountsTheKeysThatItRevoked(t *testing.T) {
	t.Parallel()
	scanner := newSigner(t)
	var registry *prometheus.Registry
	s := newService(t, modelstest.SQLiteURL(t), func(d *handlers.Deps) {
		d.GitHubKeysURL, registry = newKeysServer(t, scanner).URL, d.Registry
	})
	first, second := s.customer(), s.customer()
	modelstest.Exec(t, s.database, "CREATE TRIGGER broken BEFORE UPDATE ON api_keys WHEN NEW.account_id = '"+
		second.accountID.String()+"' BEGIN SELECT RAISE(ABORT, 'broken'); END")
	content := report("", first.secret, second.secret)
	revoked := func(want string) {
		t.Helper()
		if sample := `portal_leak_reports_total{outcome="revoked",source="github"} `; !strings.Contains(scrape(registry), sample+want+"\n") {
			t.Errorf("no sample %s%s", sample, want)
		}
	}
	s.post("/leaks/github", scanner.signed(t, content)).is(http.StatusInternalServerError)
	revoked("1")
	modelstest.Exec(t, s.database, "DROP TRIGGER broken")
	s.post("/leaks/github", scanner.signed(t, content)).is(http.StatusOK)
	revoked("2")
}
