package portal_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"portal/models/modelstest"
	"portal/models/record"
)

func TestActivityListsActorsAndActionsNewestFirst(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, stranger := s.customer(t), s.customer(t)
		c.post("/api-keys", generation("production", c.get("/api-keys").formID())).is(http.StatusOK)
		c.agent("Front desk")

		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			items := v.get("/activity").activities(3)
			items[0].says("Operator created the agent Front desk")
			items[1].says(c.email+" generated the API key production", "from 192.0.2.7")
			items[2].says(c.email + " signed in")
			for _, item := range items {
				item.one("time", "")
			}
		})
		stranger.get("/activity").activities(1)
	})
}

func TestActivityNamesTheKey(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		first, second := c.key("staging"), c.key("staging")
		modelstest.Value(s.store.Keys.Rename(t.Context(), c.account.ID, first.ID, "prod", record.Operator()))(t)
		replacement, _ := c.newKey("prod", first.ID)
		c.revoke(first)

		bothVoices(t, func(t *testing.T, as voice) {
			items := activityItems(as.of(t, c.visitor).get("/activity").is(http.StatusOK))
			items[0].says("revoked the API key prod " + first.Masked())
			items[1].says("generated the API key prod " + replacement.Masked() + " as a replacement for " + first.Masked())
			items[2].says("renamed staging to prod " + first.Masked())
			items[3].says("generated the API key staging " + second.Masked())
			items[4].says("generated the API key staging " + first.Masked())
			for _, item := range items[2:] {
				if strings.Contains(item.text(), "replacement") {
					t.Errorf("no replacement, but %q", item.text())
				}
			}
		})
		lines := exported(t, c.get("/activity/export"))
		for i, want := range []string{
			first.Masked() + "||",
			replacement.Masked() + "||" + first.Masked(),
			first.Masked() + "|staging|",
			second.Masked() + "||",
		} {
			if got := strings.Join(lines[i+1][6:9], "|"); got != want {
				t.Errorf("line %d is exported with %q, want %q", i, got, want)
			}
		}

		// After an operator has deleted the key, the activity still has its label.
		modelstest.Exec(t, s.databaseURL, "DELETE FROM api_keys WHERE id = '"+first.ID.String()+"'")
		items := activityItems(c.get("/activity").is(http.StatusOK))
		items[0].says("revoked the API key prod")
		if text := items[0].text() + items[1].text(); strings.Contains(text, first.Masked()) || strings.Contains(text, "nas_...  ") {
			t.Errorf("the activity of a deleted key is %q", text)
		}
	})
}

// activities returns the listed activities. There must be n.
func (a answer) activities(n int) []element {
	a.t.Helper()
	items := activityItems(a.is(http.StatusOK))
	if len(items) != n {
		a.t.Fatalf("%d activities are listed, want %d:\n%s", len(items), n, a.text())
	}
	return items
}

func activityItems(a answer) []element {
	if mains := a.all("main", ""); len(mains) == 1 {
		return mains[0].all("listitem", "")
	}
	return a.all("listitem", "")
}

func TestActivityIsExported(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, stranger := s.customer(t), s.customer(t)
		agent := c.agent(`Front "desk", first floor`)
		stranger.agent("a stranger's")

		answer := c.get(c.get("/activity").one("link", "Download CSV").attr("href")).is(http.StatusOK)
		if got := answer.header.Get("Content-Type"); !strings.HasPrefix(got, "text/csv; charset=utf-8") {
			t.Errorf("it is %q", got)
		}
		if got := answer.header.Get("Content-Disposition"); !strings.HasPrefix(got, `attachment; filename=activity-`) {
			t.Errorf("it is kept as %q", got)
		}
		lines := exported(t, answer)
		if len(lines) != 3 {
			t.Fatalf("%d lines, want the column names and two activities:\n%s", len(lines), answer.body)
		}
		if got := strings.Join(lines[0], " "); got != "time actor action label subject_id address key former_label replaced_key count detail" {
			t.Errorf("the columns are %q", got)
		}
		if got := lines[1][1:]; strings.Join(got, "|") != "Operator|agent.created|"+agent.Name+"|"+agent.ID.String()+"|||||1|" {
			t.Errorf("the agent's line is %q", got)
		}
		if lines[2][1] != c.email || lines[2][2] != "session.created" || lines[2][5] != "192.0.2.7" {
			t.Errorf("the sign-in's line is %q", lines[2])
		}

		if lines := exported(t, c.get("/activity/export?kind=agent.created")); len(lines) != 2 {
			t.Errorf("with a filter the export has %d lines, want 2", len(lines))
		}
		c.get("/activity/export?kind=nothing").is(http.StatusNotFound)
		s.visitor(t).get("/activity/export").redirects("/login?next=%2Factivity")
	})
}

func TestExportOfManyBatchesIsComplete(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		const agents = 410
		for i := range agents {
			c.agent(fmt.Sprintf("agent %04d", i))
		}
		lines := exported(t, c.get("/activity/export?kind=agent.created"))
		if len(lines) != agents+1 {
			t.Fatalf("%d lines, want %d", len(lines), agents+1)
		}
		for i, line := range lines[1:] {
			if want := fmt.Sprintf("agent %04d", agents-1-i); line[3] != want {
				t.Fatalf("line %d is about %q, want %q", i, line[3], want)
			}
		}
	})
}

// Spreadsheets read cells that begin like these as formulas.
func TestExportEscapesFormulas(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for _, name := range []string{
			`=HYPERLINK("https://example.com","x")`, "+1+1", "-2+3", "@SUM(1)", "＝1+1", "＋1", "－1", "＠A1",
		} {
			c.agent(name)
			lines := exported(t, c.get("/activity/export?kind=agent.created"))
			if got := lines[1][3]; got != "'"+name {
				t.Errorf("%q is exported as %q", name, got)
			}
		}
		c.elsewhere("   =1+1").post("/logout", nil)
		if got := exported(t, c.get("/activity/export?kind=session.ended"))[1][3]; !strings.HasPrefix(got, "'") {
			t.Errorf("a browser's name is exported as %q", got)
		}
		c.agent("a = b")
		if got := exported(t, c.get("/activity/export"))[1][3]; got != "a = b" {
			t.Errorf("a cell that is not a formula is exported as %q", got)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(c.get("/activity/export").body, "\ufeff"), "\r\n"), "\r\n") {
			if !strings.HasPrefix(line, `"`) || !strings.HasSuffix(line, `"`) {
				t.Errorf("a cell is not quoted in %s", line)
			}
		}
	})
}

func exported(t *testing.T, a answer) [][]string {
	t.Helper()
	body, marked := strings.CutPrefix(a.body, "\ufeff") // Excel reads UTF-8 only with the mark
	if !marked {
		t.Error("the export has no byte order mark")
	}
	lines, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil {
		t.Fatalf("it is not CSV: %v\n%s", err, a.body)
	}
	return lines
}
