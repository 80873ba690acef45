package api

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models/agents"
	"portal/models/record"
	"portal/models/value"
)

// listAgents returns a page of an account's agents, by name.
func (o *operators) listAgents(c *gin.Context) error {
	agents, err := listOf(o, c, o.agents.List)
	return sendAgents(c, agents, err)
}

func (o *operators) putAgent(c *gin.Context) error {
	account, id, err := accountAnd(c, "agent")
	if err != nil {
		return err
	}
	body := readObject(c, `{"name": "Reception"}`)
	name, paused := body.text("name"), body.truth("paused")
	if body.err != nil {
		return body.err
	}
	var created bool
	agent, err := query(o.site, c, 0, func(ctx context.Context) (agent agents.Agent, err error) {
		agent, created, err = o.agents.Put(ctx, account, id, name, paused, record.Operator())
		return agent, err
	})
	return send(c, putStatus(created), NewAgent(agent), err)
}

// removeAgent removes an agent, if it exists.
func (o *operators) removeAgent(c *gin.Context) error {
	return o.remove(c, "agent", value.ErrAgentNotFound, func(ctx context.Context, account, id uuid.UUID) error {
		_, err := o.agents.Remove(ctx, account, id, record.Operator())
		return err
	})
}
