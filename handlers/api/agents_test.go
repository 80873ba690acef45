package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"portal/models/agents"
)

func TestAgentsAreListedByName(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		second := s.createAgent(c.accountID, "Support")
		foreign := s.createAgent(s.customer().accountID, "Another account's").ID.String()
		listed := func(query, want string) {
			t.Helper()
			s.get("/api/agents?"+query, bearer(c.secret)).is(http.StatusOK).isExactly(want)
		}
		entry := func(agent agents.Agent) string {
			return fmt.Sprintf(`{"id":%q,"name":%q,"paused":false}`, agent.ID, agent.Name)
		}
		first := c.agent.ID.String()
		listed("", `{"agents":[`+entry(c.agent)+`,`+entry(second)+`]}`)
		listed("limit=1000", `{"agents":[`+entry(c.agent)+`,`+entry(second)+`]}`)
		listed("limit=1", `{"agents":[`+entry(c.agent)+`],"next":"`+first+`"}`)
		listed("limit=1&after="+strings.ToUpper(first), `{"agents":[`+entry(second)+`]}`)
		for _, query := range []string{
			"limit=", "limit=%zz", "limit=2&limit=2", "after=%zz", "limit=0", "limit=-1", "limit=1001", "limit=ten", "limit=99999999999999999999",
			"after=", "after=me", "after=00000000-0000-0000-0000-000000000000", "after=" + foreign,
		} {
			s.get("/api/agents?"+query, bearer(c.secret)).is(http.StatusBadRequest)
		}
		s.removeAgent(c)
		listed("after="+first, `{"agents":[`+entry(second)+`]}`)
		c.agent = second
		s.removeAgent(c)
		listed("", `{"agents":[]}`)
	})
}
