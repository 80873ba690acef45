package models_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/agents"
	"portal/models/calls"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/secret"
	"portal/models/value"
	"portal/models/webhooks"
)

// No statement reads a whole table that grows: each reads through an index with a condition, or a
// page of a list in the order of an index.
func TestStatementsUseIndexes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		seen := &modelstest.QueryLog{}
		f.Store = f.Open(t, everything(t))
		f.useEverything(t, f.WithQueryHook(seen))
		if len(seen.All) < 60 {
			t.Errorf("only %d statements", len(seen.All))
		}
		for _, statement := range seen.All {
			for _, scan := range f.scans(t, statement) {
				t.Errorf("%s\n\t%s", scan, statement)
			}
		}
	})
}

// The work of a report and of the purge does not grow with the keys that have ended. If an account
// has too many for one, the report has those that ended last.
func TestReportsDoNotReadAllEndedKeys(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		for _, ended := range []struct {
			keys int
			ago  time.Duration
		}{{5000, 3 * time.Hour}, {keys.MaxUsageKeys - 2, 2 * time.Hour}, {1, time.Hour}} {
			f.ManyKeys(t, c, ended.keys)
			f.Exec(t, "UPDATE api_keys SET revoked_at = ? WHERE account_id = ? AND revoked_at IS NULL", f.Clock.Now().Add(-ended.ago), c.ID)
		}
		active, _ := f.Key(t, c)
		left := f.Owner(t, c) // the purge looks whether the user has generated a key
		f.Exec(t, "UPDATE users SET removed_at = ? WHERE id = ?", f.Clock.Now().Add(-500*value.Day), left.ID)
		f.Exec(t, "UPDATE api_keys SET created_by = ? WHERE id = ?", left.ID, active.ID)
		hour := f.Clock.Now().Add(-value.Day).Truncate(time.Hour)
		f.Exec(t, "INSERT INTO api_key_last_uses (api_key_id, hour, requests) SELECT id, ?, 1 FROM api_keys", hour)
		f.Exec(t, "INSERT INTO api_key_daily_usage (api_key_id, day, requests) SELECT id, ?, 1 FROM api_keys", hour.Truncate(value.Day))
		seen := &modelstest.QueryLog{}
		s := f.WithQueryHook(seen)
		report := modelstest.Value(s.Usage.OfAccount(ctx, c.ID, keys.Days(90)))(t)
		if len(report) != keys.MaxUsageKeys || report[0].ID != active.ID {
			t.Errorf("%d keys, the first one is %s", len(report), report[0].Label)
		}
		for _, key := range report {
			if key.RevokedAt != nil && key.RevokedAt.Before(f.Clock.Now().Add(-2*time.Hour)) {
				t.Fatalf("key %s, which ended first, is in the report", key.Label)
			}
		}
		must(t, errOf(s.Keys.Active(ctx, c.ID)))
		must(t, errOf(s.Keys.Revoked(ctx, c.ID, value.Page{Limit: 50})))
		must(t, errOf(s.Usage.OfList(ctx, c.ID, keys.Days(30), time.Now().Add(-value.Day), 4)))
		page := modelstest.Value(s.Usage.Days(ctx, c.ID, keys.DayPage{Limit: 100}))(t)
		must(t, errOf(s.Usage.Days(ctx, c.ID, keys.DayPage{Limit: 100, After: page[99].Place(), Until: f.Clock.Now()})))
		must(t, errOf(s.Usage.Days(ctx, c.ID, keys.DayPage{Limit: 100, KeyID: active.ID})))
		must(t, s.Erasures.Purge(ctx))
		for _, statement := range seen.All {
			if n := f.keysRead(t, statement); n > keys.MaxUsageKeys+1 {
				t.Errorf("it reads %d keys: %s", n, statement)
			}
		}
	})
}

