package erasure_test

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/database"
	"portal/models/erasure"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/usage"
	"portal/models/value"
	"portal/models/webhooks"
)

const evesAddress = "198.51.100.9"

// eve adds a person to the account who leaves something in as many places as possible, and returns
// the user and texts that an erasure removes.
func (f *fixture) eve(t *testing.T, c customer) (eve people.User, traces []string) {
	t.Helper()
	ctx := t.Context()
	client := people.Client{Address: evesAddress, UserAgent: "Eves browser"}
	_, token := f.Invite(t, c, "Eve@Example.org", people.RoleMember)
	must(t, errOf(f.Invitations.Accept(ctx, token, "Tr0ub4dor & four", client)))
	eve = modelstest.Value(f.People.FindByEmail(ctx, "eve@example.org"))(t)
	_, _ = f.SignIn.VerifyPassword(ctx, eve.Email, "a wrong password of hers", client)
	signedIn := modelstest.Value(f.SignIn.Start(ctx, eve, client))(t)
	session := modelstest.Value(f.Sessions.Find(ctx, signedIn.Token, client))(t)
	actor := record.UserActor(eve.ID, evesAddress)
	f.Passkey(t, session, actor)
	must(t, f.Sessions.End(ctx, c.ID, session.ID, actor))
	must(t, f.Credentials.ChangeEmail(ctx, eve.Email, "eve.new@example.org"))
	eve.Email = "eve.new@example.org"
	key, _ := f.Generate(t, c, form("Key of EVE.NEW@example.org"), actor)
	must(t, errOf(f.Keys.Rename(ctx, c.ID, key.ID, "eve.new@example.org, her key", actor)))
	must(t, errOf(f.Keys.Revoke(ctx, c.ID, key.ID, "eve@example.org. She left. Ask steve@example.org.", c.Actor)))
	must(t, f.Accounts.Rename(ctx, c.ID, "eve@example.org and friends", c.Actor))
	must(t, f.Credentials.RequestPasswordReset(ctx, eve.Email, client))
	f.outside(t, c, eve, key)
	modelstest.Eventually(t, "the wrong password is recorded", func() bool {
		return len(f.Recorded(t, c, record.ActionSignInFailed)) > 0
	})
	return eve, []string{"eve@", "Eve@", "EVE.NEW", "eve.new", "Eve.New%40", evesAddress, "Eves browser"}
}

// outside stores texts of others that have the email and the address of eve: the URL of a webhook,
// what its receiver has answered, and why the exchange of a token was refused.
func (f *fixture) outside(t *testing.T, c customer, eve people.User, key keys.Key) {
	t.Helper()
	endpoint := webhooks.Endpoint{
		ID: newID(), AccountID: c.ID, URL: "https://hooks.example/?to=Eve.New%40example.org&and=steve%40example.org", Groups: record.EventGroups,
		CreatedAt: f.Clock.Now(), Secret: []byte{}, KeyID: make([]byte, 8),
	}
	must(t, errOf(f.DB.NewInsert().Model(&endpoint).Exec(t.Context())))
	ofEve := f.Activities(t, c)[0]
	ofEve.ID, ofEve.ActorKind, ofEve.ActorID = newID(), record.ActorUser, &eve.ID
	must(t, errOf(f.DB.NewInsert().Model(&ofEve).Exec(t.Context())))
	for id, response := range map[uuid.UUID]string{
		ofEve.ID: `{"address":"` + evesAddress + `"}`, newID(): "Thanks, steve@example.org and eve@example.org!",
	} {
		must(t, errOf(f.DB.NewInsert().Model(&webhooks.Delivery{
			EndpointID: endpoint.ID, EventID: id, Event: "api_key.generated", AccountID: c.ID, CreatedAt: f.Clock.Now(), Status: 400, Response: response,
		}).Exec(t.Context())))
	}
	must(t, errOf(f.DB.NewInsert().Model(&keys.Exchange{
		ID: newID(), KeyID: key.ID, At: f.Clock.Now(), Reason: "email is eve@example.org", Address: "192.0.2.1",
	}).Exec(t.Context())))
}

// holds returns those of the texts that the database has.
func (f *fixture) holds(t *testing.T, texts []string) (found []string) {
	t.Helper()
	dump := strings.ReplaceAll(f.Dump(t), "steve@example.org", "")
	for _, text := range texts {
		if strings.Contains(dump, text) {
			found = append(found, text)
		}
	}
	return found
}

