package portal_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
)

func TestPageOfAgentsListsNamesAndIDs(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.get("/agents").is(http.StatusOK).says("No agents yet")
		back, front := c.agent("Back office"), c.agent("Front desk")

		page := c.get("/agents").is(http.StatusOK)
		page.one("heading", "Agents")
		items := page.one("main", "").all("listitem", "")
		items[0].says("Back office", back.ID.String())
		items[1].says("Front desk", front.ID.String())
		items[1].one("button", "Copy ID")
	})
}

func TestCreatingAnAgent(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		created := c.post("/agents", url.Values{"name": {" Front desk "}})
		page := c.get(created.header.Get("Location")).is(http.StatusOK)
		page.one("status", "“Front desk” was created")
		page.one("main", "").one("button", "Remove")

		fragment := c.fragments().post("/agents", url.Values{"name": {"Back office"}}).is(http.StatusOK)
		fragment.says("“Back office” was created")
		if got := fragment.one("textbox", "Name").attr("value"); got != "" {
			t.Errorf("the renewed form still holds %q", got)
		}
		if items := fragment.all("listitem", ""); len(items) != 2 {
			t.Errorf("%d agents are listed, want 2", len(items))
		}
	})
}

func TestFormOfARemovedAgentDoesNotCreateItAgain(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			v := as.of(t, c.visitor)
			form := url.Values{"name": {"Front desk"}, "form_id": {c.get("/agents").formID()}}
			v.post("/agents", form)
			agents, err := s.store.Agents.List(t.Context(), c.account.ID, models.Page{Limit: 10})
			if err != nil || len(agents.Items) != 1 {
				t.Fatal(agents, err)
			}
			v.post("/agents/"+agents.Items[0].ID.String()+"/removal", nil)
			refused := v.post("/agents", form).is(http.StatusConflict)
			refused.one("alert", "which was removed")
			if got := refused.one("textbox", "Name").attr("value"); got != "Front desk" {
				t.Errorf("the field holds %q", got)
			}
			c.get("/agents").says("No agents yet")
			form.Set("form_id", refused.formID())
			follow(v, v.post("/agents", form)).says("“Front desk” was created")
		})
	})
}

func TestAgentIsRefusedWithTheInputKept(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, s.customer(t).visitor)
			for _, name := range []string{"", strings.Repeat("x", 101)} {
				formID := uuid.NewString()
				form := url.Values{"name": {name}, "form_id": {formID}}
				refused := v.post("/agents", form).is(http.StatusUnprocessableEntity)
				if refused.formID() == formID {
					t.Error("the form was not renewed")
				}
				field := refused.one("textbox", "Name")
				if field.attr("value") != name || field.attr("aria-invalid") != "true" {
					t.Errorf("the field holds %q", field.attr("value"))
				}
				alerts := refused.all("alert", "ame")
				if len(alerts) != 1 || !strings.Contains(field.attr("aria-describedby"), alerts[0].attr("id")) {
					t.Errorf("%d alerts, want one that describes the field", len(alerts))
				}
			}
		})
	})
}

func TestAgentIsRenamed(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			path := "/agents/" + c.agent("Front desk").ID.String()
			v := as.of(t, c.visitor)
			v.get(path+"/name").is(http.StatusOK).one("button", "Save name")
			tooLong := strings.Repeat("x", 101)
			refused := v.post(path+"/name", url.Values{"name": {tooLong}}).is(http.StatusUnprocessableEntity)
			refused.one("alert", "ame")
			if got := refused.one("textbox", "New name").attr("value"); got != tooLong {
				t.Errorf("the field holds %q", got)
			}
			follow(v, v.post(path+"/name", url.Values{"name": {" Reception "}})).says("“Front desk” renamed to “Reception”")
			c.get("/agents").is(http.StatusOK).says("Reception")
			as.of(t, s.customer(t).visitor).post(path+"/name", url.Values{"name": {"theirs"}}).is(http.StatusNotFound)
		})
	})
}

func TestRemovingAnAgentNeedsAConfirmation(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			c.visitor = as.of(t, c.visitor)
			agent := c.agent("Front desk")
			path := "/agents/" + agent.ID.String()

			asked := c.get(path + "/removal").is(http.StatusOK)
			asked.says("cannot be undone")
			if !asked.one("button", "Cancel").has("autofocus") {
				t.Error("Cancel does not take the focus")
			}
			asked.one("button", "Confirm removal")

			kept := c.get(path)
			if !as.htmx {
				kept.redirects("/agents#remove-" + agent.ID.String())
			} else if !kept.one("button", "Remove").has("autofocus") {
				t.Error("Remove does not take the focus")
			}

			done := c.post(path+"/removal", nil)
			if !as.htmx {
				done = c.get(done.header.Get("Location"))
			}
			done.is(http.StatusOK).says("was removed", "No agents yet")
			if agents, err := s.store.Agents.List(context.Background(), c.account.ID, models.Page{Limit: 10}); err != nil || len(agents.Items) != 0 {
				t.Errorf("%d agents are left, %v", len(agents.Items), err)
			}
			c.post(path+"/removal", nil).is(http.StatusNotFound)
		})
	})
}