// The work of a page of calls does not grow with the other calls of its key and of its agent.
func TestCallsOfAKeyWithAnAgentHaveAnIndex(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.SQLiteURL(t), models.Options{})
	seen := &modelstest.QueryLog{}
	page := calls.CallPage{AccountID: newID(), KeyID: newID(), AgentID: newID(), Limit: 10}
	must(t, errOf(f.WithQueryHook(seen).Calls.List(t.Context(), page)))
	if plan := f.sqlitePlan(t, seen.All[0]); !strings.Contains(plan[0], "calls_agent_key (agent_id=? AND api_key_id=?)") {
		t.Errorf("the plan is %q", plan)
	}
}

// A claim does not look at endpoints where nothing is due, nor does one endpoint's backlog hide the
// delivery of another.
func TestClaimsDoNotLookAtIdleEndpoints(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, now := t.Context(), f.Clock.Now()
		seen := &modelstest.QueryLog{}
		s := f.Open(t, models.Options{Webhooks: &webhooks.Guard{}, Keyring: modelstest.Value(secret.NewKeyring(strings.Repeat("secret", 8), ""))(t)})
		insert := func(rows any) {
			t.Helper()
			must(t, errOf(f.DB.NewInsert().Model(rows).Exec(ctx)))
		}
		endpoints := make([]webhooks.Endpoint, 300)
		c := f.Customer(t)
		for i := range endpoints {
			endpoints[i] = webhooks.Endpoint{ID: newID(), AccountID: c.ID, URL: "https://example.com/", Groups: []record.EventGroup{record.GroupKeys}, CreatedAt: now, KeyID: make([]byte, 8), Secret: []byte{}}
		}
		insert(&endpoints)
		busy, other := endpoints[10], endpoints[20]
		wait := func(e webhooks.Endpoint, n int, due time.Time) {
			t.Helper()
			for range n / 500 {
				deliveries := make([]webhooks.Delivery, 500)
				for i := range deliveries {
					deliveries[i] = webhooks.Delivery{EndpointID: e.ID, EventID: newID(), Event: record.EventTest, AccountID: e.AccountID, CreatedAt: now, DueAt: &due}
				}
				insert(&deliveries)
			}
			f.Exec(t, "ANALYZE webhook_deliveries")
		}
		claim := func(want webhooks.Endpoint, turn webhooks.Turn) {
			t.Helper()
			seen.All = nil
			content, err := s.WithQueryHook(seen).Webhooks.Claim(ctx, turn)
			if err != nil || content.EndpointID != want.ID {
				t.Errorf("claimed for %s, want %s, error %v", content.EndpointID, want.ID, err)
			}
			for _, statement := range seen.All {
				if n := f.endpointsRead(t, statement); n > 5 {
					t.Errorf("it reads %d endpoints: %s", n, statement)
				}
			}
		}
		wait(endpoints[30], 500, now.Add(time.Hour)) // for a retry
		wait(busy, 500, now.Add(-time.Hour))
		claim(busy, webhooks.Turn{})
		wait(other, 500, now.Add(-time.Minute))
		claim(busy, webhooks.Turn{})
		for _, backlog := range []int{0, 10_000} {
			wait(busy, backlog, now.Add(-time.Hour))
			claim(other, webhooks.Turn{Served: []uuid.UUID{busy.ID}})
			claim(other, webhooks.Turn{Endpoints: []uuid.UUID{busy.ID}, Served: []uuid.UUID{other.ID}})
			claim(busy, webhooks.Turn{Served: []uuid.UUID{busy.ID, other.ID}})
			for _, turn := range []webhooks.Turn{{Endpoints: []uuid.UUID{busy.ID, other.ID}}, {Accounts: []uuid.UUID{c.ID}}} {
				if _, err := s.Webhooks.Claim(ctx, turn); !errors.Is(err, value.ErrNoDelivery) {
					t.Errorf("%+v: %v", turn, err)
				}
			}
		}
	})
}

// endpointsRead returns how many endpoints the busiest part of a statement reads.
func (f *fixture) endpointsRead(t *testing.T, statement string) int {
	t.Helper()
	return f.rowsRead(t, statement, "webhook_endpoints", func(step string) bool { return strings.HasPrefix(step, "SCAN endpoint") })
}