func TestUserIsErased(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		s := f.Open(t, models.Options{Mail: true})
		f.Store = s
		c, other := f.Customer(t), f.Customer(t)
		eve, traces := f.eve(t, c)
		if found := f.holds(t, traces); len(found) != len(traces) {
			t.Errorf("before the erasure the database holds only %q", found)
		}
		checkError(t, "the last owner", f.Erasures.BeginUser(ctx, c.ID, c.User.ID, record.Operator()), value.ErrLastOwner)
		checkError(t, "of another account", f.Erasures.BeginUser(ctx, other.ID, eve.ID, record.Operator()), value.ErrUserNotFound)
		checkError(t, "unknown", errOf(f.Erasures.FindUser(ctx, "nobody@example.org")), value.ErrUserNotFound)
		kept := len(f.Activities(t, c))
		must(t, f.People.Remove(ctx, c.ID, eve.ID, record.Operator()))
		found := modelstest.Value(f.Erasures.FindUser(ctx, "EVE.new@example.org"))(t)
		if found.ID != eve.ID {
			t.Errorf("found %+v", found)
		}
		for range 2 { // the second one changes nothing
			must(t, f.Erasures.BeginUser(ctx, c.ID, eve.ID, record.Operator()))
			must(t, f.Erasures.Finish(ctx))
			if found := f.holds(t, traces); found != nil {
				t.Errorf("the database still holds %q", found)
			}
		}
		activities := f.Activities(t, c)
		if want := kept + 2; len(activities) != want { // with that of the webhook
			t.Errorf("%d activities, want %d", len(activities), want)
		}
		erased, foreign := 0, 0
		for _, activity := range activities {
			if activity.ActorName == erasure.ErasedName {
				erased++
			}
			if activity.ActorName == c.User.Email && activity.Address == c.Actor.Address {
				foreign++
			}
		}
		if erased < 4 || foreign < 2 {
			t.Errorf("%d activities of the erased user, %d of the owner with an address: %+v", erased, foreign, activities)
		}
		key := modelstest.Value(f.Keys.Revoked(ctx, c.ID, value.Page{Limit: 1}))(t).Items[0]
		if key.Label != erasure.ErasedName+", her key" || key.RevocationReason != erasure.ErasedName+". She left. Ask steve@example.org." {
			t.Errorf("key %+v", key)
		}
		f.checkOutside(t, c, key)
		f.CheckCount(t, 0, "SELECT count(*) FROM erasures WHERE finished_at IS NULL OR emails <> ''")
		f.CheckCount(t, 0, "SELECT count(*) FROM erasing")
	})
}

// checkOutside checks what is left of the texts of [fixture.outside].
func (f *fixture) checkOutside(t *testing.T, c customer, key keys.Key) {
	t.Helper()
	endpoint := modelstest.Value(f.Webhooks.List(t.Context(), c.ID))(t)[0]
	if endpoint.URL != "https://hooks.example/?to=Erased%20user&and=steve%40example.org" || endpoint.DisabledAt == nil {
		t.Errorf("webhook %+v", endpoint)
	}
	if disabled := f.Recorded(t, c, record.ActionWebhookDisabled); len(disabled) != 1 || disabled[0].Label != endpoint.URL {
		t.Errorf("recorded %+v", disabled)
	}
	var responses []string
	for _, delivery := range modelstest.Value(f.Webhooks.Deliveries(t.Context(), c.ID, endpoint.ID))(t) {
		if delivery.Attempts == 0 && delivery.Status == 400 {
			responses = append(responses, delivery.Response)
		}
	}
	slices.Sort(responses)
	if want := []string{"", "Thanks, steve@example.org and " + erasure.ErasedName + "!"}; !slices.Equal(responses, want) {
		t.Errorf("responses %q, want %q", responses, want)
	}
	exchanges := modelstest.Value(f.Workload.Exchanges(t.Context(), c.ID, key.ID))(t)
	if len(exchanges) != 1 || exchanges[0].Reason != "email is "+erasure.ErasedName || exchanges[0].Address == "" {
		t.Errorf("exchanges %+v", exchanges)
	}
}

