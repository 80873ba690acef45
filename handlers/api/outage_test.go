package api_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"portal/models"
	"portal/models/database"
	"portal/models/modelstest"
	"portal/models/widget"
)

// A request that cannot be authenticated takes nothing from the limit of its key.
func TestKeyThatCannotBeCheckedGets503(t *testing.T) {
	run := func(t *testing.T, databaseURL string, begin func() (end func())) {
		t.Helper()
		answersWithoutDatabase(t, newTimedService(t, databaseURL, models.Timeout, limited(1, 3)), begin)
	}
	for name, damage := range map[string]func(t *testing.T, databaseURL string) (end func()){
		"locked": lockSQLite, "damaged": damageSQLite,
	} {
		t.Run("sqlite, "+name, func(t *testing.T) {
			t.Parallel()
			databaseURL := modelstest.SQLiteURL(t)
			run(t, databaseURL, func() (end func()) { return damage(t, databaseURL) })
		})
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		cluster := modelstest.OwnCluster(t, "synchronous_commit=on")
		run(t, cluster.URL("postgres"), func() (end func()) {
			modelstest.Must(t, cluster.Halt())
			return func() { modelstest.Must(t, cluster.Resume()) }
		})
	})
}

func answersWithoutDatabase(t *testing.T, s *service, begin func() (end func())) {
	t.Helper()
	c := s.customer()
	key, token := bearer(c.secret), s.token(c) // the first of three requests
	_, account := s.account()
	s.get("/readyz").is(http.StatusOK)
	end := begin()

	var requests sync.WaitGroup
	refused := func(within time.Duration, ask func() answer) {
		requests.Go(func() {
			start := time.Now()
			a := ask()
			if took := time.Since(start); a.status != http.StatusServiceUnavailable || took > within {
				t.Errorf("status %d after %v, want 503: %s", a.status, took, a.body)
			}
			a.has("Retry-After", "1")
			a.lacks("RateLimit", "WWW-Authenticate", "Allow")
		})
	}
	for _, ask := range []func() answer{
		func() answer { return s.get("/api/agents", key) },
		func() answer { return s.post("/api/widget/token", key, jsonBody(agentRequest(c.agent.ID))) },
		func() answer { return s.post("/api/widget/introspect", key, tokenForm(token)) },
		func() answer { return s.get("/api/authorize", key) },
		func() answer { return s.post("/api/authorize?agentId="+c.agent.ID.String(), key) },
		func() answer { return s.get("/widget/authorize", bearer(token)) },
		func() answer { return s.get("/widget/authorize?access_token=" + token) },
		func() answer { return s.get("/api/nothing", key) },
		func() answer { return s.send(http.MethodDelete, "/api/agents", key) },
		func() answer { return s.get("/readyz") },
	} {
		// Without a limit, SQLite's driver waits for the lock for ten seconds.
		refused(8*time.Second, ask)
	}
	for route, content := range map[string]string{
		"GET /operator/accounts": "", "PUT " + account: `{"name": "Acme"}`, "GET " + account + "/keys": "",
		"POST " + account + "/users":                        `{"email": "ada@example.com", "role": "owner"}`,
		"DELETE " + account + "/agents/" + uuid.NewString(): "",
		"POST /operator/keys/revocations":                   `{"keyId": "` + uuid.NewString() + `"}`,
	} {
		method, path, _ := strings.Cut(route, " ")
		refused(time.Minute, func() answer { return s.operate(method, path, content) })
	}
	requests.Wait()

	// These need no database.
	s.get("/api/agents").fails(http.StatusUnauthorized, "UNAUTHORIZED")
	s.get("/api/agents", bearer("nas_cut-short")).fails(http.StatusUnauthorized, "UNAUTHORIZED")
	s.get("/widget/authorize", bearer("x")).fails(http.StatusUnauthorized, "UNAUTHORIZED")
	s.get("/operator/accounts", bearer("wrong")).is(http.StatusUnauthorized)
	s.get("/healthz").is(http.StatusOK)

	end()
	// Each connection opened before the outage may fail one more request.
	for deadline := time.Now().Add(time.Minute); s.get("/readyz").status != http.StatusOK ||
		s.get("/api/agents", key).status != http.StatusOK; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the database is back, but the service is not")
		}
	}
	s.get("/api/agents", key).is(http.StatusOK)
	s.get("/api/agents", key).is(http.StatusTooManyRequests)
}

