package main

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

var printedDemo = regexp.MustCompile(`^URL: {6}(\S+)\nEmail: {4}(\S+)\nPassword: (\S+)\nAgent ID: (\S+)\n$`)

// Three instances start together on an empty database, while two commands migrate it.
func TestDemoIsCreatedOnceAndPrintedToStandardOutput(t *testing.T) {
	t.Parallel()
	emptyDatabases(t, func(t *testing.T, url string) {
		env := []string{"DATABASE_URL=" + url, testSecret, anyPort}
		var instances []*instance
		for range 3 {
			instances = append(instances, launch(t, env, "serve", "--demo"))
		}
		var migrations sync.WaitGroup
		for range 2 {
			migrations.Go(func() { mustPortal(t, env, "", "migrate") })
		}
		migrations.Wait()
		var fields []string
		var logs string
		for _, i := range instances {
			i.awaitReady(t)
			logs += i.stderr.String()
			out, address := i.stdout.String(), "URL:      "+strings.Replace(i.URL, "127.0.0.1", "localhost", 1)+"\n"
			if printed := printedDemo.FindStringSubmatch(out); printed != nil && fields == nil {
				fields = printed
			} else if out != address || !strings.Contains(i.stderr.String(), "--demo creates none") {
				t.Errorf("standard output %q, log %q", out, i.stderr.String())
			}
			if !strings.HasPrefix(out, address) {
				t.Errorf("standard output %q, want the address %q first", out, address)
			}
		}
		if fields == nil {
			t.Fatal("no instance printed an account")
		}
		if strings.Contains(logs, fields[3]) {
			t.Errorf("the password is in the log %q", logs)
		}
		store := modelstest.Open(t, url, models.Options{})
		user := modelstest.Value(store.SignIn.VerifyPassword(t.Context(), fields[2], fields[3], people.Client{Address: "192.0.2.1"}))(t)
		if agents, err := store.Agents.List(t.Context(), user.AccountID, value.Page{Limit: 10}); err != nil || len(agents.Items) != 1 || agents.Items[0].ID.String() != fields[4] {
			t.Errorf("want the agent %s, got %v, error %v", fields[4], agents, err)
		}
		// As in README.md.
		if out := mustPortal(t, env, "", "demo", "seed"); !strings.Contains(out, "nas_") {
			t.Errorf("beside the account of --demo, demo seed prints %q", out)
		}
	})
}

