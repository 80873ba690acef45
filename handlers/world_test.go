package handlers_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/uptrace/bun"

	"portal/handlers"
	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/modelstest"
)

const tenantPassword = "correct horse battery staple"

// world is the whole portal with its database, which tests can also query directly.
type world struct {
	store   *models.Store
	handler http.Handler
	deps    handlers.Deps
	db      *bun.DB
	tables  string // the query that lists the tables
}

func newWorld(t *testing.T, databaseURL string) *world {
	t.Helper()
	return newWorldLoggingTo(t, databaseURL, io.Discard)
}

func newWorldLoggingTo(t *testing.T, databaseURL string, log io.Writer) *world {
	t.Helper()
	logger := slog.New(slog.NewJSONHandler(log, nil))
	w := &world{store: modelstest.Open(t, databaseURL, models.Options{Logger: logger})}
	w.deps = handlerstest.Deps(t, w.store, "http://portal.test", nil)
	w.deps.SecurityContact = "mailto:security@example.com"
	w.deps.Logger = logger
	w.handler = handlerstest.New(t, w.deps)
	w.db = modelstest.OpenDatabase(t, databaseURL)
	w.tables = "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'"
	if _, ok := models.SQLitePath(databaseURL); ok {
		w.tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	}
	return w
}

// routes returns all routes of the handler.
func (w *world) routes(t *testing.T) gin.RoutesInfo {
	t.Helper()
	deps := w.deps
	deps.Registry = prometheus.NewRegistry()
	routes, err := handlers.Routes(deps)
	if err != nil {
		t.Fatal(err)
	}
	return routes
}

// tenant is an account with objects of every kind, whose names contain the account's name, and a
// session of its user.
type tenant struct {
	secret     string // an API key
	cookie     *http.Cookie
	belongings map[string][]string // ids of the objects by collection, such as "api-keys"
}

func (w *world) tenant(t *testing.T, name string) tenant {
	t.Helper()
	ctx, email := t.Context(), name+"@example.com"
	account, err := w.store.CreateAccount(ctx, models.NewAccount{Name: name + " Ltd", Email: email, Password: tenantPassword})
	if err != nil {
		t.Fatal(err)
	}
	c := tenant{belongings: map[string][]string{}}
	own := func(collection string, id uuid.UUID) {
		c.belongings[collection] = append(c.belongings[collection], id.String())
	}
	for _, label := range []string{"revoked", "active"} {
		var key models.APIKey
		key, c.secret, err = w.store.GenerateAPIKey(ctx, account.ID, models.NewAPIKey{Label: name + " " + label, FormID: uuid.New()}, models.Operator())
		if err != nil {
			t.Fatal(err)
		}
		own("api-keys", key.ID)
	}
	if _, err := w.store.RevokeAPIKey(ctx, account.ID, uuid.MustParse(c.belongings["api-keys"][0]), models.Operator()); err != nil {
		t.Fatal(err)
	}
	agent, err := w.store.CreateAgent(ctx, account.ID, models.NewAgent{Name: name + " desk"}, models.Operator())
	if err != nil {
		t.Fatal(err)
	}
	own("agents", agent.ID)
	for range 2 { // one session to end, and the browser's own
		c.cookie = w.signIn(t, email)
	}
	user, err := w.store.VerifyPassword(ctx, email, tenantPassword, models.Client{Address: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := w.store.Sessions(ctx, account.ID, user.ID)
	if err != nil || len(sessions) != 2 {
		t.Fatalf("sessions %v, %v", sessions, err)
	}
	for _, session := range sessions {
		own("sessions", session.ID)
	}
	activities, err := w.store.Activities(ctx, account.ID, models.ActivityPage{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, activity := range activities {
		own("activity", activity.ID)
	}
	return c
}

func (w *world) signIn(t *testing.T, email string) *http.Cookie {
	t.Helper()
	form := url.Values{"email": {email}, "password": {tenantPassword}}
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	cookies := serve(w.handler, r).Result().Cookies()
	if len(cookies) != 2 { // the session and the device
		t.Fatalf("signing in set the cookies %v", cookies)
	}
	return cookies[0]
}

// dump returns every row of every table, except values that any request may change: the times at
// which a session and an agent were last used, the usage counts and the authentication epoch.
func (w *world) dump(t *testing.T) []string {
	t.Helper()
	tables := w.rows(t, w.tables)
	if len(tables) < 10 {
		t.Fatalf("found only the tables %v", tables)
	}
	var dump []string
	for _, listed := range tables {
		table := listed["name"].(string)
		switch table {
		case "auth_epoch", "api_key_last_uses", "api_key_hourly_usage", "api_key_daily_usage", "agent_last_tokens":
			continue
		}
		for _, row := range w.rows(t, "SELECT * FROM "+table) {
			delete(row, "last_seen_at")
			text, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			dump = append(dump, table+" "+string(text))
		}
	}
	slices.Sort(dump)
	return dump
}

// rows returns the rows of a query, with each value as text.
func (w *world) rows(t *testing.T, query string) (found []map[string]any) {
	t.Helper()
	rows, err := w.db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		row := map[string]any{}
		for i, name := range names {
			row[name] = fmt.Sprint(values[i])
		}
		found = append(found, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// difference returns the lines that are in only one of two dumps.
func difference(before, after []string) string {
	var lines []string
	for _, line := range before {
		if !slices.Contains(after, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return strings.Join(lines, "\n")
}
