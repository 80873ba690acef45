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
	"portal/models/agents"
	"portal/models/calls"
	"portal/models/keys"
	"portal/models/livekit"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/value"
)

// call reports a call that began so long ago. If it lasted zero seconds, it goes on.
func (c customer) call(agent agents.Agent, key keys.Key, ago, lasted time.Duration) {
	c.t.Helper()
	now := time.Now().UTC()
	room := uuid.NewString()
	event := livekit.Event{
		CreatedAt: now,
		Room:      livekit.Room{ID: room, Name: room, AgentID: agent.ID, KeyID: key.ID},
		Visitor:   livekit.Visitor{ID: "PA_1", Identity: "v", UserID: "=user", JoinedAt: now.Add(-ago), Reason: "CLIENT_INITIATED"},
	}
	modelstest.Must(c.t, c.store.Calls.Report(context.Background(), event))
	if event.Left = lasted > 0; event.Left {
		event.CreatedAt = now.Add(lasted - ago)
		modelstest.Must(c.t, c.store.Calls.Report(context.Background(), event))
	}
}

// onVoiceSite is [onSite] with a LiveKit server that does not answer, so that nothing begins or
// ends by itself.
func onVoiceSite(t *testing.T, run func(t *testing.T, s *site)) {
	t.Helper()
	onSiteWith(t, models.Options{LiveKit: liveKitAway(t)}, run)
}

func TestCallsAreListedFilteredAndExported(t *testing.T) {
	onVoiceSite(t, func(t *testing.T, s *site) {
		c, stranger := s.customer(t), s.customer(t)
		empty := c.get("/calls").is(http.StatusOK)
		empty.one("heading", "Calls")
		empty.says("No calls", "No calls right now. 0 minutes this month.")
		empty.none("table", "Calls")
		front, back, key, other := c.agent("Front desk"), c.agent("Back office"), c.key("web"), c.key("app")
		c.call(front, key, 2*time.Hour, 64*time.Minute+12*time.Second)
		c.call(back, other, 10*time.Second, 0)
		stranger.call(stranger.agent("Foreign"), stranger.key("foreign"), time.Minute, 0)
		modelstest.Value(s.store.Accounts.SetLimits(t.Context(), c.account.ID, value.Limits{Calls: 5, MinutesPerMonth: 1000}, record.Operator()))(t)

		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			page := v.get("/calls").is(http.StatusOK)
			page.says("1 of 5 calls right now.", " of 1,000 minutes this month")
			rows := page.one("table", "Calls").all("row", "")
			if len(rows) != 3 {
				t.Fatalf("%d rows", len(rows))
			}
			rows[0].says("Started Agent Key Visitor Duration Ended Actions")
			rows[1].says("Back office app =user", "In progress", "End call")
			rows[2].says("Front desk web =user 1:04:12 Visitor left")
			rows[2].none("button", "End call")
			for query, want := range map[string]int{
				"agent=" + front.ID.String() + "&key=": 2, "key=" + other.ID.String(): 2, "agent=" + front.ID.String() + "&key=" + key.ID.String(): 2,
			} {
				if rows := v.get("/calls?"+query).is(http.StatusOK).one("table", "Calls").all("row", ""); len(rows) != want {
					t.Errorf("%s: %d rows", query, len(rows))
				}
			}
			for _, query := range []string{"agent=x", "key=x", "before=x"} {
				v.get("/calls?" + query).is(http.StatusNotFound)
			}
		})
		// Without JavaScript the page loads itself again while a call goes on.
		if page := c.get("/calls").is(http.StatusOK); !strings.Contains(page.body, `<noscript><meta http-equiv="refresh" content="5;url=/calls/refresh">`) {
			t.Error("the page does not load itself again")
		}
		if page := c.get("/calls?key=" + key.ID.String()).is(http.StatusOK); strings.Contains(page.body, `http-equiv="refresh"`) {
			t.Error("a page without a running call loads itself again")
		}
		c.get("/calls/refresh").is(http.StatusOK).one("table", "Calls")

		modelstest.Exec(t, s.databaseURL, "UPDATE calls SET final = true WHERE ended_at IS NOT NULL") // as a round of the background does
		lines := strings.Split(strings.TrimSpace(c.get("/calls/export").is(http.StatusOK).body), "\r\n")
		if len(lines) != 3 || lines[0] != "\ufeff"+`"id","agentId","keyId","userId","startedAt","endedAt","seconds","endReason","exact","final"` ||
			!strings.Contains(lines[2], fmt.Sprintf(`%q,%q,"'=user",`, front.ID, key.ID)) || !strings.HasSuffix(lines[2], `"3852","visitor_left","true","true"`) {
			t.Errorf("the export is\n%s", strings.Join(lines, "\n"))
		}
		c.revoke(key)
		if page := c.get("/calls").is(http.StatusOK); !strings.Contains(page.body, `<optgroup label="Revoked or expired">`) {
			t.Error("the filter has no revoked key")
		}
	})
}

