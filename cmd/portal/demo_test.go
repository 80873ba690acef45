package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
)

func TestDemoIsMadeOnceAndTellsStandardOutputAlone(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		env := []string{"DATABASE_URL=" + url, testSecret, anyPort}
		first := start(t, env, "serve", "--demo")
		told := regexp.MustCompile(`^E-mail: {3}(\S+)\nPassword: (\S+)\nAgent id: (\S+)\n$`).FindStringSubmatch(first.stdout.String())
		if told == nil {
			t.Fatalf("got %q", first.stdout.String())
		}
		if strings.Contains(first.stderr.String(), told[2]) {
			t.Error("the password is in the log")
		}
		store := modelstest.Open(t, url, models.Options{})
		user, err := store.VerifyPassword(t.Context(), told[1], told[2], "192.0.2.1")
		if err != nil {
			t.Fatalf("the printed password does not sign in: %v", err)
		}
		if _, err := store.Agent(t.Context(), user.AccountID, uuid.MustParse(told[3])); err != nil {
			t.Errorf("the printed agent: %v", err)
		}
		first.stop(t)
		second := start(t, env, "serve", "--demo")
		second.stop(t)
		if out := second.stdout.String(); out != "" {
			t.Errorf("the second start wrote %q", out)
		}
		if !strings.Contains(second.stderr.String(), "none was made for --demo") {
			t.Error("the second start does not say why it printed nothing")
		}
	})
}

func TestDemosThatStartAtOnceMakeOneAccount(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		env := []string{"DATABASE_URL=" + url, testSecret, anyPort}
		var instances []*instance
		for range 4 {
			instances = append(instances, launch(t, env, "serve", "--demo"))
		}
		var told string
		for _, i := range instances {
			i.awaitReady(t)
			out := i.stdout.String()
			if made := !strings.Contains(i.stderr.String(), "none was made for --demo"); made != (out != "") {
				t.Errorf("it wrote %q and logged %q", out, i.stderr.String())
			}
			told += out
		}
		if n := strings.Count(told, "Password: "); n != 1 {
			t.Fatalf("want one account told of, got %d: %q", n, told)
		}
		fields := strings.Fields(told)
		store := modelstest.Open(t, url, models.Options{})
		user, err := store.VerifyPassword(t.Context(), fields[1], fields[3], "192.0.2.1")
		if err != nil {
			t.Fatalf("the printed password does not sign in: %v", err)
		}
		if agents, err := store.Agents(t.Context(), user.AccountID); err != nil || len(agents) != 1 {
			t.Errorf("want one agent, got %v, error %v", agents, err)
		}
	})
}

func TestPlainServeNeverSeeds(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	start(t, []string{"DATABASE_URL=" + url, anyPort}, "serve").stop(t)
	if empty, err := modelstest.Open(t, url, models.Options{}).Empty(t.Context()); err != nil || !empty {
		t.Errorf("want an empty database, got empty=%v, error %v", empty, err)
	}
}
