package portal

import (
	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// showIntegration shows how to use a key with an agent: the one in the query string, or the first.
func (p *agentPages) showIntegration(c *gin.Context) error {
	list, err := p.agents.List(c.Request.Context(), sessionFrom(c).AccountID, models.Page{Limit: models.MaxAgents})
	if err != nil {
		return err
	}
	agents := list.Items
	var chosen uuid.UUID
	if len(agents) > 0 {
		chosen = agents[0].ID
	}
	if wanted, asked := c.GetQuery("agent"); asked {
		id, ok := parseID(wanted)
		if !ok {
			return problem.NotFound()
		}
		chosen = id
	}
	page := templates.IntegrationPage{Examples: templates.NewExamples(p.url("/api/widget/token"), "")}
	for _, agent := range agents {
		choice := templates.AgentChoice{ID: agent.ID, Name: agent.Name, Chosen: agent.ID == chosen}
		if choice.Chosen {
			page.Agent, page.Examples = agent.Name, templates.NewExamples(p.url("/api/widget/token"), agent.ID.String())
		}
		page.Agents = append(page.Agents, choice)
	}
	if page.Agent == "" && chosen != uuid.Nil {
		return problem.NotFound()
	}
	return p.reply(c, reply{fragment: page, page: present(page)})
}
