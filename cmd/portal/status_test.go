package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/database"
	"portal/models/modelstest"
	"portal/models/record"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		env := databaseEnv(url)
		account := createAccount(t, modelstest.Open(t, url, models.Options{}))
		waits := record.Mail{
			ID: uuid.New(), Kind: "password.forgotten", Recipient: testEmail,
			CreatedAt: time.Now().Add(-90 * time.Minute), DueAt: time.Now().Add(time.Hour),
		}
		modelstest.Value(modelstest.OpenDatabase(t, url).NewInsert().Model(&waits).
			Column("id", "kind", "recipient", "created_at", "due_at").Exec(t.Context()))(t)
		var found map[string]any
		modelstest.Must(t, json.Unmarshal([]byte(mustPortal(t, env, "", "status", "--json")), &found))
		for name, want := range map[string]any{
			"version": version, "schema": modelstest.Value(database.Version(t.Context(), url))(t), "database": database.Name(url),
			"accounts": 1.0, "activeKeys": 1.0, "openCalls": 0.0, "waitingMails": 1.0, "waitingDeliveries": 0.0, "oldestDeliveryAge": nil,
			"failingEndpoints": 0.0, "longestFailingAge": nil, "lastBackup": nil,
		} {
			if got, ok := found[name]; !ok || got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if age, _ := found["oldestMailAge"].(float64); age < 90*60 || age > 120*60 {
			t.Errorf("the oldest mail waits for %v s", found["oldestMailAge"])
		}
		if size, _ := found["databaseBytes"].(float64); size < 100<<10 {
			t.Errorf("the size is %v", found["databaseBytes"])
		}
		text := mustPortal(t, env, "", "status")
		for _, want := range []string{"version ", "schema ", " MiB\n", "active keys         1\n", "emails waiting      1, the oldest for 1h3", "open calls          0\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("want %q in %s", want, text)
			}
		}
		if strings.Contains(text, account.Name) {
			t.Errorf("the status names an account: %s", text)
		}
	})
}

func TestStatusUpdatesNoSchema(t *testing.T) {
	t.Parallel()
	for _, url := range []string{modelstest.EmptySQLiteURL(t), modelstest.EmptyPostgresURL(t)} {
		modelstest.MigrateFirst(t, url)
		before := modelstest.Value(database.Version(t.Context(), url))(t)
		portal(t, databaseEnv(url), "", "status").failsWith(t, before, "portal migrate")
		if after := modelstest.Value(database.Version(t.Context(), url))(t); after != before {
			t.Errorf("the schema is %s", after)
		}
	}
}