func TestAccountIsErased(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.Store = f.Open(t, models.Options{Mail: true})
		c, other := f.Customer(t), f.Customer(t)
		_, traces := f.eve(t, c)
		agent := f.Agent(t, c)
		key, secret := f.Key(t, c)
		f.Briefly(t, models.Options{}, func(s *models.Store) {
			must(t, errOf(s.API.Authenticate(ctx, secret, usage.NewSource(netip.MustParseAddr(evesAddress), "curl"))))
		})
		f.TwoSteps(t, c)
		f.Invite(t, c, "pending@example.org", people.RoleMember)
		f.Key(t, other)
		checkError(t, "enabled", f.Erasures.BeginAccount(ctx, c.ID), value.ErrAccountEnabled)
		must(t, f.Accounts.SetDisabled(ctx, c.ID, true, record.Operator()))
		before := f.Activities(t, other)
		must(t, f.Erasures.BeginAccount(ctx, c.ID))
		for name, err := range map[string]error{
			"find": errOf(f.Accounts.Find(ctx, c.ID)), "erase": f.Erasures.BeginAccount(ctx, c.ID),
			"enable": f.Accounts.SetDisabled(ctx, c.ID, false, record.Operator()),
		} {
			checkError(t, name, err, value.ErrAccountNotFound)
		}
		must(t, f.Erasures.Finish(ctx))
		must(t, f.Erasures.Finish(ctx))
		traces = append(traces, key.ID.String(), agent.ID.String(), c.User.ID.String(), c.User.Email, "pending@", "Reception")
		if found := f.holds(t, traces); found != nil {
			t.Errorf("the database still holds %q", found)
		}
		if dump := f.Dump(t); strings.Count(dump, c.ID.String()) != 2 || !strings.Contains(dump, "erasures:") {
			t.Errorf("the id of the account is in %d places, want one line with it", strings.Count(dump, c.ID.String()))
		}
		if after := f.Activities(t, other); len(after) != len(before) {
			t.Errorf("activities of another account: %+v, want %+v", after, before)
		}
		f.CheckCount(t, 0, "SELECT count(*) FROM erasing")
		// The platform may create the account again.
		_, created, err := f.Accounts.Put(ctx, c.ID, "Acme", nil, nil, record.Operator())
		if err != nil || !created {
			t.Errorf("created %t, %v", created, err)
		}
	})
}

// The batches go on where a crash has stopped them.
func TestErasureOfManyRowsIsResumed(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		rows := make([]record.Activity, 2500)
		for i := range rows {
			rows[i] = record.Activity{
				ID: newID(), AccountID: c.ID, ActorKind: record.ActorUser, ActorID: &c.User.ID, Action: record.ActionSignedOut,
				Label: "Eves browser", Address: evesAddress, At: f.Clock.Now(), Count: 1,
			}
		}
		for batch := range slices.Chunk(rows, 500) {
			must(t, errOf(f.DB.NewInsert().Model(&batch).Exec(t.Context())))
		}
		f.Owner(t, c)
		must(t, f.Erasures.BeginUser(t.Context(), c.ID, c.User.ID, record.Operator()))
		must(t, f.Accounts.SetDisabled(t.Context(), c.ID, true, record.Operator()))
		must(t, f.Erasures.BeginAccount(t.Context(), c.ID))
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := f.Erasures.Finish(stopped); err == nil {
			t.Error("finished without time")
		}
		if again := modelstest.Value(f.Erasures.FindUser(t.Context(), strings.ToUpper(c.User.Email)))(t); again.ID != c.User.ID {
			t.Errorf("the user to be erased is %+v", again)
		}
		must(t, f.Erasures.Finish(t.Context()))
		f.CheckCount(t, 0, "SELECT count(*) FROM activities WHERE account_id = ?", c.ID)
		f.CheckCount(t, 1, "SELECT count(*) FROM erasures WHERE finished_at IS NOT NULL AND id = ?", c.ID)
	})
}

func TestErasureWaitsForLockedRows(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{})
	ctx, c := t.Context(), f.Customer(t)
	must(t, f.Accounts.SetDisabled(ctx, c.ID, true, c.Actor))
	must(t, f.Erasures.BeginAccount(ctx, c.ID))
	other := modelstest.Value(f.DB.BeginTx(ctx, nil))(t)
	must(t, errOf(other.ExecContext(ctx, "SELECT 1 FROM accounts WHERE id = ? FOR NO KEY UPDATE", c.ID)))
	finished := make(chan error, 1)
	go func() { finished <- f.Erasures.Finish(ctx) }()
	f.awaitLock(t, finished)
	must(t, other.Rollback())
	must(t, <-finished)
	checkError(t, "an erased account", errOf(f.Accounts.Find(ctx, c.ID)), value.ErrAccountNotFound)
}

