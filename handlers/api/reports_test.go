package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
	"portal/models/value"
)

// reportsKey generates a key for reports in the customer's account.
func (s *service) reportsKey(c customer) string {
	s.t.Helper()
	_, secret, err := s.store.Keys.Generate(s.t.Context(), c.accountID,
		keys.NewKey{Label: "siem", FormID: uuid.New(), Access: keys.AccessReports}, record.Operator())
	modelstest.Must(s.t, err)
	return secret
}

// Each key reaches the paths of its access. The refusal comes before 404, 405 and parameters.
func TestAccessOfKeys(t *testing.T) {
	eachChanged(t, withVector, func(t *testing.T, s *service, c customer) {
		reports := s.reportsKey(c)
		refused := func(method, path, secret string) {
			t.Helper()
			example := "access"
			if secret == c.secret {
				example = "accessReports"
			}
			s.send(method, path, bearer(secret)).fails(http.StatusForbidden, "ACCESS_NOT_ALLOWED").says("KeyNotAllowed", example)
		}
		for _, path := range []string{"/api/activity", "/api/calls", "/api/usage"} {
			s.get(path, bearer(reports)).is(http.StatusOK)
			s.send(http.MethodHead, path, bearer(reports)).is(http.StatusOK)
			s.get(path+"?limit=x", bearer(reports)).fails(http.StatusBadRequest, "INVALID_REQUEST")
			s.post(path, bearer(reports)).fails(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED").has("Allow", "GET, HEAD")
			refused(http.MethodGet, path+"?limit=x", c.secret)
			refused(http.MethodPost, path, c.secret)
		}
		for _, path := range []string{"/api/agents", "/api/authorize", "/api/authorize/v1", "/api/widget/introspect", "/api/nothing", "/api/activity/"} {
			refused(http.MethodGet, path, reports)
			refused(http.MethodPost, path, reports)
		}
		refused(http.MethodPost, "/api/widget/token", reports)
		for secret, access := range map[string]string{reports: "reports", c.secret: "agents"} {
			var key map[string]any
			if s.get("/api/key", bearer(secret)).is(http.StatusOK).into(&key); key["access"] != access {
				t.Errorf("access %v, want %s", key["access"], access)
			}
		}
		s.get("/api/activity", bearer(unknownKey)).fails(http.StatusUnauthorized, "UNAUTHORIZED")
	})
}

// withoutDelay lets reports have each activity immediately.
func withoutDelay(t *testing.T, s *service) *service {
	t.Helper()
	other := *s
	other.t, other.store = t, modelstest.Open(t, s.database, models.Options{Now: s.clock.Now, ReportDelay: -time.Hour})
	return other.start()
}

func TestActivityReport(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service, c customer) {
		reports := s.reportsKey(c)
		// The last 30 s are held back.
		s.get("/api/activity", bearer(reports)).is(http.StatusOK).isExactly(`{"activities":[],"next":null}`)
		s = withoutDelay(t, s)
		s.customer()
		type element struct {
			ID     uuid.UUID
			At     time.Time
			Action string
			Actor  map[string]any
			Detail *string
			Count  int

			AccountID uuid.UUID
		}
		var all, page struct {
			Activities []element
			Next       *string
		}
		s.get("/api/activity", bearer(reports)).is(http.StatusOK).into(&all)
		if len(all.Activities) != 3 || all.Activities[0].Action != "agent.created" || all.Activities[2].Action != "api_key.generated" {
			t.Fatalf("activities %+v", all.Activities)
		}
		if all.Activities[1].Detail != nil || *all.Activities[2].Detail != "Access: reports only" {
			t.Errorf("details %+v", all.Activities)
		}
		if actor := all.Activities[0].Actor; !maps.Equal(actor, map[string]any{"kind": "operator", "id": nil, "email": nil, "address": nil}) {
			t.Errorf("actor %v", actor)
		}
		var read []element
		for after := ""; ; after = "&after=" + *page.Next {
			s.get("/api/activity?limit=2"+after, bearer(reports)).is(http.StatusOK).into(&page)
			if read = append(read, page.Activities...); len(page.Activities) == 0 {
				break
			}
		}
		if len(read) != 3 || *page.Next != all.Activities[2].ID.String() || read[2].ID != all.Activities[2].ID {
			t.Errorf("page by page: %v, next %s", read, *page.Next)
		}
		from := url.QueryEscape(all.Activities[0].At.Format(time.RFC3339Nano))
		if s.get("/api/activity?to="+from, bearer(reports)).is(http.StatusOK).into(&page); len(page.Activities) != 0 {
			t.Errorf("before the first one: %v", page.Activities)
		}
		if s.get("/api/activity?from="+from, bearer(reports)).is(http.StatusOK).into(&page); len(page.Activities) != 3 {
			t.Errorf("from the first one on: %v", page.Activities)
		}
		for query, want := range map[string]int{"from=1970-01-01T00:00:00Z": 3, "from=0000-01-01T00:00:00Z": 3, "to=0001-01-01T00:00:00Z": 0} {
			if s.get("/api/activity?"+query, bearer(reports)).is(http.StatusOK).into(&page); len(page.Activities) != want {
				t.Errorf("%s: %d activities, want %d", query, len(page.Activities), want)
			}
		}
		lines := s.get("/api/activity?limit=1", bearer(reports), header("Accept", "application/x-ndjson")).is(http.StatusOK)
		if strings.Count(string(lines.body), "}\n") != 1 {
			t.Errorf("lines %s", lines.body)
		}
		lines.has("Link", "</api/activity?after="+all.Activities[0].ID.String()+"&limit=1>; rel=\"next\"")
		for accept, want := range map[string]string{
			"application/json;q=0.5, application/x-ndjson;q=0.4": "application/json; charset=utf-8",
			"application/x-ndjson;q=0.4, application/json;q=0.5": "application/json; charset=utf-8",
			"application/x-ndjson;q=0":                           "application/json; charset=utf-8",
			"*/*":                                                "application/json; charset=utf-8",
			"application/*":                                      "application/json; charset=utf-8",
			"application/json, application/x-ndjson":             "application/x-ndjson",
			"application/x-ndjson;q=0.9, */*;q=0.1":              "application/x-ndjson",
			"application/json;q=0.4, application/x-ndjson;q=0.5": "application/x-ndjson",
			"Application/X-NDJSON":                               "application/x-ndjson",
		} {
			s.get("/api/activity?limit=1", bearer(reports), header("Accept", accept)).is(http.StatusOK).has("Content-Type", want)
		}
		for _, query := range []string{"from=2026-01-01t00:00:00z", "from=2026-01-01T02:00:00%2B02:00", "from=2026-01-01T00:00:00-02:00"} {
			s.get("/api/activity?"+query, bearer(reports)).is(http.StatusOK)
		}
		unescaped := s.get("/api/activity?from=2026-01-01T00:00:00+02:00", bearer(reports))
		unescaped.fails(http.StatusBadRequest, "INVALID_REQUEST").says("InvalidRequest", "unescaped")
		for _, query := range []string{"limit=0", "limit=1001", "after=x", "after=", "from=yesterday", "to=1", "to=9999-12-31T23:59:59-01:00", "from=2026-01-01T00:00:00Z&from=2026-01-01T00:00:00Z"} {
			s.get("/api/activity?"+query, bearer(reports)).fails(http.StatusBadRequest, "INVALID_REQUEST")
		}

		if s.operate(http.MethodGet, "/operator/activity", "").is(http.StatusOK).into(&page); len(page.Activities) < 5 {
			t.Errorf("operators see %v", page.Activities)
		}
		s.operate(http.MethodGet, "/operator/activity?accountId="+c.accountID.String(), "").is(http.StatusOK).into(&page)
		if len(page.Activities) != 3 || page.Activities[0].AccountID != c.accountID {
			t.Errorf("operators see %v of the account", page.Activities)
		}
		// The place of another account's activity gives nothing of it.
		var foreign struct{ Activities []element }
		s.get("/api/activity?after="+uuid.Nil.String()[:35]+"1", bearer(reports)).is(http.StatusOK).into(&foreign)
		if len(foreign.Activities) != 3 {
			t.Errorf("from a place before all: %v", foreign.Activities)
		}
	})
}

