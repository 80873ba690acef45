package portal_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
	"portal/templates"
)

func TestActivityListsActorsAndActionsNewestFirst(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, stranger := s.customer(t), s.customer(t)
		c.post("/api-keys", generation("production", c.get("/api-keys").formID())).is(http.StatusOK)
		c.agent("Front desk")

		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			items := activityItems(v.get("/activity").is(http.StatusOK))
			if len(items) != 3 {
				t.Fatalf("%d activities are listed, want 3", len(items))
			}
			items[0].says("Operator created the agent Front desk")
			items[1].says(c.email+" generated the API key production", "from 192.0.2.7")
			items[2].says(c.email + " signed in")
			for _, item := range items {
				item.one("time", "")
			}
		})
		if items := activityItems(stranger.get("/activity")); len(items) != 1 {
			t.Errorf("a stranger sees %d activities, want their own sign-in", len(items))
		}
	})
}

func TestActivityNamesTheKey(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		first, second := c.key("staging"), c.key("staging")
		modelstest.Value(s.store.Keys.Rename(t.Context(), c.account.ID, first.ID, "prod", models.Operator()))(t)
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

func TestActivityBeforeInvalidIDIsNotFound(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.get("/activity?before=yesterday").is(http.StatusNotFound)
		c.get("/activity?before=").is(http.StatusNotFound)
		c.get("/activity?before=" + uuid.NewString()).is(http.StatusOK)
	})
}

var allActions = []models.Action{
	models.ActionKeyGenerated, models.ActionKeyRenamed, models.ActionKeyRestricted, models.ActionKeyRevoked,
	models.ActionAgentCreated, models.ActionAgentRemoved, models.ActionCallsEnded,
	models.ActionSignedIn, models.ActionSignInFailed, models.ActionSignedOut, models.ActionSessionRevoked,
	models.ActionPasswordChanged, models.ActionPasswordReset,
	models.ActionSessionsRevoked, models.ActionPasswordRefused, models.ActionEmailChanged, models.ActionDatabaseRestored,
}

func TestEveryActionHasWords(t *testing.T) {
	set := modelstest.Value(templates.New(func(name string) (string, error) { return "/" + name, nil }))(t)
	for _, action := range allActions {
		html, err := set.Fragment(templates.ActivityPage{
			Days: templates.ActivityDays([]templates.ActivityItem{{Activity: models.Activity{ActorName: "someone", Action: action}}}),
		}, "")
		modelstest.Must(t, err)
		if strings.Contains(string(html), string(action)) {
			t.Errorf("%s is shown by its code", action)
		}
	}
}

func activityItems(a answer) []element {
	if mains := a.all("main", ""); len(mains) == 1 {
		return mains[0].all("listitem", "")
	}
	return a.all("listitem", "")
}
