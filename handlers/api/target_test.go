package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/uuid"

	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/modelstest"
)

// target is an instance with one customer. Fuzzers and benchmarks call it without a network.
type target struct {
	handler http.Handler
	log     *modelstest.LogBuffer
	agentID uuid.UUID
	secret  string
}

func newTarget(tb testing.TB) *target {
	tb.Helper()
	ctx := tb.Context()
	t := &target{log: &modelstest.LogBuffer{}}
	store := modelstest.Open(tb, modelstest.SQLiteURL(tb), models.Options{Logger: t.log.Logger()})
	account, err := store.Accounts.Create(ctx, models.NewAccount{Name: "Acme", Email: "ada@example.com", Password: "correct horse battery staple"})
	modelstest.Must(tb, err)
	agent, err := store.Agents.Create(ctx, account.ID, models.NewAgent{ID: fuzzedAgent, Name: "Front desk"}, models.Operator())
	modelstest.Must(tb, err)
	t.agentID = agent.ID
	if _, t.secret, err = store.Keys.Generate(ctx, account.ID, models.NewKey{Label: "backend", FormID: uuid.New()}, models.Operator()); err != nil {
		tb.Fatal(err)
	}
	deps := handlerstest.Deps(tb, store, issuer, nil)
	deps.Logger = t.log.Logger()
	t.handler = handlerstest.New(tb, deps)
	return t
}

// fuzzedAgent is the id of the customer's only agent. The seeds contain it.
var fuzzedAgent = uuid.MustParse("0198c2f4-7a31-7c6e-9d52-3f8be6a1c004")

// send returns the response and its log output.
func (t *target) send(r *http.Request) (*httptest.ResponseRecorder, string) {
	t.log.Reset()
	answer := httptest.NewRecorder()
	t.handler.ServeHTTP(answer, r)
	return answer, t.log.String()
}
