package api

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
)

type agentBody struct {
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name"`
}

type agentsBody struct {
	Agents []agentBody `json:"agents"` // never null
}

// listAgents returns the agents of the caller's account, ordered by name.
func (a *API) listAgents(c *gin.Context, caller models.Principal) error {
	ctx, cancel := withTimeout(c, caller.Waited())
	defer cancel()
	var agents []models.Agent
	err := a.queries.Run(func() (err error) {
		agents, err = a.store.AgentsOf(ctx, caller)
		return err
	})
	if err != nil {
		return err
	}
	body := agentsBody{Agents: make([]agentBody, 0, len(agents))}
	for _, agent := range agents {
		body.Agents = append(body.Agents, agentBody{ID: agent.ID, Name: agent.Name})
	}
	c.PureJSON(http.StatusOK, body)
	return nil
}
