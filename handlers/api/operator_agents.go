package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
)

// listAccountAgents returns a page of an account's agents, by name.
func (a *API) listAccountAgents(c *gin.Context) error {
	agents, err := listOf(a, c, a.store.Agents.List)
	if errors.Is(err, models.ErrAgentNotFound) {
		return errAfter
	}
	if err != nil {
		return err
	}
	c.PureJSON(http.StatusOK, newAgentsBody(agents))
	return nil
}

// putAgent creates or renames an agent.
func (a *API) putAgent(c *gin.Context) error {
	account, err := accountID(c)
	if err != nil {
		return err
	}
	id, err := pathID(c, "agent")
	if err != nil {
		return err
	}
	body, err := readObject(c, `{"name": "Reception"}`)
	if err != nil {
		return err
	}
	name, err := body.text("name")
	if err != nil {
		return err
	}
	var agent models.Agent
	var created bool
	err = a.query(c, func(ctx context.Context) error {
		agent, created, err = a.store.Agents.Put(ctx, account, id, name, models.Operator())
		return err
	})
	if err != nil {
		return err
	}
	c.PureJSON(putStatus(created), NewAgent(agent))
	return nil
}

// removeAgent removes an agent. It is no error if the agent does not exist.
func (a *API) removeAgent(c *gin.Context) error {
	return a.remove(c, "agent", models.ErrAgentNotFound, func(ctx context.Context, account, id uuid.UUID) error {
		_, err := a.store.Agents.Remove(ctx, account, id, models.Operator())
		return err
	})
}

// remove calls f with the account and the other id of the path. It ignores the error gone, which f
// returns if there is nothing to remove.
func (a *API) remove(c *gin.Context, name string, gone error, f func(ctx context.Context, account, id uuid.UUID) error) error {
	account, err := accountID(c)
	if err != nil {
		return err
	}
	id, err := pathID(c, name)
	if err != nil {
		return err
	}
	err = a.query(c, func(ctx context.Context) error {
		if _, err := a.store.Accounts.Find(ctx, account); err != nil {
			return err
		}
		return f(ctx, account, id)
	})
	if err != nil && !errors.Is(err, gone) {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
