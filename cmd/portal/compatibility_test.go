package main

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/database"
	"portal/models/modelstest"
)

// An instance must work while a newer one has already updated the schema: every query names its
// columns.
func TestTheBinaryWorksOnANewerSchema(t *testing.T) {
	t.Parallel()
	for name, emptyURL := range map[string]func(testing.TB) string{
		"sqlite": modelstest.EmptySQLiteURL, "postgres": modelstest.EmptyPostgresURL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			older, newer, agent := startPair(t, emptyURL(t))
			useEverything(t, older, newer, agent)
		})
	}
}

// startPair starts an older instance, which creates the database, an account and an agent, and a
// newer one after the schema has changed.
func startPair(t *testing.T, databaseURL string) (older, newer *instance, agent string) {
	t.Helper()
	env := []string{"DATABASE_URL=" + databaseURL, testSecret, anyPort}
	older = start(t, env)
	older.operate(t, testPassword, "account", "create", "--name", "Ada", "--email", testEmail)
	agent = older.operate(t, "", "agent", "create", "--account", testEmail, "--name", "Reception")
	addColumns(t, databaseURL)
	return older, start(t, env), agent
}

// addColumns updates the schema and then adds a column to every table.
func addColumns(t *testing.T, databaseURL string) {
	t.Helper()
	modelstest.Open(t, databaseURL, models.Options{})
	db := modelstest.OpenDatabase(t, databaseURL)
	query := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if _, sqlite := database.SQLitePath(databaseURL); !sqlite {
		query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
	}
	var tables []string
	modelstest.Must(t, db.NewRaw(query).Scan(t.Context(), &tables))
	for _, table := range tables {
		if strings.HasPrefix(table, "sqlite_") {
			continue
		}
		modelstest.Exec(t, databaseURL, "ALTER TABLE "+table+" ADD COLUMN a_later_column text")
	}
}

// useEverything uses each page, form, endpoint and operator's command of an instance, and checks
// that another instance on the same database agrees. The account has this agent.
func useEverything(t *testing.T, i, other *instance, agent string) {
	t.Helper()
	v := i.signedIn(t)
	first := v.Generate("first")
	for _, one := range []*instance{i, other} {
		one.accepts(t, first)
		one.introspects(t, "introspect", first, one.token(t, first, uuid.MustParse(agent)))
	}
	time.Sleep(time.Second) // the uses are written

	post := func(path string, form url.Values) { v.Post(path, form).Is(http.StatusSeeOther) }
	key := v.Get("/api-keys").Find(`action="(/api-keys/[0-9a-f-]{36})/revocation"`)
	post("/agents", url.Values{"name": {"Hotline"}, "form_id": {v.FormID("/agents")}})
	post(key+"/name", url.Values{"name": {"renamed"}})
	// This agent is not removed, so the stop writes its use.
	kept := i.operate(t, "", "agent", "create", "--account", testEmail, "--name", "Sales")
	post(key+"/restrictions", url.Values{"note": {"a note"}, "expires": {"30"}, "agents": {"only"}, "agent": {kept}, "networks": {"127.0.0.1"}})
	for _, one := range []*instance{i, other} {
		one.token(t, first, uuid.MustParse(kept))
	}
	second := v.Post(key+"/rotation", url.Values{"form_id": {v.FormID(key + "/rotation")}}).Find(`\b(nas_[0-9A-Za-z]{36})\b`)
	for _, path := range []string{
		"/", "/api-keys", "/api-keys/changes", "/api-keys/revoked", key, key + "/name", key + "/restrictions",
		key + "/revocation", key + "/rotation", key + "/first-use", "/usage?key=" + strings.TrimPrefix(key, "/api-keys/"),
		"/agents", "/agents/" + agent, "/agents/" + agent + "/removal",
		"/integrate", "/activity", "/activity/export", "/account", "/people", "/settings",
	} {
		for _, one := range []*instance{i, other} {
			if got := v.At(one.URL).Get(path); got.StatusCode >= 400 {
				t.Errorf("%s: status %d", path, got.StatusCode)
			}
		}
	}

	post(key+"/rotation/revocation", nil)
	leaked, _, _ := strings.Cut(i.operate(t, second, "key", "revoke", "--key", "-"), "\n")
	i.operate(t, "", "key", "revoke", "--id", leaked)
	for _, one := range []*instance{i, other} {
		one.answers(t, first, http.StatusUnauthorized)
		one.answers(t, second, http.StatusUnauthorized)
	}
	post("/agents/"+agent+"/removal", nil)

	other.signedIn(t)
	post("/account/other-sessions/revocation", nil)
	post("/account/password", url.Values{"current_password": {testPassword}, "new_password": {testPassword + " staple"}})
	post("/logout", nil)
	i.operate(t, testPassword, "account", "reset-password", "--email", testEmail)
	i.signedIn(t)

	for _, one := range []*instance{i, other} {
		one.stop(t)
		if bad := regexp.MustCompile(`(?m)^.*("level":"ERROR"|"status":5).*$`).FindString(one.stderr.String()); bad != "" {
			t.Errorf("the log has %s", bad)
		}
		if out := one.stdout.String(); out != "" {
			t.Errorf("serve wrote %q to standard output", out)
		}
	}
}