func TestUsageReport(t *testing.T) {
	eachChanged(t, withVector, func(t *testing.T, s *service, c customer) {
		reports, other := s.reportsKey(c), s.customer()
		now := s.clock.Now().UTC().Truncate(time.Second)
		today, before := now.Truncate(value.Day), now.Truncate(value.Day).Add(-3*value.Day)
		s.store.Usage.Add(c.key, keys.Source{}, before.Add(time.Hour), 5, 2)
		s.store.Usage.Add(other.key, keys.Source{}, before.Add(time.Hour), 50, 20)
		for i, total := range []string{"0, 0", "1, 30", "0, 60"} {
			modelstest.Exec(t, s.database, fmt.Sprintf("INSERT INTO call_totals (subject_id, day, calls, seconds) VALUES ('%s', '%s 00:00:00+00:00', %s)",
				c.key.ID, before.Add(time.Duration(i-1)*value.Day).Format(time.DateOnly), total))
		}
		s.get("/api/agents", bearer(c.secret)).is(http.StatusOK)
		type day struct {
			Day                               string
			KeyID                             uuid.UUID
			Requests, Refused, Calls, Seconds int
		}
		var list struct {
			Usage []day
			Next  *string
		}
		modelstest.Eventually(t, "the usage is written", func() bool {
			days := modelstest.Value(s.store.Usage.Days(t.Context(), c.accountID, keys.DayPage{KeyID: c.key.ID, Limit: 10}))(t)
			return len(days) == 3 && days[0].Requests == 5 && days[2].Requests == 1
		})
		s.get("/api/usage?keyId="+c.key.ID.String(), bearer(reports)).is(http.StatusOK).into(&list)
		want := []day{
			{before.Format(time.DateOnly), c.key.ID, 5, 2, 1, 30},
			{before.Add(value.Day).Format(time.DateOnly), c.key.ID, 0, 0, 0, 60},
			{today.Format(time.DateOnly), c.key.ID, 1, 0, 0, 0},
		}
		if !slices.Equal(list.Usage, want) {
			t.Errorf("%+v, want %+v", list.Usage, want)
		}
		s.get("/api/usage?limit=1", bearer(reports)).is(http.StatusOK).into(&list)
		s.get("/api/usage?limit=1&after="+*list.Next, bearer(reports)).is(http.StatusOK).into(&list)
		if len(list.Usage) != 1 || list.Usage[0] != want[1] {
			t.Errorf("the second page: %+v", list.Usage)
		}
		s.get("/api/usage?to="+before.Add(time.Second).Format(time.RFC3339), bearer(reports)).is(http.StatusOK).into(&list)
		if len(list.Usage) != 1 || list.Usage[0] != want[0] {
			t.Errorf("to the first second of the day: %+v", list.Usage)
		}
		s.get("/api/usage?keyId="+c.key.ID.String()+"&to="+today.Format(time.RFC3339)+"&from="+before.Add(time.Second).Format(time.RFC3339), bearer(reports)).is(http.StatusOK).into(&list)
		if len(list.Usage) != 1 || list.Usage[0] != want[1] {
			t.Errorf("from the second second of the day: %+v", list.Usage)
		}
		s.get("/api/usage?after=x", bearer(reports)).fails(http.StatusBadRequest, "INVALID_REQUEST")

		account := "/operator/accounts/" + c.accountID.String() + "/usage"
		s.operate(http.MethodGet, account+"?limit=2", "").is(http.StatusOK).into(&list)
		if !slices.Equal(list.Usage, want[:2]) {
			t.Errorf("the operator's first page: %+v", list.Usage)
		}
		// The reports key may have usage too by now, on the same day.
		s.operate(http.MethodGet, account+"?limit=1&after="+*list.Next, "").is(http.StatusOK).into(&list)
		if !slices.Equal(list.Usage, want[2:]) {
			t.Errorf("the operator's second page: %+v", list.Usage)
		}
		s.operate(http.MethodGet, account+"?after=x", "").fails(http.StatusBadRequest, "INVALID_REQUEST")
		s.operate(http.MethodGet, "/operator/accounts/"+uuid.NewString()+"/usage", "").fails(http.StatusNotFound, "ACCOUNT_NOT_FOUND")

		var calls struct{ Calls []map[string]any }
		s.report(other, "a", now.Add(-40*time.Second), 30)
		s.get("/api/calls", bearer(s.reportsKey(other))).is(http.StatusOK).into(&calls)
		if len(calls.Calls) != 1 || len(calls.Calls[0]) != 10 || calls.Calls[0]["seconds"] != 30.0 {
			t.Errorf("calls %v", calls.Calls)
		}
	})
}