// keysRead returns how many keys, or days of keys, the busiest part of a statement reads, or all if
// it reads all of an account.
func (f *fixture) keysRead(t *testing.T, statement string) int {
	t.Helper()
	keys := f.rowsRead(t, statement, "api_keys", func(step string) bool {
		return strings.Contains(step, "INDEX api_keys_account (account_id=?)") || strings.HasPrefix(step, "SCAN api_key")
	})
	if !strings.Contains(statement, "api_key_days") {
		return keys
	}
	days := f.rowsRead(t, statement, "api_key_days", func(step string) bool {
		return strings.HasSuffix(step, "PRIMARY KEY (account_id=?)") || strings.Contains(step, "TEMP B-TREE")
	})
	return max(keys, days, f.rowsRead(t, statement, "api_key_daily_usage", func(string) bool { return false }))
}

// rowsRead returns how many rows of a table the busiest part of a statement reads. With SQLite, it
// is the number of all if there is a step that reads too many.
func (f *fixture) rowsRead(t *testing.T, statement, table string, tooMany func(step string) bool) (most int) {
	t.Helper()
	if !f.Postgres() {
		if slices.ContainsFunc(f.sqlitePlan(t, statement), tooMany) {
			return f.Count(t, "SELECT count(*) FROM "+table)
		}
		return 0
	}
	f.Exec(t, "ANALYZE "+table)
	f.postgresPlan(t, "EXPLAIN (ANALYZE, FORMAT JSON) "+statement).each(false, func(node plan, _ bool) {
		if node.Table == table {
			most = max(most, int((node.Rows+node.Removed)*node.Loops))
		}
	})
	return most
}

// useEverything calls the methods that read or change rows of tables that grow.
func (f *fixture) useEverything(t *testing.T, s *models.Store) {
	t.Helper()
	ctx, c := t.Context(), f.Customer(t)
	invited := f.use(t, s, c)
	must(t, s.Erasures.BeginUser(ctx, c.ID, invited.ID, c.Actor))
	must(t, s.Accounts.SetDisabled(ctx, c.ID, true, c.Actor))
	must(t, s.Erasures.Finish(ctx))
	must(t, s.Erasures.BeginAccount(ctx, c.ID))
	must(t, s.Erasures.Finish(ctx))
}

