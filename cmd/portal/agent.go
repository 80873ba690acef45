package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"portal/handlers/api"
	"portal/models"
)

type agentCreateCommand struct {
	accountFlag

	Name string  `required:"" placeholder:"NAME" help:"The agent's name."`
	ID   agentID `name:"id" placeholder:"UUID" help:"The agent's id; generated unless set."`
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
	return c.withAccount(ctx, func(store *models.Store, account models.Account) error {
		agent, err := store.Agents.Create(ctx, account.ID, models.NewAgent{ID: uuid.UUID(c.ID), Name: c.Name}, models.Operator())
		if err != nil {
			return forOperator(err)
		}
		_, err = fmt.Fprintln(t.out, agent.ID)
		return err
	})
}

type agentListCommand struct {
	accountFlag
	listFlags
}

func (c agentListCommand) Run(ctx context.Context, t terminal) error {
	return c.withAccount(ctx, func(store *models.Store, account models.Account) error {
		return listing[models.Agent, api.Agent]{
			fetch: func(page models.Page) (models.List[models.Agent], error) {
				return store.Agents.List(ctx, account.ID, page)
			},
			row:    api.NewAgent,
			header: "ID\tNAME",
			line:   func(row api.Agent) string { return row.ID.String() + "\t" + row.Name },
		}.write(t.out, c.listFlags)
	})
}
