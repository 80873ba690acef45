package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"portal/models"
)

const demoEmail = "demo@example.com"

// seedDemo creates an account and an agent in an empty database, and writes the email, the
// password and the agent's id to w. In a database with an account it only logs a message.
func seedDemo(ctx context.Context, store *models.Store, w io.Writer, logger *slog.Logger) error {
	empty, err := store.Accounts.Empty(ctx)
	if err != nil {
		return err
	}
	password := rand.Text()
	var account models.Account
	if empty {
		account, err = store.Accounts.Create(ctx, models.NewAccount{Name: "Demo", Email: demoEmail, Password: password})
	}
	// Another instance may have created the account in the meantime.
	if !empty || errors.Is(err, models.ErrEmailTaken) {
		logger.InfoContext(ctx, "the database has an account already, so --demo creates none")
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the demo account: %w", err)
	}
	agent, err := store.Agents.Create(ctx, account.ID, models.NewAgent{Name: "Demo agent"}, models.Operator())
	if err != nil {
		return fmt.Errorf("create the demo agent: %w", err)
	}
	_, err = fmt.Fprintf(w, "Email:    %s\nPassword: %s\nAgent ID: %s\n", demoEmail, password, agent.ID)
	return err
}