// use is useEverything for a customer, but for erasures. It returns another user of the account,
// who has left.
func (f *fixture) use(t *testing.T, s *models.Store, c customer) (invited people.User) {
	t.Helper()
	ctx := t.Context()
	endpoint, _, err := s.Webhooks.Add(ctx, c.ID, "https://example.com/", record.EventGroups, c.Actor)
	must(t, err)
	key, secret := f.Key(t, c)
	_, leaked := f.Key(t, c)
	expiring, _ := f.Key(t, c)
	f.Exec(t, "UPDATE api_keys SET expires_at = ?, lifetime = ? WHERE id = ?", f.Clock.Now().Add(time.Hour), 30*value.Day, expiring.ID)
	agent, other := f.Agent(t, c), f.Agent(t, c)
	page := value.Page{Limit: 10}
	token := f.Session(t, c)
	f.Clock.Advance(10 * time.Minute)
	session := modelstest.Value(s.Sessions.Find(ctx, token, people.Client{Address: "203.0.113.9"}))(t)
	user := modelstest.Value(s.SignIn.VerifyPassword(ctx, c.User.Email, password, people.Client{Address: "203.0.113.9"}))(t)
	must(t, errOf(s.SignIn.Start(ctx, user, people.Client{})))
	s.Agents.Used(c.ID, agent.ID, key.ID)
	must(t, errOf(s.Agents.UsedBy(ctx, c.ID, key.ID)))
	must(t, s.Sessions.Flush(ctx))
	must(t, s.Agents.Flush(ctx))
	invited = modelstest.Value(s.People.Add(ctx, c.ID, people.NewUser{Email: uuid.NewString() + "@example.com", Role: people.RoleMember}, c.Actor))(t)
	link := modelstest.Value(s.SignIn.CreateLink(ctx, c.ID, invited.ID, c.Actor))(t)
	must(t, errOf(s.SignIn.LinkUser(ctx, link.Token)))
	modelstest.Value(s.SignIn.UseLink(ctx, link.Token, people.Client{}))(t)
	must(t, errOf(s.SignIn.CreateLinkFor(ctx, c.ID, people.NewUser{Email: modelstest.NewEmail(), Role: people.RoleMember}, c.Actor)))
	invitation, _, err := s.Invitations.Create(ctx, c.ID, modelstest.NewEmail(), people.RoleMember, c.Actor)
	must(t, err)
	_, invitationToken, err := s.Invitations.Create(ctx, c.ID, modelstest.NewEmail(), people.RoleOwner, c.Actor)
	must(t, err)
	must(t, modelstest.Accept(ctx, s, invitationToken, password))
	must(t, errOf(s.People.SetRole(ctx, c.ID, invited.ID, people.RoleOwner, c.Actor)))
	must(t, errOf(s.People.SetRole(ctx, c.ID, invited.ID, people.RoleMember, c.Actor)))
	_, _, err = s.Agents.Put(ctx, c.ID, agent.ID, "Renamed", nil, c.Actor)
	must(t, err)
	_, _, err = s.Agents.Put(ctx, c.ID, uuid.New(), "Front desk", nil, c.Actor)
	must(t, err)
	must(t, s.Credentials.RequestPasswordReset(ctx, f.Customer(t).User.Email, people.Client{Address: "203.0.113.9"}))
	must(t, s.Credentials.RequestEmailChange(ctx, session, password, modelstest.NewEmail(), c.Actor))
	must(t, s.Outbox.WarnOfExpiry(ctx))
	must(t, s.Unused.SetLifetime(ctx, c.ID, 90*value.Day, c.Actor))
	must(t, s.Unused.Revoke(ctx))
	must(t, s.Keys.RecordExpiry(ctx))
	for mail, token, err := s.Outbox.Claim(ctx); !errors.Is(err, value.ErrNoMail); mail, token, err = s.Outbox.Claim(ctx) {
		must(t, err)
		must(t, errOf(s.Outbox.Failed(ctx, mail, false)))
		must(t, s.Outbox.Sent(ctx, mail))
		if mail.Kind == record.MailEmailConfirmation {
			must(t, errOf(s.Credentials.NewEmail(ctx, token)))
			must(t, s.Credentials.ChangeEmail(ctx, modelstest.Value(s.Credentials.ConfirmEmail(ctx, token, ""))(t), c.User.Email))
		}
		if mail.Kind == record.MailPasswordForgotten {
			must(t, errOf(s.Credentials.PasswordResetUser(ctx, token)))
			must(t, errOf(s.Credentials.UsePasswordReset(ctx, token, "four words of another kind", people.Client{})))
		}
	}
	must(t, errOf(s.Outbox.Waiting(ctx)))
	must(t, errOf(s.Backlog(ctx)))
	event := modelstest.Joined(agent, key, 1)
	event.CreatedAt = f.Clock.Now()
	must(t, s.Calls.Report(ctx, event))
	must(t, s.Calls.Report(ctx, modelstest.Left(event, f.Clock.Now().Add(time.Minute), "CLIENT_INITIATED")))
	must(t, errOf(s.Calls.Open(ctx, key.AccountID, key.ID)))
	must(t, errOf(s.Calls.OpenOfAgent(ctx, agent.AccountID, agent.ID)))
	must(t, errOf(s.Calls.CountOpen(ctx)))
	must(t, errOf(s.Calls.Used(ctx, c.ID, key.ID)))
	must(t, errOf(s.Calls.UsedByKeys(ctx, c.ID, []uuid.UUID{key.ID})))
	must(t, errOf(s.Calls.SecondsByKey(ctx, []uuid.UUID{key.ID}, f.Clock.Now())))
	must(t, errOf(s.Calls.SecondsByDay(ctx, key.ID, f.Clock.Now())))
	list := modelstest.Value(s.Calls.List(ctx, calls.CallPage{AccountID: c.ID, Limit: 10}))(t)
	for _, selected := range []calls.CallPage{
		{},
		{AccountID: c.ID, KeyID: key.ID},
		{AccountID: c.ID, AgentID: agent.ID},
		{AccountID: c.ID, From: f.Clock.Now(), After: list[0].Place()},
		{OldestFirst: true, After: list[0].Place()},
	} {
		selected.Limit = 10
		must(t, errOf(s.Calls.List(ctx, selected)))
	}
	must(t, errOf(s.Calls.End(ctx, c.ID, list[0].ID, c.Actor)))
	must(t, errOf(s.Accounts.SetLimits(ctx, c.ID, value.Limits{Calls: 5, MinutesPerMonth: 1}, record.Operator())))
	caller := modelstest.Value(s.API.Authenticate(ctx, secret, keys.Source{}))(t)
	f.Exec(t, "UPDATE call_rounds SET listed_at = NULL")
	must(t, s.API.CheckCalls(ctx, caller))
	event = modelstest.Joined(agent, key, 2)
	event.CreatedAt = f.Clock.Now()
	must(t, s.Calls.Report(ctx, event))
	eventually(t, "a round runs", func() bool {
		f.Exec(t, "UPDATE call_rounds SET listed_at = NULL")
		return modelstest.Value(s.Calls.RunRound(ctx, true))(t)
	})
	replacement := form("rotated")
	replacement.Replaces = key.ID
	for _, err := range []error{
		errOf(s.Keys.Active(ctx, c.ID)),
		errOf(s.Keys.Find(ctx, c.ID, key.ID)),
		errOf(s.Keys.FindAsOperator(ctx, key.ID)),
		errOf(s.Keys.FindBySecret(ctx, secret)),
		errOf(s.Leaks.Revoke(ctx, []keys.LeakedText{keys.NewLeakedText(leaked, "")}, record.LeakGitHub, "")),
		errOf(s.Keys.Rename(ctx, c.ID, key.ID, "renamed", c.Actor)),
		errOf(s.Keys.All(ctx, c.ID, page)),
		errOf(s.Keys.All(ctx, c.ID, value.Page{Limit: 10, After: key.ID})),
		errOf(s.Agents.List(ctx, c.ID, page)),
		errOf(s.Agents.List(ctx, c.ID, value.Page{Limit: 10, After: agent.ID})),
		errOf(s.Agents.ReachedBy(ctx, keys.Principal{AccountID: c.ID}, page)),
		errOf(s.Agents.Find(ctx, c.ID, agent.ID)),
		errOf(s.Agents.LastUsed(ctx, c.ID, agent.ID)),
		errOf(s.Agents.Create(ctx, c.ID, agents.NewAgent{Name: "Front desk", FormID: uuid.New()}, c.Actor)),
		errOf(s.Agents.Remove(ctx, c.ID, other.ID, c.Actor)),
		errOf(s.Accounts.List(ctx, page)),
		errOf(s.Accounts.List(ctx, value.Page{Limit: 10, After: c.ID})),
		errOf(s.Accounts.Find(ctx, c.ID)),
		errOf(s.Accounts.FindByEmail(ctx, c.User.Email)),
		errOf(s.People.List(ctx, c.ID, page)),
		errOf(s.People.List(ctx, c.ID, value.Page{Limit: 10, After: c.User.ID})),
		errOf(s.Invitations.Pending(ctx, c.ID)),
		errOf(s.Invitations.Cancel(ctx, c.ID, invitation.ID, c.Actor)),
		errOf(s.Keys.Creator(ctx, c.ID, key.ID)),
		errOf(s.Keys.GeneratedBy(ctx, c.ID, c.User.ID)),
		errOf(s.Sessions.List(ctx, c.ID, c.User.ID)),
		errOf(s.Sessions.Peek(ctx, token)),
		errOf(s.Usage.Of(ctx, c.ID, keys.Hours(24), key.ID)),
		errOf(s.Usage.Of(ctx, c.ID, keys.Days(30), key.ID)),
		errOf(s.Usage.OfList(ctx, c.ID, keys.Days(30), f.Clock.Now().Add(-value.Day), 4)),
		errOf(s.Usage.Sources(ctx, c.ID, key.ID)),
		errOf(s.Usage.OfAccount(ctx, c.ID, keys.Hours(24))),
		errOf(s.Usage.OfAccount(ctx, c.ID, keys.Days(90))),
		errOf(s.Webhooks.List(ctx, c.ID)),
		errOf(s.Webhooks.Deliveries(ctx, c.ID, newID())),
		s.Webhooks.Finish(ctx, webhooks.Delivery{AccountID: c.ID, EndpointID: endpoint.ID, Attempts: 1}, webhooks.DeliveryResult{}),
		errOf(s.Webhooks.Claim(ctx, webhooks.Turn{Endpoints: []uuid.UUID{newID()}, Accounts: []uuid.UUID{newID()}, Served: []uuid.UUID{newID()}})),
		s.Webhooks.Resend(ctx, c.ID, endpoint.ID, newID(), "x"),
		s.Webhooks.Disable(ctx, c.ID, endpoint.ID, c.Actor),
		s.Webhooks.Remove(ctx, c.ID, endpoint.ID, c.Actor),
		errOf(s.Activity.List(ctx, c.ID, record.ActivityPage{Limit: 10})),
		errOf(s.Activity.Report(ctx, record.ActivityReport{AccountID: c.ID, Limit: 10, From: f.Clock.Now(), Until: f.Clock.Now()})),
		errOf(s.Activity.Report(ctx, record.ActivityReport{Limit: 10, After: newID()})),
		errOf(s.Usage.Days(ctx, c.ID, keys.DayPage{Limit: 10, KeyID: key.ID, Until: f.Clock.Now()})),
		errOf(s.Usage.Days(ctx, c.ID, keys.DayPage{Limit: 10, After: keys.DayPlace{Day: f.Clock.Now(), KeyID: key.ID}})),
		errOf(s.Activity.List(ctx, c.ID, record.ActivityPage{Limit: 10, Before: newID(), KeyID: key.ID, From: f.Clock.Now()})),
		errOf(s.Activity.List(ctx, c.ID, record.ActivityPage{Limit: 10, Search: "renamed", ActorKind: record.ActorUser, ActorID: c.User.ID, Actions: []record.Action{record.ActionKeyRenamed}})),
		s.Sessions.RevokeOthers(ctx, c.ID, c.User.ID, session.ID, c.Actor),
		s.Sessions.Revoke(ctx, c.ID, c.User.ID, session.ID, c.Actor),
		s.People.Remove(ctx, c.ID, invited.ID, c.Actor),
		s.Erasures.Purge(ctx),
	} {
		checkError(t, "a method", err, nil)
	}
	_, _, err = s.Keys.Generate(ctx, c.ID, replacement, c.Actor)
	must(t, err)
	must(t, errOf(s.Keys.Replacement(ctx, c.ID, key.ID)))
	must(t, errOf(s.Keys.Revoke(ctx, c.ID, key.ID, "", c.Actor)))
	must(t, errOf(s.Keys.FindDurable(ctx, c.ID, key.ID)))
	must(t, errOf(s.Keys.Revoked(ctx, c.ID, value.Page{Limit: 10})))
	_, _, err = s.Keys.Choices(ctx, c.ID, key.ID, 10)
	must(t, err)
	must(t, errOf(s.Usage.OfList(ctx, c.ID, keys.Days(30), time.Now().Add(-value.Day), 4)))
	must(t, errOf(s.Keys.Revoked(ctx, c.ID, value.Page{After: key.ID, Limit: 10})))
	return invited
}

