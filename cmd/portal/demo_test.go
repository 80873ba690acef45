package main

import (
	"regexp"
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
		if out := mustPortal(t, env, "", "demo", "seed"); !strings.Contains(out, "nas_") { // as in README.md
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
