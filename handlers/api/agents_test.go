package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"portal/models"
)

func TestAgentsAreListedByName(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		s.createAgent(c.accountID, "Support")
		s.createAgent(c.accountID, "Billing")
		s.createAgent(s.customer().accountID, "Another account's")
		var said struct{ Agents []struct{ ID, Name string } }
		s.get("/api/agents", bearer(c.secret)).is(http.StatusOK).into(&said)
		var names []string
		for _, agent := range said.Agents {
			names = append(names, agent.Name)
		}
		if want := []string{"Billing", "Front desk", "Support"}; !slices.Equal(names, want) {
			t.Fatalf("names %q, want %q", names, want)
		}
		if said.Agents[1].ID != c.agent.ID.String() {
			t.Errorf("id %s, want %s", said.Agents[1].ID, c.agent.ID)
		}
	})
}

func TestListWithoutAgentsIsEmpty(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		if _, err := s.store.RemoveAgent(t.Context(), c.accountID, c.agent.ID, models.Operator()); err != nil {
			t.Fatal(err)
		}
		a := s.get("/api/agents", bearer(c.secret)).is(http.StatusOK)
		if got := strings.TrimSpace(string(a.body)); got != `{"agents":[]}` {
			t.Errorf("body %s", got)
		}
	})
}
