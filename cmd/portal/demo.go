package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"

	"github.com/google/uuid"

	"portal/models"
)

const demoEmail = "demo@example.com"

// demoAccount is how to sign in to an account for demonstrations, and its first agent.
type demoAccount struct {
	email, password string
	agentID         uuid.UUID
}

// createDemo creates an account with a random password and these agents.
func createDemo(ctx context.Context, store *models.Store, email string, agents ...string) (demoAccount, error) {
	demo := demoAccount{email: email, password: rand.Text()}
	account, err := store.Accounts.Create(ctx, models.NewAccount{Name: "Demo", Email: email, Password: demo.password})
	if err != nil {
		return demo, err
	}
	for _, name := range agents {
		agent, err := store.Agents.Create(ctx, account.ID, models.NewAgent{Name: name}, models.Operator())
		if err != nil {
			return demo, err
		}
		demo.agentID = cmp.Or(demo.agentID, agent.ID)
	}
	return demo, nil
}

// String returns the lines for the operator.
func (d demoAccount) String() string {
	return fmt.Sprintf("Email:    %s\nPassword: %s\nAgent ID: %s\n", d.email, d.password, d.agentID)
}

// serveDemo creates an account with one agent in an empty database, and prints the portal's URL and
// the account to w. In a database with an account it prints the URL and logs a message. It creates
// no keys, because the first thing to show is how to generate one.
func serveDemo(ctx context.Context, store *models.Store, baseURL *url.URL, w io.Writer, logger *slog.Logger) error {
	empty, err := store.Accounts.Empty(ctx)
	if err != nil {
		return err
	}
	var demo demoAccount
	if empty {
		demo, err = createDemo(ctx, store, demoEmail, "Demo agent")
	}
	// Another instance may have created the account in the meantime.
	if !empty || errors.Is(err, models.ErrEmailTaken) {
		logger.InfoContext(ctx, "the database has an account already, so --demo creates none")
		_, err = fmt.Fprintf(w, "URL:      %s\n", baseURL)
		return err
	}
	if err != nil {
		return fmt.Errorf("create the demo account: %w", err)
	}
	_, err = fmt.Fprintf(w, "URL:      %s\n%s", baseURL, demo)
	return err
}
