package templates_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/templates"
)

// The attributes of a row have the id of this row, and no label can imitate the start of a row.
func TestRowsHaveTheirOwnIDs(t *testing.T) {
	keys, agents := []templates.APIKeyRow{key, key}, []templates.AgentItem{agent, agent}
	keys[1].ID, agents[1].ID = uuid.New(), uuid.New()
	keys[0].Label = "<id> <row>" + keys[1].ID.String()
	for _, list := range []struct {
		page  templates.Page
		start string
		ids   [2]uuid.UUID
		wants []string
	}{
		{
			templates.APIKeysPage{List: templates.APIKeyList{Keys: keys}},
			`<tr id="api-key-`,
			[2]uuid.UUID{keys[0].ID, keys[1].ID},
			[]string{`id="label-*"`, `href="/usage?key=*"`, `hx-get="/api-keys/*/name"`, `href="/api-keys/*/rotation"`, `id="revoke-*"`},
		},
		{
			templates.AgentsPage{List: templates.AgentList{Agents: agents}},
			`<li id="agent-`,
			[2]uuid.UUID{agents[0].ID, agents[1].ID},
			[]string{`id="agent-*-name"`, `>*</code>`, `action="/agents/*/removal"`},
		},
	} {
		html, err := parsed(t).Page(templates.Frame{Account: "Example Ltd"}, list.page)
		if err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(string(html), list.start)[1:]
		if len(rows) != len(list.ids) {
			t.Fatalf("%d rows", len(rows))
		}
		for i, row := range rows {
			for _, want := range list.wants {
				if want = strings.ReplaceAll(want, "*", list.ids[i].String()); !strings.Contains(row, want) {
					t.Errorf("row %d lacks %s", i, want)
				}
			}
		}
		if strings.Contains(string(html), "<id>") || strings.Contains(string(html), "<row>") {
			t.Error("an id is missing, or the page contains the start of a row")
		}
	}
}
