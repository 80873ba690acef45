package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"portal/handlers/api"
	"portal/models"
	"portal/models/agents"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

type agentCreateCommand struct {
	accountFlag

	Name string    `required:"" placeholder:"NAME" help:"The agent's name."`
	ID   uuid.UUID `name:"id" placeholder:"UUID" help:"The agent's id; generated unless set."`
}

func (c agentCreateCommand) Run(ctx context.Context, t terminal) error {
	return c.withAccount(ctx, func(store *models.Store, account people.Account) error {
		agent, err := store.Agents.Create(ctx, account.ID, agents.NewAgent{ID: c.ID, Name: c.Name}, record.Operator())
		if err != nil {
			return err
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
	return c.withAccount(ctx, func(store *models.Store, account people.Account) error {
		return listing[agents.Agent, api.Agent]{
			fetch: func(page value.Page) (value.List[agents.Agent], error) {
				return store.Agents.List(ctx, account.ID, page)
			},
			row:    api.NewAgent,
			header: "ID\tNAME",
			line:   func(row api.Agent) string { return row.ID.String() + "\t" + row.Name },
		}.write(t.out, c.listFlags)
	})
}

type agentFlags struct {
	accountFlag

	ID uuid.UUID `name:"id" required:"" placeholder:"UUID" help:"The agent's id."`
}

// withAgent opens the store and calls work with it and the agent.
func (f agentFlags) withAgent(ctx context.Context, work func(*models.Store, agents.Agent) error) error {
	return f.withAccount(ctx, func(store *models.Store, account people.Account) error {
		agent, err := store.Agents.Find(ctx, account.ID, f.ID)
		if err == nil {
			err = work(store, agent)
		}
		if errors.Is(err, value.ErrAgentNotFound) {
			return fmt.Errorf("--id %s: %w; list the agents with: portal agent list --account %s", f.ID, err, f.Account)
		}
		return err
	})
}

type agentRenameCommand struct {
	agentFlags

	Name string `required:"" placeholder:"NAME" help:"The agent's new name."`
}

func (c agentRenameCommand) Run(ctx context.Context, t terminal) error {
	return c.withAgent(ctx, func(store *models.Store, agent agents.Agent) error {
		renamed, err := store.Agents.Rename(ctx, agent.AccountID, agent.ID, c.Name, record.Operator())
		if err != nil {
			return err
		}
		return t.say("agent %q is renamed to %q", agent.Name, renamed.Name)
	})
}

type agentPauseCommand struct {
	agentFlags

	pause bool // or resume
}

func (c agentPauseCommand) Run(ctx context.Context, t terminal) error {
	return c.withAgent(ctx, func(store *models.Store, agent agents.Agent) error {
		if _, err := store.Agents.SetPaused(ctx, agent.AccountID, agent.ID, c.pause, record.Operator()); err != nil {
			return err
		}
		outcome := "resumed"
		if c.pause {
			outcome = "paused: its widget tokens are refused, and its calls end"
		}
		return t.say("agent %q is %s", agent.Name, outcome)
	})
}

type agentRemoveCommand struct{ agentFlags }

func (c agentRemoveCommand) Run(ctx context.Context, t terminal) error {
	return c.withAgent(ctx, func(store *models.Store, agent agents.Agent) error {
		if _, err := store.Agents.Remove(ctx, agent.AccountID, agent.ID, record.Operator()); err != nil {
			return err
		}
		return t.say("agent %q is removed, and its widget tokens are refused", agent.Name)
	})
}
