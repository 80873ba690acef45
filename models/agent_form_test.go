package models_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/modelstest"
)

func TestAFormMakesItsAgentOnce(t *testing.T) {
	modelstest.Databases(t, func(t *testing.T, url string) {
		ctx := context.Background()
		store := modelstest.Open(t, url, models.Options{})
		var accounts []models.Account
		for _, email := range []string{"a@example.com", "b@example.com"} {
			account, err := store.CreateAccount(ctx, models.NewAccount{Name: "Example", Email: email, Password: "correct horse battery staple"})
			if err != nil {
				t.Fatal(err)
			}
			accounts = append(accounts, account)
		}
		form := uuid.New()
		create := func(account models.Account, name string, formID uuid.UUID) models.Agent {
			t.Helper()
			agent, err := store.CreateAgent(ctx, account.ID, models.NewAgent{Name: name, FormID: formID}, models.Operator())
			if err != nil {
				t.Fatal(err)
			}
			return agent
		}
		first := create(accounts[0], "Front desk", form)
		if again := create(accounts[0], " Front desk ", form); again.ID != first.ID {
			t.Error("a repeat has made a second agent")
		}
		if other := create(accounts[0], "Night shift", form); other.ID == first.ID {
			t.Error("another name in the same form is taken for a repeat")
		}
		if stranger := create(accounts[1], "Front desk", form); stranger.ID == first.ID || stranger.AccountID != accounts[1].ID {
			t.Error("a form with the id of another account's has come upon its agent")
		}
		create(accounts[0], "Front desk", uuid.New())
		agents, err := store.Agents(ctx, accounts[0].ID)
		if err != nil || len(agents) != 3 {
			t.Errorf("there are %d agents, want 3: %v", len(agents), err)
		}
		made, err := store.Activities(ctx, accounts[0].ID, models.ActivityPage{Action: models.ActionAgentCreated, Limit: 10})
		if err != nil || len(made) != 3 {
			t.Errorf("%d agents are recorded, want 3: %v", len(made), err)
		}
	})
}