// All database work of a request together takes no longer than the limit, which is longer here than
// in the product.
func TestAuthenticationCountsTowardsTheDatabaseTimeout(t *testing.T) {
	t.Parallel()
	const limit, authentication = 8 * time.Second, 6 * time.Second
	databaseURL := modelstest.PostgresURL(t) + modelstest.Patience
	s := newTimedService(t, databaseURL, limit)
	c := s.customer()
	key := bearer(c.secret)
	// The agent is not in memory, because no token has been requested.
	token, _, err := s.tokens.Issue(nil, widget.Grant{AccountID: c.accountID, KeyID: c.key.ID, AgentID: c.agent.ID})
	modelstest.Must(t, err)
	unlockKeys, unlockAgents := lockTable(t, databaseURL, "auth_epoch"), lockTable(t, databaseURL, "agents")
	defer unlockAgents()

	var requests sync.WaitGroup
	for _, ask := range []func() answer{
		func() answer { return s.get("/api/agents", key) },
		func() answer { return s.post("/api/widget/token", key, jsonBody(agentRequest(uuid.New()))) },
		func() answer { return s.post("/api/widget/introspect", key, tokenForm(string(token))) },
		func() answer { return s.get("/api/authorize?agentId="+uuid.NewString(), key) },
		func() answer { return s.get("/widget/authorize", bearer(string(token))) },
	} {
		requests.Go(func() {
			start := time.Now()
			a := ask()
			if took := time.Since(start); a.status != http.StatusServiceUnavailable || took > limit+authentication/2 {
				t.Errorf("status %d after %v, want 503 after %v", a.status, took, limit)
			}
		})
	}
	time.Sleep(authentication)
	unlockKeys()
	requests.Wait()
}

// lockTable locks a PostgreSQL table exclusively.
func lockTable(t *testing.T, databaseURL, table string) (unlock func()) {
	t.Helper()
	conn := modelstest.Value(pgx.Connect(t.Context(), databaseURL))(t)
	modelstest.Value(conn.Exec(t.Context(), "BEGIN; LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE"))(t)
	return func() { _ = conn.Close(context.Background()) }
}

// damageSQLite makes the schema unreadable, as a failing disk would.
func damageSQLite(t *testing.T, databaseURL string) (repair func()) {
	t.Helper()
	modelstest.Exec(t, databaseURL, `PRAGMA writable_schema = ON;
		UPDATE sqlite_schema SET sql = '-' || sql WHERE name = 'accounts';
		PRAGMA schema_version = 1000`)
	return func() {
		modelstest.Exec(t, databaseURL, `PRAGMA writable_schema = ON;
			UPDATE sqlite_schema SET sql = substr(sql, 2) WHERE name = 'accounts';
			PRAGMA schema_version = 1001`)
	}
}

// lockSQLite takes every lock that a connection in WAL mode needs to read
// (sqlite.org/walformat.html, section 2.3.4), like a process that hangs while it holds them. The
// driver then waits for ten seconds and ignores the context.
func lockSQLite(t *testing.T, databaseURL string) (unlock func()) {
	t.Helper()
	const (
		openFileDescriptionSetLock = 37 // F_OFD_SETLK: apart from the locks of this process
		firstLock, locks           = 120, 8
	)
	path, _ := database.SQLitePath(databaseURL)
	file := modelstest.Value(os.OpenFile(path+"-shm", os.O_RDWR, 0))(t)
	set := func(kind int16) {
		lock := syscall.Flock_t{Type: kind, Start: firstLock, Len: locks}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			err := syscall.FcntlFlock(file.Fd(), openFileDescriptionSetLock, &lock)
			if err == nil {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	set(syscall.F_WRLCK)
	t.Cleanup(func() {
		// Close the file only now. Closing any descriptor of a file drops the locks that
		// this process's SQLite holds on it, and by now no other connection has the file
		// open.
		_ = file.Close()
	})
	return func() { set(syscall.F_UNLCK) }
}
