package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"portal/handlers"
	"portal/handlers/api"
	"portal/handlers/handlerstest"
	"portal/handlers/middleware"
	"portal/models"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/widget"
)

const (
	operatorToken = "an-operator-token-of-the-tests-32-bytes"

	issuer   = "https://portal.example.com"
	tokenTTL = handlerstest.TokenTTL
)

func TestMain(m *testing.M) {
	api.LimitEvents()
	modelstest.Main(m)
}

// service is an instance of the whole portal on a real database and a real port.
type service struct {
	t        testing.TB
	handler  http.Handler
	url      string
	database string // its URL
	store    *models.Store
	tokens   *widget.Tokens
	clock    *modelstest.Clock
	log      *modelstest.LogBuffer
}

// newService starts an instance on a database after changing its dependencies. Instances on the
// same database share one secret.
func newService(t testing.TB, databaseURL string, changes ...func(*handlers.Deps)) *service {
	t.Helper()
	return newTimedService(t, databaseURL, time.Minute, changes...)
}

// newTimedService is [newService] with a time limit for the database.
func newTimedService(t testing.TB, databaseURL string, timeout time.Duration, changes ...func(*handlers.Deps)) *service {
	t.Helper()
	s := &service{t: t, database: databaseURL, clock: modelstest.NewClock(time.Now()), log: &modelstest.LogBuffer{}}
	s.store = modelstest.Open(t, databaseURL, models.Options{Timeout: timeout, Now: s.clock.Now, Logger: s.log.Logger()})
	return s.start(changes...)
}

// start starts the instance on its store.
func (s *service) start(changes ...func(*handlers.Deps)) *service {
	t := s.t
	t.Helper()
	deps := handlerstest.Deps(t, s.store, issuer, s.clock.Now)
	deps.Logger, deps.OperatorToken = s.log.Logger(), operatorToken
	for _, change := range changes {
		change(&deps)
	}
	s.tokens, s.handler = deps.Tokens, handlerstest.New(t, deps)
	server := httptest.NewServer(s.handler)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// scrape returns the metrics of a registry.
func scrape(registry *prometheus.Registry) string {
	scraped := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(scraped, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	return scraped.Body.String()
}

// limited gives each key a rate limit.
func limited(perSecond, burst int) func(*handlers.Deps) {
	return func(d *handlers.Deps) { d.RateLimit = middleware.RateLimit{PerSecond: perSecond, Burst: burst} }
}

// eachDatabase runs a test on every database, with a new instance and a customer, in parallel with
// other tests.
func eachDatabase(t *testing.T, run func(t *testing.T, s *service, c customer)) {
	t.Helper()
	eachChanged(t, func(*handlers.Deps) {}, run)
}

// eachChanged is [eachDatabase] with a change of the dependencies.
func eachChanged(t *testing.T, change func(*handlers.Deps), run func(t *testing.T, s *service, c customer)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		s := newService(t, databaseURL, change)
		run(t, s, s.customer())
	})
}

// onSQLite runs a test of what does not depend on the database, such as limits in memory, texts and
// the order of checks. Each route has another test with [eachDatabase].
func onSQLite(t *testing.T, run func(t *testing.T, s *service, c customer)) {
	t.Helper()
	onSQLiteWith(t, func(*handlers.Deps) {}, run)
}

// onSQLiteWith is [onSQLite] with a change of the dependencies.
func onSQLiteWith(t *testing.T, change func(*handlers.Deps), run func(t *testing.T, s *service, c customer)) {
	t.Helper()
	t.Parallel()
	s := newService(t, modelstest.SQLiteURL(t), change)
	run(t, s, s.customer())
}

// customer is an account with an agent and a key.
type customer struct {
	accountID uuid.UUID
	agent     agents.Agent
	key       keys.Key
	secret    string // the whole key
}

// customer creates an account with an agent and a key.
func (s *service) customer() customer {
	s.t.Helper()
	account := modelstest.Value(s.store.Accounts.Create(s.t.Context(), people.NewAccount{
		Name: "Acme", Email: uuid.NewString() + "@example.com", Password: "correct horse battery staple",
	}))(s.t)
	c := customer{accountID: account.ID, agent: s.createAgent(account.ID, "Front desk")}
	c.key, c.secret = s.generateKey(account.ID)
	return c
}

func (s *service) generateKey(accountID uuid.UUID) (keys.Key, string) {
	s.t.Helper()
	key, secret, err := s.store.Keys.Generate(s.t.Context(), accountID,
		keys.NewKey{Label: "backend", FormID: uuid.New()}, record.Operator())
	modelstest.Must(s.t, err)
	return key, secret
}

func (s *service) createAgent(accountID uuid.UUID, name string) agents.Agent {
	s.t.Helper()
	return modelstest.Value(s.store.Agents.Create(s.t.Context(), accountID, agents.NewAgent{Name: name}, record.Operator()))(s.t)
}

func (s *service) revoke(c customer) {
	s.t.Helper()
	modelstest.Value(s.store.Keys.Revoke(s.t.Context(), c.accountID, c.key.ID, "", record.Operator()))(s.t)
}

func (s *service) removeAgent(c customer) {
	s.t.Helper()
	modelstest.Value(s.store.Agents.Remove(s.t.Context(), c.accountID, c.agent.ID, record.Operator()))(s.t)
}

// expire lets the customer's key expire in the past.
func (s *service) expire(c customer) {
	s.t.Helper()
	modelstest.Exec(s.t, s.database, "UPDATE api_keys SET expires_at = '2026-01-01 00:00:00+00:00' WHERE id = '"+c.key.ID.String()+"'")
}

// disable disables the customer's account, as an operator's SQL does.
func (s *service) disable(c customer) {
	s.t.Helper()
	modelstest.Exec(s.t, s.database, "UPDATE accounts SET disabled_at = created_at WHERE id = '"+c.accountID.String()+"'")
}

// token exchanges the customer's key for a widget token.
func (s *service) token(c customer) string {
	s.t.Helper()
	var body struct {
		AccessToken string `json:"access_token"`
	}
	s.post("/api/widget/token", bearer(c.secret), jsonBody(agentRequest(c.agent.ID))).is(http.StatusOK).into(&body)
	return body.AccessToken
}

func agentRequest(id uuid.UUID) string { return `{"agentId": "` + id.String() + `"}` }
