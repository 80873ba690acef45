package main

import (
	"context"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"portal/models"
	"portal/models/database"
	"portal/models/modelstest"
)

// An instance must work while a newer one has already updated the schema: every query names its
// columns.
func TestTheBinaryWorksOnANewerSchema(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		addColumns(t, databaseURL)
		env := []string{"DATABASE_URL=" + databaseURL, testSecret, anyPort}
		useEverything(t, start(t, env), start(t, env))
	})
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
		if strings.HasPrefix(table, "bun_") || strings.HasPrefix(table, "sqlite_") {
			continue
		}
		modelstest.Exec(t, databaseURL, "ALTER TABLE "+table+" ADD COLUMN a_later_column text")
	}
}

// useEverything uses each page, form, endpoint and operator's command of an instance, and checks
// that another instance on the same database agrees.
func useEverything(t *testing.T, i, other *instance) {
	t.Helper()
	operate := func(stdin string, args ...string) string {
		t.Helper()
		return runBinary(t, i.Path, i.Env, stdin, args...)
	}
	operate(testPassword, "account", "create", "--name", "Ada", "--email", testEmail)
	agent := operate("", "agent", "create", "--account", testEmail, "--name", "Reception")

	v := newVisitor(t)
	v.signIn(i, testEmail, testPassword)
	first := v.generate(i, "first")
	i.useAPI(t, first, agent)
	other.useAPI(t, first, agent)
	time.Sleep(time.Second) // the uses are written

	id := v.find(v.get(i, "/api-keys"), `action="/api-keys/([0-9a-f-]{36})/revocation"`)
	form := v.find(v.get(i, "/agents"), `name="form_id" value="([^"]+)"`)
	v.post(i, "/agents", url.Values{"name": {"Hotline"}, "form_id": {form}})
	v.post(i, "/api-keys/"+id+"/name", url.Values{"name": {"renamed"}})
	form = v.find(v.get(i, "/api-keys/"+id+"/rotation"), `name="form_id" value="([^"]+)"`)
	second := v.find(v.post(i, "/api-keys/"+id+"/rotation", url.Values{"form_id": {form}}), `\b(nas_[0-9A-Za-z]{36})\b`)
	for _, path := range []string{
		"/", "/api-keys", "/api-keys/changes", "/api-keys/" + id, "/api-keys/" + id + "/usage",
		"/api-keys/" + id + "/name", "/api-keys/" + id + "/revocation", "/api-keys/" + id + "/rotation",
		"/api-keys/" + id + "/first-use", "/agents", "/agents/" + agent, "/agents/" + agent + "/removal",
		"/integrate", "/activity", "/activity/export", "/account",
	} {
		v.get(i, path)
		v.get(other, path)
	}

	v.post(i, "/api-keys/"+id+"/rotation/revocation", nil)
	for _, one := range []*instance{i, other} {
		if got := one.askAPI(t, first); got != http.StatusUnauthorized {
			t.Errorf("the revoked key gets %d", got)
		}
	}
	leaked, _, _ := strings.Cut(operate(second, "key", "revoke", "--key", "-"), "\n")
	operate("", "key", "revoke", "--id", leaked)
	for _, one := range []*instance{other, i} {
		if got := one.askAPI(t, second); got != http.StatusUnauthorized {
			t.Errorf("the revoked key gets %d", got)
		}
	}
	v.post(i, "/agents/"+agent+"/removal", nil)

	elsewhere := newVisitor(t)
	elsewhere.signIn(other, testEmail, testPassword)
	v.post(i, "/account/other-sessions/revocation", nil)
	v.post(i, "/account/password", url.Values{"current_password": {testPassword}, "new_password": {testPassword + " staple"}})
	v.signOut(i)
	operate(testPassword, "account", "reset-password", "--email", testEmail)
	v.signIn(i, testEmail, testPassword)

	for _, one := range []*instance{i, other} {
		if bad := regexp.MustCompile(`(?m)^.*("level":"ERROR"|"status":5).*$`).FindString(one.stderr.String()); bad != "" {
			t.Errorf("the log has %s", bad)
		}
		one.stop(t)
	}
}

// useAPI uses each endpoint of the API.
func (i *instance) useAPI(t *testing.T, key, agent string) {
	t.Helper()
	i.accepts(t, key)
	status, body := i.api(t, http.MethodPost, "/api/widget/token", key, `{"agentId":"`+agent+`"}`)
	if status != http.StatusOK {
		t.Fatalf("issue a token: %d %s", status, body)
	}
	token := regexp.MustCompile(`"access_token":"([^"]+)"`).FindStringSubmatch(body)[1]
	i.introspects(t, "introspect", key, token)
}

// introspect returns the response to an introspection of the token.
func (i *instance) introspect(t *testing.T, key, token string) (body string) {
	t.Helper()
	_, body = i.send(t, http.MethodPost, "/api/widget/introspect", key,
		"application/x-www-form-urlencoded", url.Values{"token": {token}}.Encode())
	return body
}

// runBinary runs a command of a portal's binary that must succeed.
func runBinary(t *testing.T, binary string, env []string, stdin string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, binary, args...)
	command.Env, command.Stdin, command.Dir = env, strings.NewReader(stdin), t.TempDir()
	output, err := command.Output()
	if err != nil {
		t.Fatalf("portal %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(output))
}