// One account's reports have a limit of their own, even without one for keys.
func TestReportsAreLimitedByAccount(t *testing.T) {
	s := newService(t, modelstest.SQLiteURL(t))
	c, other := s.customer(), s.customer()
	first, second := s.reportsKey(c), s.reportsKey(c)
	for range 50 {
		s.get("/api/usage", bearer(first)).is(http.StatusOK)
		s.get("/api/activity", bearer(second)).is(http.StatusOK)
	}
	s.get("/api/usage", bearer(second)).fails(http.StatusTooManyRequests, "RATE_LIMITED").says("ReportLimited", "rate")
	s.get("/api/usage", bearer(s.reportsKey(other))).is(http.StatusOK)
}

func TestTwoReportsOfAnAccountRunAtATime(t *testing.T) {
	t.Parallel()
	s := newService(t, modelstest.PostgresURL(t))
	c := s.customer()
	reports := s.reportsKey(c)
	lock := modelstest.Value(modelstest.OpenDatabase(t, s.database).BeginTx(t.Context(), nil))(t)
	defer func() { _ = lock.Rollback() }()
	modelstest.Value(lock.ExecContext(t.Context(), "LOCK TABLE calls, activities, api_key_days IN ACCESS EXCLUSIVE MODE"))(t)
	answers := make(chan answer, 3)
	for _, path := range []string{"/api/usage", "/api/usage", "/api/activity"} {
		go func() { answers <- s.get(path, bearer(reports)) }()
	}
	first := <-answers
	first.fails(http.StatusTooManyRequests, "RATE_LIMITED").says("ReportLimited", "running")
	first.has("Retry-After", "1")
	modelstest.Must(t, lock.Rollback())
	for range 2 { // they may have waited too long
		if other := <-answers; other.status == http.StatusTooManyRequests {
			t.Error("more than one report was refused")
		}
	}
	s.get("/api/usage", bearer(reports)).is(http.StatusOK)
}
