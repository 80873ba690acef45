package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/handlers"
	"portal/handlers/api"
	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/modelstest"
	"portal/models/widget"
)

const (
	operatorToken = "an-operator-token-of-the-tests-32-bytes"

	issuer   = "https://portal.example.com"
	tokenTTL = handlerstest.TokenTTL
)

func TestMain(m *testing.M) { modelstest.Main(m) }

// service is an instance of the whole portal on a real database and a real port.
type service struct {
	t        *testing.T
	url      string
	database string // its URL
	store    *models.Store
	tokens   *widget.Tokens
	clock    *modelstest.Clock
	log      *modelstest.LogBuffer
}

// newService starts an instance on a database. Instances on the same database share one secret.
func newService(t *testing.T, databaseURL string) *service {
	t.Helper()
	return newLimitedService(t, databaseURL, api.RateLimit{})
}

// newLimitedService starts an instance with a rate limit for each key.
func newLimitedService(t *testing.T, databaseURL string, limit api.RateLimit) *service {
	t.Helper()
	return startService(t, databaseURL, func(_ *service, deps *handlers.Deps) { deps.RateLimit = limit })
}

// newTimedService starts an instance that waits for the database only as long as the product does.
func newTimedService(t *testing.T, databaseURL string, limit api.RateLimit) *service {
	t.Helper()
	options := models.Options{Timeout: models.Timeout}
	return startServiceWith(t, databaseURL, options, func(_ *service, deps *handlers.Deps) { deps.RateLimit = limit })
}

// newSigningService starts an instance whose tokens the first algorithm signs.
func newSigningService(t *testing.T, databaseURL string, algorithms ...widget.Algorithm) *service {
	t.Helper()
	keyring := handlerstest.Keyring(t, strings.Repeat("a secret for signing. ", 2), "")
	return startService(t, databaseURL, func(s *service, deps *handlers.Deps) {
		deps.Tokens = widget.NewTokens(keyring, issuer, tokenTTL, s.clock.Now, algorithms...)
	})
}

// startService starts an instance after change has changed its dependencies.
func startService(t *testing.T, databaseURL string, change func(*service, *handlers.Deps)) *service {
	t.Helper()
	return startServiceWith(t, databaseURL, models.Options{}, change)
}

func startServiceWith(t *testing.T, databaseURL string, options models.Options, change func(*service, *handlers.Deps)) *service {
	t.Helper()
	s := &service{t: t, database: databaseURL, clock: modelstest.NewClock(time.Now()), log: &modelstest.LogBuffer{}}
	options.Now, options.Logger = s.clock.Now, s.log.Logger()
	s.store = modelstest.Open(t, databaseURL, options)
	deps := handlerstest.Deps(t, s.store, issuer, s.clock.Now)
	deps.Logger = s.log.Logger()
	change(s, &deps)
	deps.OperatorToken = operatorToken
	s.tokens = deps.Tokens
	server := httptest.NewServer(handlerstest.New(t, deps))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// eachDatabase runs a test on every database, with a new instance and a customer, in parallel with
// other tests.
func eachDatabase(t *testing.T, run func(t *testing.T, s *service, c customer)) {
	t.Helper()
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, databaseURL string) {
		s := newService(t, databaseURL)
		run(t, s, s.customer())
	})
}

// customer is an account with an agent and a key.
type customer struct {
	accountID uuid.UUID
	agent     models.Agent
	key       models.Key
	secret    string // the whole key
}

// customer creates an account with an agent and a key.
func (s *service) customer() customer {
	s.t.Helper()
	account, err := s.store.Accounts.Create(s.t.Context(), models.NewAccount{
		Name: "Acme", Email: uuid.NewString() + "@example.com", Password: "correct horse battery staple",
	})
	modelstest.Must(s.t, err)
	c := customer{accountID: account.ID, agent: s.createAgent(account.ID, "Front desk")}
	c.key, c.secret = s.generateKey(account.ID)
	return c
}

func (s *service) generateKey(accountID uuid.UUID) (models.Key, string) {
	s.t.Helper()
	key, secret, err := s.store.Keys.Generate(s.t.Context(), accountID,
		models.NewKey{Label: "backend", FormID: uuid.New()}, models.Operator())
	modelstest.Must(s.t, err)
	return key, secret
}

func (s *service) createAgent(accountID uuid.UUID, name string) models.Agent {
	s.t.Helper()
	agent, err := s.store.Agents.Create(s.t.Context(), accountID, models.NewAgent{Name: name}, models.Operator())
	modelstest.Must(s.t, err)
	return agent
}

func (s *service) revoke(c customer) {
	s.t.Helper()
	modelstest.Value(s.store.Keys.Revoke(s.t.Context(), c.accountID, c.key.ID, models.Operator()))(s.t)
}

func (s *service) removeAgent(c customer) {
	s.t.Helper()
	modelstest.Value(s.store.Agents.Remove(s.t.Context(), c.accountID, c.agent.ID, models.Operator()))(s.t)
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
