package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
)

func TestAgentsAreListedByName(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		second := s.createAgent(c.accountID, "Support")
		s.createAgent(s.customer().accountID, "Another account's")
		list := func() string {
			return strings.TrimSpace(string(s.get("/api/agents", bearer(c.secret)).is(http.StatusOK).body))
		}
		want := fmt.Sprintf(`{"agents":[{"id":%q,"name":"Front desk"},{"id":%q,"name":"Support"}]}`, c.agent.ID, second.ID)
		if got := list(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		s.removeAgent(c)
		c.agent = second
		s.removeAgent(c)
		if got := list(); got != `{"agents":[]}` {
			t.Errorf("without agents: %s", got)
		}
	})
}

func TestAgentsAreListedInPages(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		s.createAgent(c.accountID, "Support")
		s.createAgent(c.accountID, "Billing")
		var names []string
		for path := "/api/agents?limit=2"; path != ""; {
			var said struct {
				Agents []struct{ ID, Name string }
				Next   string
			}
			s.get(path, bearer(c.secret)).is(http.StatusOK).into(&said)
			for _, agent := range said.Agents {
				names = append(names, agent.Name)
			}
			path = ""
			if said.Next != "" {
				// Paging goes on from the place of an agent that is removed meanwhile.
				if last, err := uuid.Parse(said.Next); err == nil {
					modelstest.Value(s.store.Agents.Remove(t.Context(), c.accountID, last, models.Operator()))(t)
				}
				if len(said.Agents) != 2 || said.Next != said.Agents[1].ID {
					t.Fatalf("next %s of %+v", said.Next, said.Agents)
				}
				path = "/api/agents?limit=2&after=" + strings.ToUpper(said.Next)
			}
		}
		if want := []string{"Billing", "Front desk", "Support"}; !slices.Equal(names, want) {
			t.Errorf("names %q, want %q", names, want)
		}
		foreign := s.createAgent(s.customer().accountID, "Another account's")
		for _, query := range []string{
			"limit=", "limit=%zz", "limit=2&limit=2", "after=%zz", "limit=0", "limit=-1", "limit=1001", "limit=ten", "limit=99999999999999999999",
			"after=", "after=me", "after=00000000-0000-0000-0000-000000000000", "after=" + foreign.ID.String(),
		} {
			s.get("/api/agents?"+query, bearer(c.secret)).is(http.StatusBadRequest)
		}
		s.get("/api/agents?limit=1000", bearer(c.secret)).is(http.StatusOK)
	})
}
