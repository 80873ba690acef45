package portal_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/agents"
	"portal/models/modelstest"
	"portal/models/value"
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
		fragment.one("textbox", "Name").with("value", "")
		if items := fragment.all("listitem", ""); len(items) != 2 {
			t.Errorf("%d agents are listed, want 2", len(items))
		}
	})
}

func TestFormOfARemovedAgentIsShownAgainWithANewID(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		form := url.Values{"name": {"Front desk"}, "form_id": {c.get("/agents").formID()}}
		v.post("/agents", form)
		agents, err := c.store.Agents.List(t.Context(), c.account.ID, value.Page{Limit: 10})
		if err != nil || len(agents.Items) != 1 {
			t.Fatal(agents, err)
		}
		v.post("/agents/"+agents.Items[0].ID.String()+"/removal", nil)
		refused := v.post("/agents", form).is(http.StatusConflict)
		refused.one("alert", "which was removed")
		refused.one("textbox", "Name").with("value", "Front desk")
		form.Set("form_id", refused.formID())
		follow(v, v.post("/agents", form)).says("“Front desk” was created")
	})
}

func TestAgentIsRefusedWithTheInputKept(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, _ customer, v *visitor) {
		for _, name := range []string{"", strings.Repeat("x", 101)} {
			formID := uuid.NewString()
			form := url.Values{"name": {name}, "form_id": {formID}}
			refused := v.post("/agents", form).is(http.StatusUnprocessableEntity)
			if refused.formID() == formID {
				t.Error("the form was not renewed")
			}
			refused.one("alert", "ame").describes(refused.one("textbox", "Name").with("value", name).with("aria-invalid", "true"))
		}
	})
}

func TestFormRenamesAnAgentAndKeepsARefusedName(t *testing.T) {
	asCustomer(t, models.Options{}, func(_ *testing.T, c customer, v *visitor) {
		path := "/agents/" + c.agent("Front desk").ID.String()
		v.get(path+"/name").is(http.StatusOK).one("button", "Save name")
		tooLong := strings.Repeat("x", 101)
		refused := v.post(path+"/name", url.Values{"name": {tooLong}}).is(http.StatusUnprocessableEntity)
		refused.one("alert", "ame")
		refused.one("textbox", "New name").with("value", tooLong)
		follow(v, v.post(path+"/name", url.Values{"name": {" Reception "}})).says("“Front desk” renamed to “Reception”")
	})
}

func TestRemovingAnAgentNeedsAConfirmation(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		c.visitor = v
		agent := c.agent("Front desk")
		path := "/agents/" + agent.ID.String()

		asked := c.get(path + "/removal").is(http.StatusOK)
		asked.says("can’t be undone")
		asked.one("button", "Cancel").with("autofocus", "")
		asked.one("button", "Confirm removal")
		kept := c.get(path)
		if !v.htmx {
			kept.redirects("/agents#remove-" + agent.ID.String())
		} else if !kept.one("button", "Remove").has("autofocus") {
			t.Error("Remove does not take the focus")
		}

		done := c.post(path+"/removal", nil)
		if !v.htmx {
			done = c.get(done.header.Get("Location"))
		}
		done.is(http.StatusOK).says("was removed", "No agents yet")
		if agents, err := c.store.Agents.List(context.Background(), c.account.ID, value.Page{Limit: 10}); err != nil || len(agents.Items) != 0 {
			t.Errorf("%d agents are left, %v", len(agents.Items), err)
		}
		c.post(path+"/removal", nil).is(http.StatusNotFound)
	})
}

func TestRemovalSaysWhenTheAgentWasLastUsed(t *testing.T) {
	clock := modelstest.NewClock(time.Now())
	asCustomer(t, models.Options{Now: clock.Now}, func(t *testing.T, c customer, v *visitor) {
		agent, unused := c.agent("Front desk"), c.agent("Back office")
		v.get("/agents/" + unused.ID.String() + "/removal").is(http.StatusOK).says("It has not been used in the last 90 days.")

		c.store.Agents.Used(c.account.ID, agent.ID, uuid.New())
		used := clock.Now()
		clock.Advance(time.Second)
		path := "/agents/" + agent.ID.String() + "/removal"
		v.get(path).is(http.StatusOK).says("Its last token was issued just now", "can’t be undone")
		clock.Advance(3 * time.Minute)
		asked := v.get(path).is(http.StatusOK)
		asked.says("Its last token was issued 3 minutes ago", "Its tokens stop working immediately.")
		if machine := `datetime="` + used.UTC().Format(time.RFC3339) + `"`; !strings.Contains(asked.body, machine) {
			t.Errorf("no %s in\n%s", machine, asked.body)
		}
		v.get("/agents/" + unused.ID.String() + "/removal").says("It has not been used in the last 90 days. This can’t be undone.")
	})
}

