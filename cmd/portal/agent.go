package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"portal/models"
)

type agentCreateCommand struct {
	Account string  `required:"" placeholder:"EMAIL" help:"Email of a user of the account."`
	Name    string  `required:"" placeholder:"NAME" help:"The agent's name."`
	ID      agentID `name:"id" placeholder:"UUID" help:"The agent's id; generated unless set."`
}

// agentID is an id in the form that the API accepts. Zero means that the store generates one.
type agentID uuid.UUID

// UnmarshalText accepts the same ids as [models.ParseID] except the nil UUID.
func (a *agentID) UnmarshalText(text []byte) error {
	id, ok := models.ParseID(string(text))
	if !ok {
		return errors.New("write a UUID of 36 characters, such as 0198c2f4-7a31-7c6e-9d52-3f8be6a1c004")
	}
	if id == uuid.Nil {
		return errors.New("the nil UUID is not a valid id; omit --id to generate one")
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