// smallTables do not grow with the number of customers or with time.
var smallTables = []string{"auth_epoch", "call_rounds", "outbox"}

// smallIndexes have only rows of what goes on now, or of webhooks that were just removed.
var smallIndexes = regexp.MustCompile("webhook_endpoints_removed|calls_open|calls_unsettled|calls_unrecorded|api_keys_limited|accounts_limited")

// scans returns the parts of a statement's plan that read a whole table.
func (f *fixture) scans(t *testing.T, statement string) []string {
	t.Helper()
	if f.Postgres() {
		return f.postgresScans(t, statement)
	}
	var found []string
	for _, detail := range f.sqlitePlan(t, statement) {
		table, isScan := strings.CutPrefix(detail, "SCAN ")
		table, _, byIndex := strings.Cut(table, " USING ")
		// The tables "seen", "part", "ended", "leaked", "_data" and "CONSTANT ROW" are in
		// the statement itself. SQLite reads a page of all accounts in the order of the
		// table, which has no other order.
		small := slices.Contains(append(smallTables, "seen", "part", "ended", "leaked", "_data", "r", "e", "o"), table) || strings.Contains(table, "CONSTANT ROW") || smallIndexes.MatchString(detail)
		page := strings.Contains(statement, "LIMIT") && (byIndex || table == "account" || table == "accounts") ||
			// Its rows were selected before.
			strings.Contains(statement, "LIMIT 10) AS "+table)
		if isScan && !small && !page {
			found = append(found, detail)
		}
	}
	return found
}