func TestRemovalSaysWhenTheAgentLastIssuedAToken(t *testing.T) {
	clock := modelstest.NewClock(time.Now())
	onSiteWith(t, models.Options{Now: clock.Now}, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			agent, unused := c.agent("Front desk"), c.agent("Back office")
			v := as.of(t, c.visitor)
			v.get("/agents/" + unused.ID.String() + "/removal").is(http.StatusOK).says("This agent has issued no tokens.")

			s.store.Agents.TokenIssued(agent.ID)
			issued := clock.Now()
			clock.Advance(time.Second)
			path := "/agents/" + agent.ID.String() + "/removal"
			v.get(path).is(http.StatusOK).says("Last token just now", "cannot be undone")
			clock.Advance(3 * time.Minute)
			asked := v.get(path).is(http.StatusOK)
			asked.says("Last token 3 minutes ago", "Its widget tokens stop working at once.")
			if machine := `datetime="` + issued.UTC().Format(time.RFC3339) + `"`; !strings.Contains(asked.body, machine) {
				t.Errorf("no %s in\n%s", machine, asked.body)
			}
			v.get("/agents/" + unused.ID.String() + "/removal").says("This agent has issued no tokens. This cannot be undone.")
		})
	})
}

func TestAgentLimitIsExplained(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			agents := make([]models.Agent, models.MaxAgents)
			for i := range agents {
				agents[i] = models.Agent{ID: uuid.New(), AccountID: c.account.ID, Name: "Reception", CreatedAt: time.Now()}
			}
			modelstest.Value(modelstest.OpenDatabase(t, s.databaseURL).NewInsert().Model(&agents).Exec(t.Context()))(t)
			v := as.of(t, c.visitor)
			form := url.Values{"name": {"Front desk"}, "form_id": {uuid.NewString()}}
			refused := v.post("/agents", form).is(http.StatusUnprocessableEntity)
			refused.one("alert", "limit of 1000 agents")
			if got := refused.one("textbox", "Name").attr("value"); got != "Front desk" {
				t.Errorf("the field holds %q", got)
			}
		})
	})
}

func TestAgentsArePaged(t *testing.T) {
	s := sqliteSite(t, httpBase)
	c := s.customer(t)
	for i := range 101 {
		c.agent(fmt.Sprintf("Agent %03d", i))
	}
	page := c.get("/agents").is(http.StatusOK)
	page.none("link", "First page")
	if items := page.all("listitem", ""); len(items) < 100 {
		t.Errorf("%d items", len(items))
	}
	next := c.get(page.one("link", "Next page").attr("href")).is(http.StatusOK)
	next.none("link", "Next page")
	if !strings.Contains(next.body, "Agent 100") || strings.Contains(next.body, "Agent 099") {
		t.Error("the second page has not exactly the last agent")
	}
	next.one("link", "First page")
	c.get("/agents?after=unknown").is(http.StatusNotFound)
	c.get("/agents?after=" + uuid.NewString()).is(http.StatusNotFound)

	last := c.agent("Zulu")
	confirmation := c.get("/agents/" + last.ID.String() + "/removal").is(http.StatusOK)
	confirmation.one("button", "Confirm removal")
	created := c.fragments().post("/agents", url.Values{"name": {"Zulu 2"}, "form_id": {uuid.NewString()}}).is(http.StatusOK)
	if !strings.Contains(created.body, "Zulu 2") {
		t.Error("the list does not show the new agent")
	}
}

func TestExamplesAreFilledIn(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		page := c.get("/integrate").is(http.StatusOK)
		page.one("heading", "Integrate")
		page.says("You have no agents yet", "AGENT_ID", "paste the key and press Enter. The key is not displayed",
			"The Go, Node and Python servers have no dependencies", "guides and the API reference")
		if page.one("link", "Integrate").attr("aria-current") != "page" {
			t.Error("the navigation does not mark the page")
		}

		second := c.agent("Night shift")
		c.get("/integrate").says("use your agent Night shift", second.ID.String())
		first := c.agent("Front desk")
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			page := v.get("/integrate").is(http.StatusOK)
			for _, name := range []string{"curl", "Go", "Node", "Python"} {
				page.one("button", "Copy "+name+" example")
				page.one("region", name+" example").says("http://portal.test/api/widget/token",
					first.ID.String(), "NAS_API_KEY")
			}
			browser := page.one("region", "Browser example")
			if strings.Contains(browser.text(), "NAS_API_KEY") || strings.Contains(browser.text(), "portal.test") {
				t.Error("the browser side knows the key or asks the portal")
			}
			other := v.get("/integrate?agent=" + second.ID.String()).is(http.StatusOK)
			other.one("region", "Go example").says(second.ID.String())
			if got := other.header.Get("HX-Replace-Url"); got != "" && got != "/integrate?agent="+second.ID.String() {
				t.Errorf("the address of the page becomes %q", got)
			}
			for _, id := range []string{uuid.NewString(), "nonsense", ""} {
				v.get("/integrate?agent=" + id).is(http.StatusNotFound)
			}
		})
	})
}
