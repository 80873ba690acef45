package api

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
)

// Agent is an agent in both APIs and in the output of commands.
type Agent struct {
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name"`
}

// NewAgent returns the body of an agent.
func NewAgent(agent models.Agent) Agent { return Agent{agent.ID, agent.Name} }

type agentsBody struct {
	Agents []Agent   `json:"agents"`        // never null
	Next   uuid.UUID `json:"next,omitzero"` // the last agent, if more follow
}

func newAgentsBody(agents models.List[models.Agent]) agentsBody {
	return agentsBody{bodiesOf(agents.Items, NewAgent), agents.Next}
}

// errAfter refuses a page of agents after an agent that the account does not have.
var errAfter = problem.InvalidRequest("The query parameter after is not the id of an agent in this account. Begin again without it.")

// listAgents returns a page of the agents of the caller's account, ordered by name.
func (a *API) listAgents(c *gin.Context, caller models.Principal) error {
	page, err := readPage(c, models.MaxAgents, models.MaxAgents)
	if err != nil {
		return err
	}
	ctx, cancel := a.withTimeout(c, caller.Waited())
	defer cancel()
	var agents models.List[models.Agent]
	err = a.queries.Run(func() (err error) {
		agents, err = a.store.API.AgentsOf(ctx, caller, page)
		return err
	})
	if errors.Is(err, models.ErrAgentNotFound) {
		return errAfter
	}
	if err != nil {
		return err
	}
	c.PureJSON(http.StatusOK, newAgentsBody(agents))
	return nil
}
