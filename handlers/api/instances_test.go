package api_test

import (
	"net/http"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

func TestRevocationIsEffectiveOnAnotherInstanceAtOnce(t *testing.T) {
	databaseURL := modelstest.PostgresURL(t)
	one, two := newService(t, databaseURL), newService(t, databaseURL)
	c := one.customer()
	for range 3 { // so that both instances have cached the key
		one.get("/api/agents", bearer(c.secret)).is(http.StatusOK)
		two.get("/api/agents", bearer(c.secret)).is(http.StatusOK)
	}
	token := one.token(c)
	_, kept := two.generateKey(c.accountID)
	if !one.active(kept, token) || !two.active(kept, token) {
		t.Error("one instance does not accept the other's token or key")
	}

	one.revoke(c)
	message := two.get("/api/agents", bearer(c.secret)).fails(http.StatusUnauthorized, "UNAUTHORIZED")
	if want := exampleMessage(t, "Unauthorized", "revoked"); message != want {
		t.Errorf("message %q, want %q", message, want)
	}
	if two.active(kept, token) {
		t.Error("the revoked key's token is active on the other instance")
	}
	if _, err := one.store.Agents.Remove(t.Context(), c.accountID, c.agent.ID, models.Operator()); err != nil {
		t.Fatal(err)
	}
	two.post("/api/widget/token", bearer(kept), jsonBody(agentRequest(c.agent.ID))).fails(http.StatusNotFound, "AGENT_NOT_FOUND")
}
