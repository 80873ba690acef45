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

// seedDemo makes an account and an agent in an empty database and writes what is needed to sign in to w, this once. In
// a database that has an account it does nothing but say so in the log.
func seedDemo(ctx context.Context, store *models.Store, w io.Writer, logger *slog.Logger) error {
	empty, err := store.Empty(ctx)
	if err != nil {
		return err
	}
	password := rand.Text()
	var account models.Account
	if empty {
		account, err = store.CreateAccount(ctx, models.NewAccount{Name: "Demo", Email: demoEmail, Password: password})
	}
	// Of several that found it empty at once, one makes the account, which is then the others' too.
	if !empty || errors.Is(err, models.ErrEmailTaken) {
		logger.InfoContext(ctx, "the database has an account already, so none was made for --demo")
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the demo account: %w", err)
	}
	agent, err := store.CreateAgent(ctx, account.ID, models.NewAgent{Name: "Demo agent"}, models.Operator())
	if err != nil {
		return fmt.Errorf("make the demo agent: %w", err)
	}
	_, err = fmt.Fprintf(w, "E-mail:   %s\nPassword: %s\nAgent id: %s\n", demoEmail, password, agent.ID)
	return err
}