func TestEndingACall(t *testing.T) {
	onVoiceSite(t, func(t *testing.T, s *site) {
		c, stranger := s.customer(t), s.customer(t)
		agent, key := c.agent("Front desk"), c.key("web")
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			c.call(agent, key, 5*time.Second, 0)
			id := modelstest.Value(s.store.Calls.List(t.Context(), calls.CallPage{AccountID: c.account.ID, Limit: 1}))(t)[0].ID
			path := "/calls/" + id.String() + "/end"
			asked := v.get(path).is(http.StatusOK)
			asked.one("button", "Confirm end")
			asked.one("button", "Cancel")
			if strings.Contains(asked.body, "every 5s") || strings.Contains(asked.body, `http-equiv="refresh"`) {
				t.Error("a confirmation loads itself again")
			}
			stranger.like(v).get(path).is(http.StatusNotFound)
			stranger.like(v).post(path, nil).is(http.StatusNotFound)
			ended := v.post(path, nil)
			if !as.htmx {
				ended = c.get(ended.header.Get("Location"))
			}
			ended.is(http.StatusOK).says("The call ends.")
		})
		if items := activityItems(c.get("/activity?kind=" + string(record.ActionCallEnded)).is(http.StatusOK)); len(items) != 2 {
			t.Errorf("%d activities", len(items))
		}
	})
}

func TestNoCallsWithoutLiveKit(t *testing.T) {
	t.Parallel()
	c := sqliteSite(t, httpBase).customer(t)
	page := c.get("/api-keys").is(http.StatusOK)
	page.none("link", "Calls")
	for _, path := range []string{"/calls", "/calls/export", "/calls/refresh", "/calls/" + uuid.NewString()} {
		c.get(path).is(http.StatusNotFound)
	}
}

// An agent is paused after a confirmation, also without LiveKit, and resumed without one.
func TestPausingAnAgent(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c, stranger := s.customer(t), s.customer(t)
		agent := c.agent("Front desk")
		path := "/agents/" + agent.ID.String()
		bothVoices(t, func(t *testing.T, as voice) {
			v := as.of(t, c.visitor)
			asked := v.get(path + "/pause").is(http.StatusOK)
			asked.one("button", "Confirm pause")
			asked.one("button", "Cancel")
			stranger.like(v).post(path+"/pause", nil).is(http.StatusNotFound)
			v.post(path+"/pause", nil)
			page := c.get("/agents").is(http.StatusOK)
			page.one("main", "").says("Paused")
			page.one("button", "Resume")
			page.none("button", "Pause")
			v.post(path+"/resumption", nil)
			c.get("/agents").is(http.StatusOK).one("button", "Pause")
		})
	})
}

func TestPauseSaysHowManyCallsEnd(t *testing.T) {
	onVoiceSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		agent := c.agent("Front desk")
		c.call(agent, c.key("web"), time.Second, 0)
		modelstest.Exec(t, s.databaseURL, "UPDATE call_rounds SET listed_at = '2999-01-01 00:00:00+00:00'")
		c.get("/agents/" + agent.ID.String() + "/pause").is(http.StatusOK).says("1 call ends immediately.")
	})
}

// A key's limits are three fields of its restrictions, and the list says how much of them is used.
func TestLimitsOfAKey(t *testing.T) {
	onVoiceSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		agent, key := c.agent("Front desk"), c.key("web")
		path := "/api-keys/" + key.ID.String() + "/restrictions"
		form := func(calls, perCall, perMonth string) url.Values {
			return url.Values{
				"expires": {"never"}, "agents": {"all"}, "networks": {""}, "note": {""},
				"calls": {calls}, "minutesPerCall": {perCall}, "minutesPerMonth": {perMonth},
			}
		}
		page := c.get(path).is(http.StatusOK)
		for _, name := range []string{"Calls at a time", "Minutes a call", "Minutes a month"} {
			page.one("textbox", name).with("value", "")
		}
		for _, wrong := range []string{"0", "-1", "1.5", "many", "10001", "99999999999999999999"} {
			refused := c.post(path, form(wrong, "", "")).is(http.StatusUnprocessableEntity)
			refused.one("textbox", "Calls at a time").with("value", wrong)
			refused.says("Calls at a time must be a whole number from 1 to 10,000")
		}
		c.post(path, form("5", "", "1000")).redirects("/api-keys#menu-" + key.ID.String())
		c.call(agent, key, 10*time.Second, 0)
		c.get("/api-keys").is(http.StatusOK).says("1 of 5 calls, 0 of 1,000 minutes")
		c.get("/api-keys/" + key.ID.String()).is(http.StatusOK).says("1 of 5 calls, 0 of 1,000 minutes")
		// A form without the fields changes nothing.
		c.post(path, url.Values{"note": {"only the note"}}).redirects("/api-keys#menu-" + key.ID.String())
		if found := modelstest.Value(s.store.Keys.Find(t.Context(), c.account.ID, key.ID))(t); found.Limits != (value.Limits{Calls: 5, MinutesPerMonth: 1000}) {
			t.Errorf("limits: %s", found.Limits)
		}
	})
}

func TestUsageHasMinutes(t *testing.T) {
	onVoiceSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		agent, key := c.agent("Front desk"), c.key("web")
		c.call(agent, key, 30*time.Hour, 125*time.Second)
		c.call(agent, key, 4*time.Minute, 60*time.Second)
		table := c.get("/usage").is(http.StatusOK).one("table", "Usage")
		table.says("Key Requests Refused requests Minutes", "web "+key.Masked()+" 0 0 3", "All keys 0 0 3")
		if lines := strings.Split(strings.TrimSpace(c.get("/usage/export").is(http.StatusOK).body), "\r\n"); len(lines) < 3 || !strings.HasSuffix(lines[0], `"minutes"`) {
			t.Errorf("the export is\n%s", strings.Join(lines, "\n"))
		}
	})
}