// sqlitePlan returns the steps of a statement.
func (f *fixture) sqlitePlan(t *testing.T, statement string) (steps []string) {
	t.Helper()
	rows, err := f.DB.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement)
	if err != nil {
		t.Fatalf("%v: %s", err, statement)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		must(t, rows.Scan(&id, &parent, &unused, &detail))
		steps = append(steps, detail)
	}
	must(t, rows.Err())
	return steps
}

// plan is a node of PostgreSQL's EXPLAIN (FORMAT JSON).
type plan struct {
	Type      string `json:"Node Type"`
	Table     string `json:"Relation Name"`
	Index     string `json:"Index Name"`
	Condition string `json:"Index Cond"`
	Filter    string
	Plans     []plan

	// With ANALYZE: the rows that the node returns and drops, each time that it runs.
	Rows    float64 `json:"Actual Rows"`
	Removed float64 `json:"Rows Removed by Filter"`
	Loops   float64 `json:"Actual Loops"`
}

// postgresPlan makes the planner use a sequential scan only where no index serves, because the
// tables of a test are small.
func (f *fixture) postgresPlan(t *testing.T, explain string) plan {
	t.Helper()
	tx := modelstest.Value(f.DB.BeginTx(t.Context(), nil))(t)
	defer func() { _ = tx.Rollback() }()
	must(t, errOf(tx.ExecContext(t.Context(), "SET LOCAL enable_seqscan = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_hashjoin = off")))
	var text []byte
	if err := tx.QueryRowContext(t.Context(), explain).Scan(&text); err != nil {
		t.Fatalf("%v: %s", err, explain)
	}
	var plans []struct{ Plan plan }
	must(t, json.Unmarshal(text, &plans))
	return plans[0].Plan
}

func (f *fixture) postgresScans(t *testing.T, statement string) (found []string) {
	t.Helper()
	f.postgresPlan(t, "EXPLAIN (FORMAT JSON) "+statement).each(false, func(node plan, limited bool) {
		if node.Table == "" || slices.Contains(smallTables, node.Table) || smallIndexes.MatchString(node.Index) {
			return
		}
		whole := node.Type == "Seq Scan" || strings.HasPrefix(node.Type, "Index") && node.Condition == "" && (!limited || node.Filter != "")
		if whole {
			found = append(found, node.Type+" of "+node.Table+" with "+node.Index)
		}
	})
	return found
}

// each calls visit with every node, and whether a limit is above it.
func (p plan) each(limited bool, visit func(node plan, limited bool)) {
	visit(p, limited)
	for _, child := range p.Plans {
		child.each(limited || p.Type == "Limit", visit)
	}
}
