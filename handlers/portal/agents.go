package portal

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

const (
	agentsPath = "/agents"
	// agentsPerPage is the number of agents on a page.
	agentsPerPage = 100
)

// listAgents shows a page of the agents, and the form that creates one.
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
	agent, err := p.store.Agents.Create(c.Request.Context(), sessionFrom(c).AccountID,
		models.NewAgent{Name: name, FormID: formID}, actorOf(c))
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		return p.refuseAgent(c, http.StatusUnprocessableEntity, name, invalid.Message)
	}
	if errors.Is(err, models.ErrAgentRemoved) {
		return p.refuseAgent(c, http.StatusConflict, name,
			"This form has already created an agent with this name, which was removed. To create another one, press Create agent again.")
	}
	if errors.Is(err, models.ErrAgentLimit) {
		return p.refuseAgent(c, http.StatusUnprocessableEntity, name, problem.From(err).Message)
	}
	if err != nil {
		return err
	}
	page, err := p.agentsPage(c, templates.AgentForm{Focused: true}, agentItem(agent))
	if err != nil {
		return err
	}
	return p.reply(c, reply{
		notice:   fmt.Sprintf("Agent “%s” was created.", agent.Name),
		fragment: templates.AgentCreated{Form: page.Form, List: page.List},
		location: agentsPath,
	})
}

// refuseAgent shows a new form with the name and its error message.
func (p *Portal) refuseAgent(c *gin.Context, status int, name, message string) error {
	form := templates.AgentForm{FormID: uuid.New(), Name: name, NameProblem: message, Focused: true}
	return p.reply(c, reply{
		status: status, fragment: form,
		page: func() (templates.Page, error) { return p.agentsPage(c, form, templates.AgentItem{}) },
	})
}

// agent returns the account's agent with the id in the path.
func (p *Portal) agent(c *gin.Context) (models.Agent, error) {
	id, err := idOf(c)
	if err != nil {
		return models.Agent{}, err
	}
	return p.store.Agents.Find(c.Request.Context(), sessionFrom(c).AccountID, id)
}

// agentsPage returns the page of agents that the query string selects. If shown is not zero, it
// replaces the item with the same id, or is the first item.
func (p *Portal) agentsPage(c *gin.Context, form templates.AgentForm, shown templates.AgentItem) (templates.AgentsPage, error) {
	after, paged, err := queryID(c, paramAfter)
	if err != nil {
		return templates.AgentsPage{}, err
	}
	agents, err := p.store.Agents.List(c.Request.Context(), sessionFrom(c).AccountID, models.Page{After: after, Limit: agentsPerPage})
	if err != nil {
		return templates.AgentsPage{}, err
	}
	form.FormID = uuid.New()
	list := templates.AgentList{Paged: paged}
	if agents.Next != uuid.Nil {
		list.Next = agentsPath + "?" + url.Values{paramAfter: {agents.Next.String()}}.Encode()
	}
	missing := shown.ID != uuid.Nil
	for _, agent := range agents.Items {
		item := agentItem(agent)
		if item.ID == shown.ID {
			item, missing = shown, false
		}
		list.Agents = append(list.Agents, item)
	}
	if missing {
		list.Agents = slices.Insert(list.Agents, 0, shown)
	}
	return templates.AgentsPage{Form: form, List: list}, nil
}

func agentItem(agent models.Agent) templates.AgentItem {
	return templates.AgentItem{ID: agent.ID, Name: agent.Name}
}
