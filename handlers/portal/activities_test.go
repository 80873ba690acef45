package portal_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/templates"
)

func TestActivityTellsWhoDidWhatNewestFirst(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, stranger := s.customer(t), s.customer(t)
		c.post("/api-keys", generation("production", c.get("/api-keys").formID())).is(http.StatusOK)
		c.agent("Front desk")

		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			items := activityItems(v.get("/activity").is(http.StatusOK))
			if len(items) != 3 {
				t.Fatalf("%d deeds are told, want 3", len(items))
			}
			items[0].says("Operator created the agent Front desk")
			items[1].says(c.email+" generated the API key production", "from 192.0.2.7")
			items[2].says(c.email + " signed in")
			for _, item := range items {
				item.one("time", "")
			}
		})
		if items := activityItems(stranger.get("/activity")); len(items) != 1 {
			t.Errorf("a stranger sees %d deeds, want their own sign-in", len(items))
		}
	})
}

func TestActivityGoesOnPageByPage(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		for i := range 60 {
			c.agent(fmt.Sprintf("agent %02d", i))
		}
		newest := c.get("/activity").is(http.StatusOK)
		items := activityItems(newest)
		if len(items) != 50 {
			t.Fatalf("the first page tells %d deeds, want 50", len(items))
		}
		items[0].says("agent 59")
		newest.none("link", "Newest")

		older := c.get(newest.one("link", "Older").attr("href")).is(http.StatusOK)
		items = activityItems(older)
		if len(items) != 11 {
			t.Fatalf("the second page tells %d deeds, want 11", len(items))
		}
		items[0].says("agent 09")
		older.one("link", "Newest")
		older.none("link", "Older")
	})
}

func TestActivityBeforeNothingIsNotThere(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		c.get("/activity?before=yesterday").is(http.StatusNotFound)
		c.get("/activity?before=").is(http.StatusNotFound)
		c.get("/activity?before=" + uuid.NewString()).is(http.StatusOK)
	})
}

func TestEveryDeedIsToldInWords(t *testing.T) {
	set, err := templates.New(func(name string) (string, error) { return "/" + name, nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range []models.Action{
		models.ActionKeyGenerated, models.ActionKeyRenamed, models.ActionKeyRevoked,
		models.ActionAgentCreated, models.ActionAgentRemoved,
		models.ActionSignedIn, models.ActionSignInFailed, models.ActionSignedOut, models.ActionSessionRevoked,
		models.ActionPasswordChanged, models.ActionPasswordReset,
	} {
		html, err := set.Fragment(templates.ActivityPage{
			Activities: []templates.ActivityItem{{Actor: "someone", Action: string(action)}},
		}, "")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(html), string(action)) {
			t.Errorf("%s is told by its name", action)
		}
	}
}

func activityItems(a answer) []element {
	if mains := a.all("main", ""); len(mains) == 1 {
		return mains[0].all("listitem", "")
	}
	return a.all("listitem", "")
}