func TestDemoSeed(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		env := []string{"DATABASE_URL=" + url}
		var seeded seededAccount
		modelstest.Must(t, json.Unmarshal([]byte(mustPortal(t, append(env, "PORTAL_BASE_URL=http://localhost:9090/"), "", "demo", "seed", "--json")), &seeded))
		store := modelstest.Open(t, url, models.Options{})
		user := modelstest.Value(store.SignIn.VerifyPassword(t.Context(), seeded.Email, seeded.Password, people.Client{Address: "192.0.2.1"}))(t)
		caller := modelstest.Value(store.API.Authenticate(t.Context(), seeded.APIKey, keys.Source{}))(t)
		if id := seeded.AccountID.String(); user.Email != "seed@example.com" || user.AccountID.String() != id || caller.AccountID.String() != id {
			t.Errorf("the user is %+v, the key's caller %+v, the object %v", user, caller, seeded)
		}
		modelstest.Value(store.Agents.Find(t.Context(), user.AccountID, seeded.AgentID))(t)
		member := modelstest.Value(store.SignIn.VerifyPassword(t.Context(), seeded.MemberEmail, seeded.MemberPassword, people.Client{Address: "192.0.2.1"}))(t)
		if member.AccountID != user.AccountID || member.Role != people.RoleMember || seeded.UserID != user.ID || seeded.BaseURL != "http://localhost:9090" {
			t.Errorf("the member is %+v, the object %+v", member, seeded)
		}
		token, _ := strings.CutPrefix(seeded.InvitationLink, seeded.BaseURL+"/invitations/")
		modelstest.Value(store.Invitations.Find(t.Context(), token))(t)
		for purpose, key := range map[string]seededKey{"active": seeded.Keys.Active, "restricted": seeded.Keys.Restricted, "unused": seeded.Keys.Unused} {
			if caller, err := store.API.Authenticate(t.Context(), *key.Value, keys.Source{}); err != nil || caller.KeyID != key.ID {
				t.Errorf("%s: %+v, error %v", purpose, caller, err)
			}
		}
		expired := modelstest.Value(store.Keys.Find(t.Context(), user.AccountID, seeded.Keys.Expired.ID))(t)
		revoked := modelstest.Value(store.Keys.Find(t.Context(), user.AccountID, seeded.Keys.Revoked.ID))(t)
		if !expired.Expired(time.Now()) || revoked.RevokedAt == nil || seeded.Keys.Expired.Value != nil || seeded.Keys.Revoked.Value != nil {
			t.Errorf("the expired key is %+v, the revoked one %+v", expired, revoked)
		}
		ofAccount := modelstest.Value(store.Keys.Active(t.Context(), user.AccountID))(t)
		replacements := slices.DeleteFunc(slices.Clone(ofAccount), func(key keys.Key) bool { return key.ReplacesID == nil })
		if len(ofAccount) != 12 || len(replacements) != 1 {
			t.Errorf("want 12 active keys and one rotation, got %d and %d", len(ofAccount), len(replacements))
		}
		usage := modelstest.Value(store.Usage.OfList(t.Context(), user.AccountID, keys.Days(30), time.Now(), 1))(t).Active
		oldest := usage[len(usage)-1].Requests
		if busy := slices.DeleteFunc(slices.Clone(oldest), func(requests int64) bool { return requests == 0 }); len(busy) < 29 {
			t.Errorf("the oldest key has requests on %d of 30 days", len(busy))
		}
		all := modelstest.Value(store.Activity.List(t.Context(), user.AccountID, record.ActivityPage{Limit: 100}))(t)
		if !slices.IsSortedFunc(all, func(a, b record.Activity) int { return b.At.Compare(a.At) }) {
			t.Error("the activities are not in the order of time")
		}
		for action, want := range map[record.Action]int{record.ActionKeyGenerated: 16, record.ActionKeyRevoked: 3, record.ActionKeyRenamed: 1} {
			activities, err := store.Activity.List(t.Context(), user.AccountID, record.ActivityPage{Limit: 100, Actions: []record.Action{action}})
			if err != nil || len(activities) != want {
				t.Errorf("%s: want %d, got %d, error %v", action, want, len(activities), err)
			}
		}

		// Their ids sort by time, so reports can select them by time.
		until := time.Now().Add(-10 * value.Day)
		reported := modelstest.Value(store.Activity.Report(t.Context(), record.ActivityReport{AccountID: user.AccountID, Until: until, Limit: 100}))(t)
		byTime := func(a, b record.Activity) int { return a.At.Compare(b.At) }
		if len(reported) < 10 || !slices.IsSortedFunc(reported, byTime) || !reported[len(reported)-1].At.Before(until) {
			t.Errorf("reported until %s: %+v", until, reported)
		}

		out := mustPortal(t, env, "", "demo", "seed", "--email", "suite@example.com")
		if !regexp.MustCompile(`^Email: {4}suite@example\.com\nPassword: \S+\nAgent ID: \S+\nAPI key: {2}nas_\S+$`).MatchString(out) {
			t.Errorf("got %q", out)
		}
		portal(t, env, "", "demo", "seed", "--email", "suite@example.com").failsWith(t, "already exists")

		var again seededAccount
		modelstest.Must(t, json.Unmarshal([]byte(mustPortal(t, env, "", "demo", "seed", "--replace", "--json")), &again))
		if again.BaseURL != "http://127.0.0.1:8080" {
			t.Errorf("without PORTAL_BASE_URL the base URL is %q", again.BaseURL)
		}
		if _, err := store.Accounts.Find(t.Context(), seeded.AccountID); !errors.Is(err, value.ErrAccountNotFound) {
			t.Errorf("the replaced account: error %v", err)
		}
		if _, err := store.API.Authenticate(t.Context(), seeded.APIKey, keys.Source{}); !errors.Is(err, value.ErrKeyUnknown) {
			t.Errorf("a key of the replaced account: error %v", err)
		}
		other := modelstest.Value(store.Accounts.FindByEmail(t.Context(), "suite@example.com"))(t)
		if caller, err := store.API.Authenticate(t.Context(), again.APIKey, keys.Source{}); err != nil || caller.AccountID != again.AccountID || other.ID == again.AccountID {
			t.Errorf("a key of the new account: %+v, error %v", caller, err)
		}
		modelstest.Value(store.Accounts.Create(t.Context(), people.NewAccount{Name: "Demo", Email: "you@example.com", Password: "correct horse battery"}))(t)
		portal(t, env, "", "demo", "seed", "--replace", "--email", "you@example.com").failsWith(t, "demo seed did not create the account of you@example.com")
	})
}

func TestDoubtfulSettings(t *testing.T) {
	const limit, locked, plain, idle = "PORTAL_TEST_SIGN_IN_LIMIT weakens", "only users with a passkey can sign in", "plain http", "PORTAL_SESSION_IDLE, 721h, is above"
	for _, test := range []struct {
		name, value, operatorToken string
		text                       string
		want                       bool
	}{
		{"PORTAL_TEST_SIGN_IN_LIMIT", "", "", limit, false},
		{"PORTAL_TEST_SIGN_IN_LIMIT", "1000", "", limit, true},
		{"PORTAL_PASSWORD_SIGN_IN", "off", "", locked, true},
		{"PORTAL_PASSWORD_SIGN_IN", "off", goodSecret, locked, false},
		{"PORTAL_PASSWORD_SIGN_IN", "off", goodSecret, "users need a sign-in link or a passkey", true},
		{"PORTAL_PASSWORD_SIGN_IN", "", "", locked, false},
		{"PORTAL_BASE_URL", "http://portal.example.com", "", plain, true},
		{"PORTAL_BASE_URL", "http://10.0.0.1:8080", "", plain, true},
		{"PORTAL_BASE_URL", "https://portal.example.com", "", plain, false},
		{"PORTAL_BASE_URL", "http://localhost:8080", "", plain, false},
		{"PORTAL_BASE_URL", "http://127.0.0.1:8080", "", plain, false},
		{"PORTAL_BASE_URL", "", "", plain, false},
		{"DATABASE_URL", "sqlite:portal.db?mode=rwc", "", `what begins at the ? is a part of the name of the file, after portal.db; remove it`, true},
		{"DATABASE_URL", "sqlite:what?/portal.db", "", "DATABASE_URL", false},
		{"DATABASE_URL", "sqlite:~/portal.db", "", "~ is not expanded", true},
		{"PORTAL_SESSION_IDLE", "721h", "", idle, true},
		{"PORTAL_SESSION_IDLE", "720h", "", "PORTAL_SESSION_IDLE", false},
	} {
		s, _ := parse(t, map[string]string{test.name: test.value, "PORTAL_OPERATOR_TOKEN": test.operatorToken})
		if doubts := strings.Join(s.doubts(), "\n"); strings.Contains(doubts, test.text) != test.want {
			t.Errorf("want %q %t in %q", test.text, test.want, doubts)
		}
	}
}
