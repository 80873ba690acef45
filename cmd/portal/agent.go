package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"portal/models"
)

type agentCreateCommand struct {
	Account string    `required:"" placeholder:"EMAIL" help:"E-mail of the account's user."`
	Name    string    `required:"" placeholder:"NAME" help:"What the agent is called."`
	ID      uuid.UUID `name:"id" placeholder:"UUID" help:"The agent's id, if it has one already."`
}

func (c agentCreateCommand) Run(ctx context.Context, t terminal) error {
	return withStore(ctx, func(store *models.Store) error {
		account, err := store.AccountByEmail(ctx, c.Account)
		if err != nil {
			return fmt.Errorf("--account %s: %w", c.Account, err)
		}
		agent, err := store.CreateAgent(ctx, account.ID, models.NewAgent{ID: c.ID, Name: c.Name}, models.Operator())
		if err != nil {
			return forOperator(err)
		}
		_, err = fmt.Fprintln(t.out, agent.ID)
		return err
	})
}
