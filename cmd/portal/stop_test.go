package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"portal/models"
	"portal/models/database"
	"portal/models/modelstest"
)

// halfRequest is a request without the end of its body.
type halfRequest struct {
	net.Conn

	rest string // the end of the body
}

// beginRequest sends a request with key, except the last byte of its body.
func (i *instance) beginRequest(t *testing.T, key string) halfRequest {
	t.Helper()
	conn := modelstest.Value(net.Dial("tcp", strings.TrimPrefix(i.URL, "http://")))(t)
	t.Cleanup(func() { _ = conn.Close() })
	const body = `{"agentId":"00000000-0000-4000-8000-000000000000"}`
	modelstest.Value(fmt.Fprintf(conn, "POST /api/widget/token HTTP/1.1\r\nHost: portal\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", key, len(body), body[:len(body)-1]))(t)
	return halfRequest{conn, body[len(body)-1:]}
}

// finish sends the rest and returns the status of the response.
func (h halfRequest) finish(t *testing.T) int {
	t.Helper()
	modelstest.Value(h.Write([]byte(h.rest)))(t)
	response, err := http.ReadResponse(bufio.NewReader(h), nil)
	modelstest.Must(t, err)
	defer response.Body.Close()
	return response.StatusCode
}

// refusesConnections waits until the instance refuses connections.
func (i *instance) refusesConnections(t *testing.T) {
	t.Helper()
	modelstest.Eventually(t, "the portal does not listen", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(i.URL, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
}

func TestAStopFinishesRunningRequests(t *testing.T) {
	t.Parallel()
	for url, sig := range map[string]os.Signal{modelstest.SQLiteURL(t): os.Interrupt, modelstest.PostgresURL(t): syscall.SIGTERM} {
		// awaitReady has left an idle connection open.
		i, account := startWithAccount(t, url)
		request := i.beginRequest(t, account.secret)
		i.hasSeen(t, account)
		i.signal(t, sig)
		i.refusesConnections(t)
		// The agent does not exist. 404 shows that the whole request was processed.
		if got := request.finish(t); got != http.StatusNotFound {
			t.Errorf("%s: the running request got status %d", sig, got)
		}
		i.awaitExit(t)
		if strings.Contains(i.stderr.String(), "requests dropped") {
			t.Errorf("%s: the stop waited for the idle connection: %s", sig, i.stderr.String())
		}
	}
}

// hasSeen waits until Last Used shows that a request with the account's key has arrived.
func (i *instance) hasSeen(t *testing.T, account accountWithKey) {
	t.Helper()
	modelstest.Eventually(t, "the request has arrived", func() bool {
		return modelstest.Value(account.store.Keys.Find(t.Context(), account.ID, account.key.ID))(t).LastUsedAt != nil
	})
}

// Another session keeps the instance from writing until the stop begins.
func TestAStopWritesManyPendingCounts(t *testing.T) {
	t.Parallel()
	const keys, workers = 2000, 8
	modelstest.Databases(t, func(t *testing.T, url string) {
		account := createAccount(t, modelstest.Open(t, url, models.Options{}))
		secrets := modelstest.Keys(t, url, account.ID, keys)
		i := start(t, []string{"DATABASE_URL=" + url, testSecret, anyPort})
		release := holdUsage(t, url)
		var running sync.WaitGroup
		for worker := range workers {
			running.Go(func() {
				for n := worker; n < keys; n += workers {
					i.accepts(t, secrets[n])
				}
			})
		}
		running.Wait()
		i.signal(t, syscall.SIGTERM)
		release()
		i.awaitExit(t)
		var used, requests int
		err := modelstest.OpenDatabase(t, url).NewRaw("SELECT count(used_at), sum(requests) FROM api_key_last_uses").
			Scan(t.Context(), &used, &requests)
		if err != nil || used != keys || requests != keys {
			t.Errorf("%d keys with a last use and %d requests, want %d, %v", used, requests, keys, err)
		}
	})
}

// holdUsage keeps others from writing usage until release.
func holdUsage(t *testing.T, databaseURL string) (release func()) {
	t.Helper()
	conn := modelstest.Value(modelstest.OpenDatabase(t, databaseURL).Conn(t.Context()))(t)
	begin := "BEGIN IMMEDIATE"
	if _, sqlite := database.SQLitePath(databaseURL); !sqlite {
		begin = "BEGIN; LOCK TABLE api_key_last_uses IN SHARE MODE"
	}
	modelstest.Value(conn.ExecContext(t.Context(), begin))(t)
	return func() {
		_, err := conn.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK")
		modelstest.Must(t, errors.Join(err, conn.Close()))
	}
}

// A stop that cannot write the usage counts must not exit with status 0.
func TestAStopThatLosesUsageCountsFails(t *testing.T) {
	t.Parallel()
	cluster := modelstest.OwnCluster(t, "synchronous_commit=on")
	databaseURL := cluster.URL("postgres")
	account := createAccount(t, modelstest.Open(t, databaseURL, models.Options{}))
	i := start(t, []string{"DATABASE_URL=" + databaseURL, testSecret, anyPort})
	// The lock prevents the background write until the server is halted.
	holdUsage(t, databaseURL)
	i.accepts(t, account.secret)
	modelstest.Must(t, cluster.Halt())
	i.signal(t, syscall.SIGTERM)
	select {
	case <-i.Exited():
	case <-time.After(exitTimeout):
		t.Fatalf("the portal did not stop within %s", exitTimeout)
	}
	lines := strings.Split(strings.TrimSpace(i.stderr.String()), "\n")
	last := lines[len(lines)-1]
	if code := i.ProcessState.ExitCode(); code != exitFailed || !strings.HasPrefix(last, "portal: write usage: ") || !strings.Contains(last, "no PostgreSQL server answers") {
		t.Errorf("exit status %d, last line %q", code, last)
	}
}

// A proxy must learn that the instance stops before connections are refused.
func TestAStoppingInstanceIsNotReadyAndStillServes(t *testing.T) {
	t.Parallel()
	i, account := startWithAccount(t, modelstest.SQLiteURL(t))
	i.signal(t, syscall.SIGTERM)
	modelstest.Eventually(t, "the portal is not ready", func() bool { return i.Get("/readyz").StatusCode != http.StatusOK })
	if response := i.Get("/readyz").Is(http.StatusServiceUnavailable); !response.Close {
		t.Error("the connection stays open")
	}
	i.accepts(t, account.secret)
	i.Get("/login").Is(http.StatusOK)
	i.refusesConnections(t)
	i.awaitExit(t)
}

func TestAHangingClientAndAHangingDatabaseDoNotDelayTheStop(t *testing.T) {
	t.Parallel()
	databaseURL := modelstest.PostgresURL(t)
	account := createAccount(t, modelstest.Open(t, databaseURL, models.Options{}))
	link := newRelay(t, databaseURL)
	i := start(t, []string{"DATABASE_URL=" + link.url, testSecret, anyPort})
	i.beginRequest(t, account.secret)
	i.hasSeen(t, account)
	time.Sleep(2 * time.Second) // until the portal has received the confirmation of the write
	link.hang()
	for range 10 { // more than the pool has connections
		go status(i.URL + "/login")
		go status(i.URL + "/readyz")
	}
	i.stop(t)
	if !strings.Contains(i.stderr.String(), "requests dropped") {
		t.Errorf("the dropped request is not logged: %s", i.stderr.String())
	}
}

// Operators are promised that a stop takes at most 10 s.
func TestThePhasesOfAStopAreBounded(t *testing.T) {
	t.Parallel()
	if all := drainTimeout + stopTimeout + closeTimeout + flushSpansTimeout + flushLogTimeout; all >= 10*time.Second {
		t.Errorf("they take %s", all)
	}
}
