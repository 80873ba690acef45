package handlers_test

import (
	"encoding/json"
	"fmt"
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
	"portal/models/agents"
	"portal/models/database"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/workload"
)

const tenantPassword = "correct horse battery staple"

// system is the whole portal with its database, which tests can also query directly.
type system struct {
	store   *models.Store
	handler http.Handler
	deps    handlers.Deps
	log     *modelstest.LogBuffer
	db      *bun.DB
	tables  string     // the query that lists the tables
	fields  url.Values // of all forms; the first tenant sets them
}

// eachDatabase runs a test on every database, with a new system, in parallel with other tests.
func eachDatabase(t *testing.T, run func(t *testing.T, s *system)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) { run(t, newSystem(t, databaseURL)) })
}

// The tests sign the same users in more often than people do.
func newSystem(t *testing.T, databaseURL string) *system {
	t.Helper()
	s := &system{log: &modelstest.LogBuffer{}, db: modelstest.OpenDatabase(t, databaseURL)}
	s.store = modelstest.Open(t, databaseURL, models.Options{Logger: s.log.Logger(), Mail: true, SignInLimit: 1000})
	s.deps = handlerstest.Deps(t, s.store, "http://portal.test", nil)
	s.deps.SecurityContact, s.deps.Logger = "mailto:security@example.com", s.log.Logger()
	s.handler = handlerstest.New(t, s.deps)
	s.tables = "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'"
	if _, ok := database.SQLitePath(databaseURL); ok {
		s.tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	}
	return s
}

// routes returns all routes of the handler.
func (s *system) routes(t *testing.T) gin.RoutesInfo {
	t.Helper()
	deps := s.deps
	deps.Registry = prometheus.NewRegistry()
	return modelstest.Value(handlers.Routes(deps))(t)
}

// tenant is an account with objects of every kind, whose names contain the account's name, and a
// session of its user.
type tenant struct {
	secret    string // an API key
	cookie    *http.Cookie
	email     string              // of the owner
	member    string              // email of a member
	objectIDs map[string][]string // ids of the objects by collection, such as "api-keys"
}

func (s *system) tenant(t *testing.T, name string) tenant {
	t.Helper()
	ctx, email := t.Context(), name+"@example.com"
	account := modelstest.Value(s.store.Accounts.Create(ctx, people.NewAccount{Name: name + " Ltd", Email: email, Password: tenantPassword}))(t)
	c := tenant{email: email, objectIDs: map[string][]string{}}
	own := func(collection string, id uuid.UUID) {
		c.objectIDs[collection] = append(c.objectIDs[collection], id.String())
	}
	for _, label := range []string{"revoked", "active"} {
		key, secret, err := s.store.Keys.Generate(ctx, account.ID, keys.NewKey{Label: name + " " + label, FormID: uuid.New()}, record.Operator())
		modelstest.Must(t, err)
		c.secret = secret
		own("api-keys", key.ID)
	}
	trusting, _, err := s.store.Keys.Generate(ctx, account.ID, keys.NewKey{Label: name + "'s deployment", FormID: uuid.New(), Trust: &workload.Rule{
		Provider: workload.AWS, Issuer: "https://0198c2f4-7a31-7c6e-9d52-3f8be6a1c004.tokens.sts.global.api.aws", Audience: "portal",
		Claims: map[string][]string{"sub": {"arn:aws:iam::123456789012:role/" + name}},
	}}, record.Operator())
	modelstest.Must(t, err)
	own("keys without a secret", trusting.ID)
	modelstest.Value(s.store.Keys.Revoke(ctx, account.ID, uuid.MustParse(c.objectIDs["api-keys"][0]), "", record.Operator()))(t)
	own("agents", modelstest.Value(s.store.Agents.Create(ctx, account.ID, agents.NewAgent{Name: name + " desk"}, record.Operator()))(t).ID)
	for range 2 { // one session to end, and the browser's own
		c.cookie = s.signIn(t, email)
	}
	user := modelstest.Value(s.store.SignIn.VerifyPassword(ctx, email, tenantPassword, people.Client{Address: "192.0.2.1"}))(t)
	for _, session := range modelstest.Value(s.store.Sessions.List(ctx, account.ID, user.ID))(t) {
		own("sessions", session.ID)
	}
	own("passkeys", s.passkey(t, account.ID, user.ID))
	link, err := s.store.SignIn.CreateLink(ctx, account.ID, user.ID, record.Operator())
	modelstest.Must(t, err)
	c.objectIDs["sign-in-links token"] = []string{link.Token}
	addMember := func(email string) people.User {
		n := people.NewUser{Email: email, Password: tenantPassword, Role: people.RoleMember}
		return modelstest.Value(s.store.People.Add(ctx, account.ID, n, record.Operator()))(t)
	}
	c.member = "member-of-" + email
	own("people", addMember(c.member).ID)
	invitation, token, err := s.store.Invitations.Create(ctx, account.ID, "guest-of-"+email, people.RoleMember, record.Operator())
	modelstest.Must(t, err)
	own("invitations", invitation.ID)
	c.objectIDs["invitations token"] = []string{token}
	modelstest.Must(t, s.store.Credentials.RequestPasswordReset(ctx, email, people.Client{Address: email}))
	c.objectIDs["password-resets token"] = []string{s.mailedToken(t, record.MailPasswordForgotten)}
	renamed := addMember("renamed-" + email)
	session := people.Session{AccountID: account.ID, UserID: renamed.ID, Email: renamed.Email}
	modelstest.Must(t, s.store.Credentials.RequestEmailChange(ctx, session, tenantPassword, "new-"+email, record.Operator()))
	c.objectIDs["email-changes token"] = []string{s.mailedToken(t, record.MailEmailConfirmation)}
	for _, activity := range modelstest.Value(s.store.Activity.List(ctx, account.ID, record.ActivityPage{Limit: 10}))(t) {
		own("activity", activity.ID)
	}
	if s.fields == nil {
		s.fields = c.fill(t, s)
	}
	return c
}

