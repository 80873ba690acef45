package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
)

var floodTime = flag.Duration("flood", 3*time.Second, "how long the overload tests flood a portal")

// arrivals are requests that arrive at a fixed rate, however long the responses take.
type arrivals struct {
	ok, refused, late atomic.Int64 // responses: 200, 503, and 503 after more than a second
	failed            atomic.Int64 // without a response, or with an unexpected one
}

// send sends requests at the rate for this time, and returns when all have a response.
func (a *arrivals) send(i *instance, key string, perSecond float64, duration time.Duration) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}, Timeout: startTimeout}
	defer client.CloseIdleConnections()
	interval := time.Duration(float64(time.Second) / perSecond)
	var all sync.WaitGroup
	began := time.Now()
	for next := began; next.Before(began.Add(duration)); next = next.Add(interval) {
		time.Sleep(time.Until(next))
		all.Go(func() { a.request(client, i.URL, key) })
	}
	all.Wait()
}

func (a *arrivals) request(client *http.Client, url, key string) {
	request, err := http.NewRequest(http.MethodGet, url+"/api/agents", http.NoBody)
	if err != nil {
		a.failed.Add(1)
		return
	}
	request.Header.Set("Authorization", "Bearer "+key)
	began := time.Now()
	response, err := client.Do(request)
	if err != nil {
		a.failed.Add(1)
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	switch {
	case response.StatusCode == http.StatusOK:
		a.ok.Add(1)
	case response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "":
		a.failed.Add(1)
	default:
		a.refused.Add(1)
		if time.Since(began) > time.Second {
			a.late.Add(1)
		}
	}
}

// capacity returns how many requests a second the portal answers to clients that never pause.
func capacity(t *testing.T, i *instance, key string) float64 {
	t.Helper()
	const measured = 2 * time.Second
	var answered atomic.Int64
	var clients sync.WaitGroup
	end := time.Now().Add(measured)
	for range 16 {
		clients.Go(func() {
			for time.Now().Before(end) {
				if i.Get("/api/agents", modelstest.Bearer(key)).StatusCode == http.StatusOK {
					answered.Add(1)
				}
			}
		})
	}
	clients.Wait()
	return float64(answered.Load()) / measured.Seconds()
}

// The database is so far away that it limits the capacity, and not the processors, which the test
// needs too. So the test does not run beside the floods that use them up.
func TestTenTimesTheCapacityIsRefusedQuickly(t *testing.T) {
	databaseURL := modelstest.PostgresURL(t)
	account := createAccount(t, modelstest.Open(t, databaseURL, models.Options{}))
	far := newRelay(t, databaseURL)
	far.delay = 20 * time.Millisecond
	i := startBuilt(t, []string{"DATABASE_URL=" + far.url, testSecret, anyPort, "PORTAL_RATE_LIMIT=off"})
	v := i.signedIn(t)
	rate := capacity(t, i, account.secret)

	var flood arrivals
	began := time.Now()
	var pages, shown int
	ended := make(chan struct{})
	go func() {
		flood.send(i, account.secret, 10*rate, *floodTime)
		close(ended)
	}()
	for running := true; running; pages++ {
		if v.Get("/api-keys").StatusCode == http.StatusOK {
			shown++
		}
		select {
		case <-ended:
			running = false
		default:
		}
	}
	flooded, after := time.Since(began), time.Now()
	for inARow := 0; inARow < 10 && time.Since(after) < time.Minute; inARow++ {
		began := time.Now()
		if i.Get("/api/agents", modelstest.Bearer(account.secret)).StatusCode != http.StatusOK || time.Since(began) > time.Second {
			inARow = 0
		}
	}
	normal := time.Since(after)
	t.Logf("capacity %.0f/s; %s of ten times as much: %d answered, %d refused, %d of them late; %d of %d pages shown; "+
		"ten answers in a row %s after the end",
		rate, *floodTime, flood.ok.Load(), flood.refused.Load(), flood.late.Load(), shown, pages, normal)
	if failed := flood.failed.Load(); failed > 0 {
		t.Errorf("%d requests got neither 200 nor 503 with Retry-After", failed)
	}
	if want := int64(rate * floodTime.Seconds() / 2); flood.ok.Load() < want {
		t.Errorf("%d requests were answered, want at least %d", flood.ok.Load(), want)
	}
	if flood.refused.Load() == 0 || flood.late.Load()*2 > flood.refused.Load() {
		t.Errorf("of %d refusals %d took longer than a second", flood.refused.Load(), flood.late.Load())
	}
	if shown*10 < pages*9 {
		t.Errorf("only %d of %d pages were shown", shown, pages)
	}
	i.expectLittleMemory(t)
	if normal > time.Minute {
		t.Error("a minute after the flood, requests still fail or are slow")
	}
	if lines := regexp.MustCompile(`"msg":"request refused"`).FindAllString(i.stderr.String(), -1); len(lines) == 0 || len(lines) > int(flooded.Seconds())+5 {
		t.Errorf("%d lines about refusals", len(lines))
	}
	i.stop(t)
}

// The attacker begins 5,300 requests and finishes none of them.
func TestHalfOpenRequestsFromOneAddressShutNobodyOut(t *testing.T) {
	t.Parallel()
	i := start(t, []string{"DATABASE_URL=" + modelstest.SQLiteURL(t), anyPort, "PORTAL_METRICS_ADDR=127.0.0.1:0"})
	address := strings.TrimPrefix(i.URL, "http://")
	stranger := modelstest.NewVisitor(t, i.URL)
	stranger.Transport = &http.Transport{DisableKeepAlives: true}
	neighbor := dial(t, 1, address)
	request(neighbor, "/healthz")
	for n := range 5300 {
		_, _ = fmt.Fprint(dial(t, 2, address), "GET /login HTTP/1.1\r\nHost: ")
		if n%500 == 0 {
			stranger.Get("/readyz").Is(http.StatusOK)
		}
	}
	stranger.Get("/login").Is(http.StatusOK)
	stranger.At(i.metrics).Get("/healthz").Is(http.StatusOK)
	stranger.At(i.metrics).Get("/readyz").Is(http.StatusOK)
	if !request(neighbor, "/healthz") {
		t.Error("the connection of another client was closed")
	}
}

// One password hash takes 46 MiB and a processor. Many sign-ins at once must neither multiply the
// memory nor block the API.
func TestAFloodOfSignInsIsBoundedAndDoesNotBlockTheAPI(t *testing.T) {
	t.Parallel()
	databaseURL := modelstest.PostgresURL(t)
	account := createAccount(t, modelstest.Open(t, databaseURL, models.Options{}))
	i := startBuilt(t, append(databaseEnv(databaseURL), testSecret, anyPort, "PORTAL_RATE_LIMIT=off"))

	const crowd = 16
	form := url.Values{"email": {testEmail}, "password": {testPassword}}
	statuses := make(chan int, crowd)
	var waiting sync.WaitGroup
	for range crowd {
		waiting.Go(func() {
			statuses <- modelstest.NewVisitor(t, i.URL).Post("/login", form).StatusCode
		})
	}
	done := make(chan struct{})
	go func() {
		waiting.Wait()
		close(statuses)
		close(done)
	}()
	for answered, flooded := 0, true; flooded || answered == 0; answered++ {
		i.accepts(t, account.secret)
		select {
		case <-done:
			flooded = false
		default:
		}
	}

	signedIn := 0
	for status := range statuses {
		switch status {
		case http.StatusSeeOther:
			signedIn++
		case http.StatusServiceUnavailable: // it would have waited too long
		default:
			t.Errorf("a sign-in: status %d", status)
		}
	}
	if signedIn == 0 {
		t.Error("no sign-in succeeded")
	}
	i.expectLittleMemory(t)
}

var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// expectLittleMemory checks the peak resident memory of an instance.
func (i *instance) expectLittleMemory(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	status := modelstest.Value(os.ReadFile(fmt.Sprintf("/proc/%d/status", i.Process.Pid)))(t)
	peak := modelstest.Value(strconv.Atoi(string(peakLine.FindSubmatch(status)[1])))(t) >> 10
	t.Logf("peak memory %d MiB", peak)
	if limit := 400; peak > limit {
		t.Errorf("the peak memory is %d MiB, want at most %d", peak, limit)
	}
}
