package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"portal/models"
)

type agentCreateCommand struct {
	Account string  `required:"" placeholder:"EMAIL" help:"E-mail of the account's user."`
	Name    string  `required:"" placeholder:"NAME" help:"What the agent is called."`
	ID      agentID `name:"id" placeholder:"UUID" help:"The agent's id, if it has one already."`
}

// agentID is an id as the API takes it, or zero: one is to be made.
type agentID uuid.UUID

// UnmarshalText takes what [models.ParseID] does, and not the nil UUID, which would be taken for none.
func (a *agentID) UnmarshalText(text []byte) error {
	id, ok := models.ParseID(string(text))
	if !ok {
		return errors.New("write a UUID of 36 characters, such as 0198c2f4-7a31-7c6e-9d52-3f8be6a1c004")
	}
	if id == uuid.Nil {
		return errors.New("the nil UUID is no agent's id; leave --id away and one is made")
	}
	*a = agentID(id)
	return nil
}

func (c agentCreateCommand) Run(ctx context.Context, t terminal) error {
	return withStore(ctx, func(store *models.Store) error {
		account, err := store.AccountByEmail(ctx, c.Account)
		if err != nil {
			return fmt.Errorf("--account %s: %w", c.Account, err)
		}
		agent, err := store.CreateAgent(ctx, account.ID, models.NewAgent{ID: uuid.UUID(c.ID), Name: c.Name}, models.Operator())
		if err != nil {
			return forOperator(err)
		}
		_, err = fmt.Fprintln(t.out, agent.ID)
		return err
	})
}
