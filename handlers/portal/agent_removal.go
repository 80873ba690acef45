package portal

import (
	"fmt"

	"github.com/gin-gonic/gin"

	"portal/templates"
)

// newAgentRemoval shows in the list the confirmation that an agent is to be removed.
func (p *Portal) newAgentRemoval(c *gin.Context) error {
	agent, err := p.agent(c)
	if err != nil {
		return err
	}
	issued, err := p.store.Agents.LastToken(c.Request.Context(), agent.AccountID, agent.ID)
	if err != nil {
		return err
	}
	item := agentItem(agent)
	item.Confirming = true
	if !issued.IsZero() {
		item.LastToken = optionalMoment(&issued, p.now())
	}
	return p.reply(c, reply{fragment: item, page: func() (templates.Page, error) {
		return p.agentsPage(c, templates.AgentForm{}, item)
	}})
}

// createAgentRemoval removes an agent.
func (p *Portal) createAgentRemoval(c *gin.Context) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	agent, err := p.store.Agents.Remove(c.Request.Context(), sessionFrom(c).AccountID, id, actorOf(c))
	if err != nil {
		return err
	}
	page, err := p.agentsPage(c, templates.AgentForm{}, templates.AgentItem{})
	if err != nil {
		return err
	}
	page.List.Focused = true
	return p.reply(c, reply{
		notice:   fmt.Sprintf("Agent “%s” was removed.", agent.Name),
		fragment: templates.AgentRemoved{List: page.List},
		location: agentsPath,
	})
}