func TestAgentLimitIsExplained(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		list := make([]agents.Agent, value.MaxAgents)
		for i := range list {
			list[i] = agents.Agent{ID: uuid.New(), AccountID: c.account.ID, Name: "Reception", CreatedAt: time.Now()}
		}
		modelstest.Value(modelstest.OpenDatabase(t, c.databaseURL).NewInsert().Model(&list).Exec(t.Context()))(t)
		form := url.Values{"name": {"Front desk"}, "form_id": {uuid.NewString()}}
		refused := v.post("/agents", form).is(http.StatusUnprocessableEntity)
		refused.one("alert", "limit of 1000 agents")
		refused.one("textbox", "Name").with("value", "Front desk")
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

func TestAgentsAreSortedAsPeopleRead(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for _, name := range []string{"zoo", "Äpfel", "Agent 10", "agent 9", "Zebra", "émile"} {
			c.agent(name)
		}
		const want = "agent 9, Agent 10, Äpfel, émile, Zebra, zoo"
		var listed []string
		for _, item := range c.get("/agents").is(http.StatusOK).all("listitem", "") {
			if heading := strings.TrimSuffix(item.attr("id"), "-name"); strings.HasPrefix(heading, "agent-") {
				listed = append(listed, regexp.MustCompile(` [0-9a-f-]{36}.*`).ReplaceAllString(item.text(), ""))
			}
		}
		if got := strings.Join(listed, ", "); got != want {
			t.Errorf("the agents are %s, want %s", got, want)
		}
		choices, _ := c.get("/integrate").is(http.StatusOK).options("Examples for")
		if got := strings.Join(choices, ", "); got != want {
			t.Errorf("the choices are %s, want %s", got, want)
		}
	})
}

func TestExamplesSayWhetherThereIsALiveKitServer(t *testing.T) {
	t.Parallel()
	const missing = "Calls need a LiveKit server, and none is set up here yet"
	page := sqliteSite(t, httpBase).customer(t).get("/integrate").is(http.StatusOK)
	page.says(missing)
	if len(page.all("link", "LiveKit’s SDKs")) != 0 {
		t.Error("the page leads to LiveKit’s SDKs")
	}
	page = newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{LiveKit: liveKitAway(t)}).customer(t).get("/integrate").is(http.StatusOK)
	page.one("link", "LiveKit’s SDKs")
	if strings.Contains(page.text(), missing) {
		t.Error("the page says that LiveKit is missing")
	}
}

func TestExamplesAreFilledIn(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		page := c.get("/integrate").is(http.StatusOK)
		page.one("heading", "Integrate")
		page.says("You have no agents yet", "AGENT_ID", "paste the key and press Enter. The key is not displayed",
			"The Go, Node and Python servers have no dependencies", "guides and the API reference")
		page.one("link", "Integrate").with("aria-current", "page")
		page.byID("snippet-prompt").says("Agent id: AGENT_ID (GET http://portal.test/api/agents lists")

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
			page.one("button", "Copy prompt for a coding agent").with("data-copy", "#snippet-prompt")
			prompt := page.one("region", "Prompt for a coding agent").with("tabindex", "0").byID("snippet-prompt")
			prompt.says("Base URL: http://portal.test ", "Agent id: "+first.ID.String(), "environment variable NAS_API_KEY",
				"http://portal.test/llms.txt", "Test it:")
			if strings.Contains(prompt.text(), "nas_") {
				t.Error("the prompt has a key")
			}
			browser := page.one("region", "Browser example")
			if strings.Contains(browser.text(), "NAS_API_KEY") || strings.Contains(browser.text(), "portal.test") {
				t.Error("the browser side knows the key or asks the portal")
			}
			other := v.get("/integrate?agent=" + second.ID.String()).is(http.StatusOK)
			other.one("region", "Go example").says(second.ID.String())
			other.byID("snippet-prompt").says("Agent id: " + second.ID.String())
			if got := other.header.Get("HX-Replace-Url"); got != "" && got != "/integrate?agent="+second.ID.String() {
				t.Errorf("the address of the page becomes %q", got)
			}
			for _, id := range []string{uuid.NewString(), "nonsense", ""} {
				v.get("/integrate?agent=" + id).is(http.StatusNotFound)
			}
		})
	})
}