// awaitLock returns when an erasure waits for a lock or has finished, and returns how many wait.
func (f *fixture) awaitLock(t *testing.T, finished chan error) (waiting int) {
	t.Helper()
	modelstest.Eventually(t, "the erasure waits or has ended", func() bool {
		must(t, f.DB.NewRaw("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(t.Context(), &waiting))
		return waiting > 0 || len(finished) > 0
	})
	return waiting
}

// A long command would otherwise compete with its own background work.
func TestOnlyOneCallFinishesErasures(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{})
	ctx, c := t.Context(), f.Customer(t)
	must(t, f.Accounts.SetDisabled(ctx, c.ID, true, c.Actor))
	must(t, f.Erasures.BeginAccount(ctx, c.ID))
	other := modelstest.Value(f.DB.BeginTx(ctx, nil))(t)
	must(t, errOf(other.ExecContext(ctx, "SELECT 1 FROM users WHERE account_id = ? FOR NO KEY UPDATE", c.ID)))
	finished := make(chan error, 2)
	for range 2 {
		go func() { finished <- f.Erasures.Finish(ctx) }()
	}
	f.awaitLock(t, finished)
	time.Sleep(100 * time.Millisecond) // the other one would wait too
	if waiting := f.awaitLock(t, finished); waiting != 1 {
		t.Errorf("%d calls wait for a lock, want 1", waiting)
	}
	must(t, other.Rollback())
	must(t, <-finished)
	must(t, <-finished)
}

// Users go on with their work while somebody's data are erased.
func TestErasureKeepsWhatUsersWriteMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{})
	ctx, c := t.Context(), f.Customer(t)
	eve, _ := f.eve(t, c)
	key, _ := f.Generate(t, c, form("Key of eve.new@example.org"), c.Actor)
	must(t, f.Erasures.BeginUser(ctx, c.ID, eve.ID, record.Operator()))
	other := modelstest.Value(f.DB.BeginTx(ctx, nil))(t)
	must(t, errOf(other.ExecContext(ctx, "UPDATE api_keys SET note = 'For eve.new@example.org and Bob' WHERE id = ?", key.ID)))
	finished := make(chan error, 1)
	go func() { finished <- f.Erasures.Finish(ctx) }()
	f.awaitLock(t, finished)
	must(t, other.Commit())
	must(t, <-finished)
	after := modelstest.Value(f.Keys.Find(ctx, c.ID, key.ID))(t)
	if want := "For " + erasure.ErasedName + " and Bob"; after.Note != want || after.Label != "Key of "+erasure.ErasedName {
		t.Errorf("key %+v, want the note %q", after, want)
	}
}

// SQLite leaves deleted text in its pages and in its log, unless secure_delete is on.
func TestErasedTextIsInNoFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.SQLiteURL(t), models.Options{Mail: true})
	ctx, c, other := t.Context(), f.Customer(t), f.Customer(t)
	path, _ := database.SQLitePath(f.URL)
	contains := func(texts ...string) (found []string) {
		t.Helper()
		var files []byte
		for _, name := range []string{path, path + "-wal"} {
			files = append(files, modelstest.Value(os.ReadFile(name))(t)...)
		}
		files = bytes.ReplaceAll(files, []byte("steve@"), nil)
		for _, text := range texts {
			if bytes.Contains(files, []byte(text)) {
				found = append(found, text)
			}
		}
		return found
	}
	eve, traces := f.eve(t, c)
	f.Generate(t, other, form("Backend of the other"), other.Actor)
	traces = append(traces, other.User.Email, "Backend of the other")
	if found := contains(traces...); len(found) != len(traces) {
		t.Errorf("before the erasure the files have only %q", found)
	}
	must(t, f.Accounts.SetDisabled(ctx, other.ID, true, record.Operator()))
	must(t, f.Erasures.BeginAccount(ctx, other.ID))
	must(t, f.Erasures.BeginUser(ctx, c.ID, eve.ID, record.Operator()))
	must(t, f.Erasures.Finish(ctx))
	if found := contains(traces...); found != nil {
		t.Errorf("after the erasure the files have %q", found)
	}
}
