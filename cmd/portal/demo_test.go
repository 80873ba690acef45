package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
)

var printedDemo = regexp.MustCompile(`^URL: {6}(\S+)\nEmail: {4}(\S+)\nPassword: (\S+)\nAgent ID: (\S+)\n$`)

func TestDemoIsCreatedOnceAndPrintedToStandardOutput(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		env := []string{"DATABASE_URL=" + url, testSecret, anyPort}
		start(t, env, "serve").stop(t)
		if empty, err := modelstest.Open(t, url, models.Options{}).Accounts.Empty(t.Context()); err != nil || !empty {
			t.Errorf("a plain serve creates an account: %v", err)
		}
		first := start(t, env, "serve", "--demo")
		printed := printedDemo.FindStringSubmatch(first.stdout.String())
		if len(printed) == 0 || printed[1] != strings.Replace(first.URL, "127.0.0.1", "localhost", 1) {
			t.Fatalf("got %q", first.stdout.String())
		}
		if strings.Contains(first.stderr.String(), printed[3]) {
			t.Error("the password is in the log")
		}
		store := modelstest.Open(t, url, models.Options{})
		user, err := store.SignIn.VerifyPassword(t.Context(), printed[2], printed[3], models.Client{Address: "192.0.2.1"})
		if err != nil {
			t.Fatalf("the printed password does not sign in: %v", err)
		}
		if _, err := store.Agents.Find(t.Context(), user.AccountID, uuid.MustParse(printed[4])); err != nil {
			t.Errorf("the printed agent: %v", err)
		}
		first.stop(t)
		second := start(t, env, "serve", "--demo")
		second.stop(t)
		if out := second.stdout.String(); !regexp.MustCompile(`^URL: {6}http://localhost:\d+\n$`).MatchString(out) {
			t.Errorf("the second start wrote %q", out)
		}
		if !strings.Contains(second.stderr.String(), "--demo creates none") {
			t.Error("the second start does not log why it printed nothing")
		}
		// As in README.md.
		if out := mustPortal(t, env, "", "demo", "seed"); !strings.Contains(out, "nas_") {
			t.Errorf("beside the account of --demo, demo seed prints %q", out)
		}
	})
}

func TestDemosThatStartTogetherOnAnEmptyDatabaseCreateOneAccount(t *testing.T) {
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
		var printed string
		for _, i := range instances {
			i.awaitReady(t)
			out := i.stdout.String()
			if made := !strings.Contains(i.stderr.String(), "--demo creates none"); made != printedDemo.MatchString(out) {
				t.Errorf("standard output %q, log %q", out, i.stderr.String())
			} else if made {
				printed += out
			}
		}
		fields := printedDemo.FindStringSubmatch(printed)
		if fields == nil {
			t.Fatalf("want one account, got %q", printed)
		}
		store := modelstest.Open(t, url, models.Options{})
		user, err := store.SignIn.VerifyPassword(t.Context(), fields[2], fields[3], models.Client{Address: "192.0.2.1"})
		if err != nil {
			t.Fatalf("the printed password does not sign in: %v", err)
		}
		if agents, err := store.Agents.List(t.Context(), user.AccountID, models.Page{Limit: 10}); err != nil || len(agents.Items) != 1 {
			t.Errorf("want one agent, got %v, error %v", agents, err)
		}
	})
}

func TestDemoSeed(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		env := []string{"DATABASE_URL=" + url}
		out := mustPortal(t, env, "", "demo", "seed", "--email", "suite@example.com")
		printed := regexp.MustCompile(`^Email: {4}(\S+)\nPassword: (\S+)\nAgent ID: (\S+)\nAPI key: {2}(nas_\S+)$`).FindStringSubmatch(out)
		if printed == nil {
			t.Fatalf("got %q", out)
		}
		store := modelstest.Open(t, url, models.Options{})
		user, err := store.SignIn.VerifyPassword(t.Context(), printed[1], printed[2], models.Client{Address: "192.0.2.1"})
		if err != nil {
			t.Fatalf("the printed password does not sign in: %v", err)
		}
		if caller, err := store.API.Authenticate(t.Context(), printed[4], models.Source{}); err != nil || caller.AccountID != user.AccountID {
			t.Errorf("the printed key: %+v, %v", caller, err)
		}
		keys, err := store.Keys.Active(t.Context(), user.AccountID)
		if err != nil || len(keys) != 12 {
			t.Errorf("want 12 active keys, got %d, error %v", len(keys), err)
		}
		replacements := 0
		for _, key := range keys {
			if key.ReplacesID != nil {
				replacements++
			}
		}
		if replacements != 1 {
			t.Errorf("want one rotation, got %d", replacements)
		}
		usage := modelstest.Value(store.Keys.ActiveUsage(t.Context(), user.AccountID, models.Days(30)))(t)
		busy := 0
		for _, requests := range usage[len(usage)-1].Requests {
			if requests > 0 {
				busy++
			}
		}
		if busy < 29 {
			t.Errorf("the oldest key has requests on %d of 30 days", busy)
		}
		for action, want := range map[models.Action]int{models.ActionKeyGenerated: 15, models.ActionKeyRevoked: 3, models.ActionKeyRenamed: 1} {
			activities, err := store.Activity.List(t.Context(), user.AccountID, models.ActivityPage{Limit: 100, Actions: []models.Action{action}})
			if err != nil || len(activities) != want {
				t.Errorf("%s: want %d, got %d, error %v", action, want, len(activities), err)
			}
		}
		portal(t, env, "", "demo", "seed", "--email", "suite@example.com").failsWith(t, "already exists")

		var object map[string]string
		modelstest.Must(t, json.Unmarshal([]byte(mustPortal(t, env, "", "demo", "seed", "--json")), &object))
		if names := slices.Sorted(maps.Keys(object)); !slices.Equal(names, []string{"accountId", "agentId", "apiKey", "email", "password"}) {
			t.Errorf("the object has %v", names)
		}
		seeded := modelstest.Value(store.SignIn.VerifyPassword(t.Context(), object["email"], object["password"], models.Client{Address: "192.0.2.1"}))(t)
		caller := modelstest.Value(store.API.Authenticate(t.Context(), object["apiKey"], models.Source{}))(t)
		if id := object["accountId"]; seeded.Email != "seed@example.com" || seeded.AccountID.String() != id || caller.AccountID.String() != id {
			t.Errorf("the user is %+v, the key's caller %+v, the object %v", seeded, caller, object)
		}
		modelstest.Value(store.Agents.Find(t.Context(), seeded.AccountID, uuid.MustParse(object["agentId"])))(t)
	})
}

func TestDoubtfulSettingsAreLoggedAsWarnings(t *testing.T) {
	const limit, locked = "PORTAL_TEST_SIGN_IN_LIMIT weakens", "only users with a passkey can sign in"
	for _, test := range []struct {
		settings settings
		text     string
		want     bool
	}{
		{settings{signInLimit: defaultSignInLimit}, limit, false},
		{settings{signInLimit: 1000}, limit, true},
		{settings{passwordsOff: true}, locked, true},
		{settings{passwordsOff: true, operatorToken: goodSecret}, locked, false},
		{settings{passwordsOff: true, operatorToken: goodSecret}, "users need a sign-in link or a passkey", true},
		{settings{}, locked, false},
	} {
		var log modelstest.LogBuffer
		test.settings.logWarnings(t.Context(), log.Logger())
		if line := log.LineWith(test.text); strings.Contains(line, `"level":"WARN"`) != test.want {
			t.Errorf("want %q %t in the log %q", test.text, test.want, log.String())
		}
	}
}
