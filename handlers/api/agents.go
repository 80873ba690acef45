package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/record"
	"portal/models/value"
)

// Agent is an agent in both APIs and in the output of commands.
type Agent struct {
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name"`
	// While it is true, the agent's tokens are refused.
	Paused bool `json:"paused"`
}

// NewAgent returns the body of an agent.
func NewAgent(agent agents.Agent) Agent {
	return Agent{ID: agent.ID, Name: agent.Name, Paused: agent.PausedAt != nil}
}

type agentsBody struct {
	Agents []Agent   `json:"agents"`        // never null
	Next   uuid.UUID `json:"next,omitzero"` // the last agent, if more follow
}

// listAgents returns a page of the agents of the caller's account, ordered by name.
func (cs *customers) listAgents(c *gin.Context, caller keys.Principal) error {
	page, err := readPage(c, value.MaxAgents, value.MaxAgents)
	if err != nil {
		return err
	}
	agents, err := query(cs.site, c, caller.Waited(), func(ctx context.Context) (value.List[agents.Agent], error) {
		return cs.agents.ReachedBy(ctx, caller, page)
	})
	return sendAgents(c, agents, err)
}

// sendAgents sends a page of agents, or the error of reading it.
func sendAgents(c *gin.Context, agents value.List[agents.Agent], err error) error {
	if errors.Is(err, value.ErrAgentNotFound) {
		return problem.InvalidRequest("The query parameter after is not the id of an agent in this account. Begin again without it.")
	}
	return send(c, http.StatusOK, agentsBody{bodiesOf(agents.Items, NewAgent), agents.Next}, err)
}

// listAgents returns a page of an account's agents, by name.
func (o *operators) listAgents(c *gin.Context) error {
	agents, err := listOf(o, c, o.store.Agents.List)
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
		agent, created, err = o.store.Agents.Put(ctx, account, id, name, paused, record.Operator())
		return agent, err
	})
	return send(c, putStatus(created), NewAgent(agent), err)
}

// removeAgent removes an agent, if it exists.
func (o *operators) removeAgent(c *gin.Context) error {
	return o.remove(c, "agent", value.ErrAgentNotFound, func(ctx context.Context, account, id uuid.UUID) error {
		_, err := o.store.Agents.Remove(ctx, account, id, record.Operator())
		return err
	})
}
