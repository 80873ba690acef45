package portal

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
	"portal/templates"
)

const agentsPath = "/agents"

// listAgents shows the agents and the form that creates one.
func (p *Portal) listAgents(c *gin.Context) error {
	page, err := p.agentsPage(c, templates.AgentForm{}, templates.AgentItem{})
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page.List, page: present(page)})
}

// showAgent shows an agent of the list. Cancel leads to it.
func (p *Portal) showAgent(c *gin.Context) error {
	agent, err := p.agent(c)
	if err != nil {
		return err
	}
	item := agentItem(agent)
	item.Focused = true
	return p.reply(c, reply{fragment: item, location: fmt.Sprintf("%s#remove-%s", agentsPath, agent.ID)})
}

// createAgent creates an agent.
func (p *Portal) createAgent(c *gin.Context) error {
	name := c.PostForm("name")
	// A form without an id is accepted, but a repeat of it creates another agent.
	formID, _ := parseID(c.PostForm("form_id"))
	agent, err := p.store.CreateAgent(c.Request.Context(), sessionFrom(c).AccountID,
		models.NewAgent{Name: name, FormID: formID}, actorOf(c))
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		return p.refuseAgent(c, http.StatusUnprocessableEntity, name, invalid.Message)
	}
	if errors.Is(err, models.ErrAgentRemoved) {
		return p.refuseAgent(c, http.StatusConflict, name,
			"This form has already created an agent with this name, which was removed. To create another one, press Create agent again.")
	}
	if err != nil {
		return err
	}
	page, err := p.agentsPage(c, templates.AgentForm{Focused: true}, templates.AgentItem{})
	if err != nil {
		return err
	}
	return p.reply(c, reply{
		notice:   fmt.Sprintf("Agent “%s” was created.", agent.Name),
		fragment: templates.AgentCreated{Form: page.Form, List: page.List},
		location: agentsPath,
	})
}

// refuseAgent shows a new form with the name and what is wrong with it.
func (p *Portal) refuseAgent(c *gin.Context, status int, name, message string) error {
	form := templates.AgentForm{FormID: uuid.New(), Name: name, NameProblem: message, Focused: true}
	return p.reply(c, reply{
		status: status, fragment: form,
		page: func() (templates.Page, error) { return p.agentsPage(c, form, templates.AgentItem{}) },
	})
}

// agent returns the account's agent that the path names.
func (p *Portal) agent(c *gin.Context) (models.Agent, error) {
	id, err := idOf(c)
	if err != nil {
		return models.Agent{}, err
	}
	return p.store.Agent(c.Request.Context(), sessionFrom(c).AccountID, id)
}

// agentsPage returns the page of agents. The item confirming, unless zero, replaces the one with
// its id.
func (p *Portal) agentsPage(c *gin.Context, form templates.AgentForm, confirming templates.AgentItem) (templates.AgentsPage, error) {
	agents, err := p.store.Agents(c.Request.Context(), sessionFrom(c).AccountID)
	if err != nil {
		return templates.AgentsPage{}, err
	}
	form.FormID = uuid.New()
	page := templates.AgentsPage{Form: form}
	for _, agent := range agents {
		item := agentItem(agent)
		if item.ID == confirming.ID {
			item = confirming
		}
		page.List.Agents = append(page.List.Agents, item)
	}
	return page, nil
}

func agentItem(agent models.Agent) templates.AgentItem {
	return templates.AgentItem{ID: agent.ID, Name: agent.Name}
}
