package portal

import (
	"github.com/gin-gonic/gin"

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
	wanted, asked, err := queryID(c, "agent")
	if err != nil {
		return err
	}
	page, id := templates.IntegrationPage{Agents: list.Items}, ""
	for _, agent := range list.Items {
		if !asked || agent.ID == wanted {
			page.Agent, id = agent, agent.ID.String()
			break
		}
	}
	if asked && id == "" {
		return problem.NotFound()
	}
	page.Examples = templates.NewExamples(p.url("/api/widget/token"), id)
	return p.reply(c, reply{fragment: page, page: present(page)})
}