// passkey adds a passkey to a user and returns its id.
func (s *system) passkey(t *testing.T, accountID, userID uuid.UUID) uuid.UUID {
	t.Helper()
	session := people.Session{AccountID: accountID, UserID: userID}
	passkey := people.Passkey{CredentialID: userID[:], Credential: "{}", Name: "Phone"}
	modelstest.Must(t, s.store.Credentials.AddPasskey(t.Context(), session, passkey, uuid.NewString(), record.Operator()))
	return modelstest.Value(s.store.Credentials.Passkeys(t.Context(), session))(t)[0].ID
}

// mailedToken returns the token of the link in the next mail of this kind.
func (s *system) mailedToken(t *testing.T, kind record.Action) string {
	t.Helper()
	for {
		mail, token, err := s.store.Outbox.Claim(t.Context())
		modelstest.Must(t, err)
		if mail.Kind == kind {
			return token
		}
	}
}

func (s *system) signIn(t *testing.T, email string) *http.Cookie {
	t.Helper()
	form := url.Values{"email": {email}, "password": {tenantPassword}}
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response := serve(s.handler, r)
	cookies := response.Result().Cookies()
	session := slices.IndexFunc(cookies, func(c *http.Cookie) bool { return c.Name == "session" })
	if session < 0 {
		t.Fatalf("signing in as %s: %d %s", email, response.Code, response.Body)
	}
	return cookies[session]
}

// dump returns every row of every table, except values that any request may change: the times at
// which a session and an agent were last used, the usage counts and the authentication epoch.
func (s *system) dump(t *testing.T) []string {
	t.Helper()
	tables := s.rows(t, s.tables)
	if len(tables) < 10 {
		t.Fatalf("found only the tables %v", tables)
	}
	var dump []string
	for _, listed := range tables {
		table := listed["name"].(string)
		switch table {
		case "auth_epoch", "api_key_last_uses", "api_key_hourly_usage", "api_key_daily_usage", "api_key_days", "api_key_sources", "api_key_refusals", "api_key_agents":
			continue
		}
		for _, row := range s.rows(t, "SELECT * FROM "+table) {
			delete(row, "last_seen_at")
			text := modelstest.Value(json.Marshal(row))(t)
			dump = append(dump, table+" "+string(text))
		}
	}
	slices.Sort(dump)
	return dump
}

// rows returns the rows of a query, with each value as text.
func (s *system) rows(t *testing.T, query string) (found []map[string]any) {
	t.Helper()
	rows := modelstest.Value(s.db.QueryContext(t.Context(), query))(t)
	defer func() { _ = rows.Close() }()
	names := modelstest.Value(rows.Columns())(t)
	for rows.Next() {
		values, into := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		modelstest.Must(t, rows.Scan(into...))
		row := map[string]any{}
		for i, name := range names {
			row[name] = fmt.Sprint(values[i])
		}
		found = append(found, row)
	}
	modelstest.Must(t, rows.Err())
	return found
}

// isUnchanged fails the test for each row that differs from an earlier dump.
func (s *system) isUnchanged(t *testing.T, before []string) {
	t.Helper()
	after := s.dump(t)
	for _, row := range before {
		if !slices.Contains(after, row) {
			t.Errorf("a row is gone or changed: %s", row)
		}
	}
	for _, row := range after {
		if !slices.Contains(before, row) {
			t.Errorf("a row is new or changed: %s", row)
		}
	}
}
