package portal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/agents"
	"portal/models/calls"
	"portal/models/value"
	"portal/templates"
)

// agentPages are the pages of agents, and the examples that use one.
type agentPages struct {
	*site

	agents *agents.Agents
	calls  *calls.Calls
}

// agentsPerPage is the number of agents on a page.
const agentsPerPage = 100

// list shows a page of the agents, and the form that creates one.
func (p *agentPages) list(c *gin.Context) error {
	page, err := p.page(c, templates.AgentForm{}, templates.AgentItem{})
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page.List, page: present(page)})
}

// show shows an agent of the list. Cancel leads to it.
func (p *agentPages) show(c *gin.Context) error {
	agent, err := p.find(c)
	if err != nil {
		return err
	}
	asked := "remove"
	if focus := c.Query("focus"); focus == "rename" || focus == "pause" {
		asked = focus
	}
	item := templates.AgentItem{Agent: agent, Focused: asked == "remove", RenameFocused: asked == "rename", PauseFocused: asked == "pause"}
	return p.reply(c, reply{fragment: item, location: fmt.Sprintf("%s#%s-%s", agentsPath, asked, agent.ID)})
}

// editName shows the form for a new name in the item of an agent.
func (p *agentPages) editName(c *gin.Context) error {
	agent, err := p.find(c)
	if err != nil {
		return err
	}
	return p.ask(c, http.StatusOK, templates.AgentItem{Agent: agent, Rename: &templates.Rename{Name: agent.Name}})
}

func (p *agentPages) rename(c *gin.Context) error {
	agent, err := p.find(c)
	if err != nil {
		return err
	}
	name := c.PostForm("name")
	renamed, err := p.agents.Rename(c.Request.Context(), agent.AccountID, agent.ID, name, actorOf(c))
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		return p.ask(c, http.StatusUnprocessableEntity, templates.AgentItem{Agent: agent, Rename: &templates.Rename{Name: name, Problem: invalid.Message}})
	}
	if err != nil {
		return err
	}
	return p.reply(c, reply{
		notice:   fmt.Sprintf("Agent “%s” renamed to “%s”.", templates.Isolate(agent.Name), templates.Isolate(renamed.Name)),
		fragment: templates.AgentItem{Agent: renamed, RenameFocused: true},
		location: fmt.Sprintf("%s#rename-%s", agentsPath, agent.ID),
	})
}

// ask shows in the list an item that asks something.
func (p *agentPages) ask(c *gin.Context, status int, item templates.AgentItem) error {
	return p.reply(c, reply{status: status, fragment: item, page: func() (templates.Page, error) {
		return p.page(c, templates.AgentForm{}, item)
	}})
}

func (p *agentPages) create(c *gin.Context) error {
	name := c.PostForm("name")
	// A form without an id is accepted, but a repeat of it creates another agent.
	formID, _ := parseID(c.PostForm("form_id"))
	agent, err := p.agents.Create(c.Request.Context(), sessionFrom(c).AccountID,
		agents.NewAgent{Name: name, FormID: formID}, actorOf(c))
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		return p.refuse(c, http.StatusUnprocessableEntity, name, invalid.Message)
	}
	if errors.Is(err, value.ErrAgentRemoved) {
		return p.refuse(c, http.StatusConflict, name,
			"This form has already created an agent with this name, which was removed. To create another one, press Create agent again.")
	}
	if errors.Is(err, value.ErrAgentLimit) {
		return p.refuse(c, http.StatusUnprocessableEntity, name, problem.From(err).Message)
	}
	if err != nil {
		return err
	}
	page, err := p.page(c, templates.AgentForm{Focused: true}, templates.AgentItem{Agent: agent, New: true})
	if err != nil {
		return err
	}
	return p.reply(c, reply{
		notice:   fmt.Sprintf("Agent “%s” was created.", templates.Isolate(agent.Name)),
		fragment: page,
		location: agentsPath + "#agent-" + agent.ID.String(),
	})
}

// refuse shows a new form with the name and its error message.
func (p *agentPages) refuse(c *gin.Context, status int, name, message string) error {
	form := templates.AgentForm{FormID: uuid.New(), Name: name, NameProblem: message, Focused: true}
	return p.reply(c, reply{
		status: status, fragment: form,
		page: func() (templates.Page, error) { return p.page(c, form, templates.AgentItem{}) },
	})
}

func (p *agentPages) find(c *gin.Context) (agents.Agent, error) {
	return p.agents.Find(c.Request.Context(), sessionFrom(c).AccountID, idOf(c))
}

// page returns the page of agents that the query string selects. If shown is not zero, it
// replaces the item with the same id, or is the first item.
func (p *agentPages) page(c *gin.Context, form templates.AgentForm, shown templates.AgentItem) (templates.AgentsPage, error) {
	after, err := queryID(c, paramAfter)
	if err != nil {
		return templates.AgentsPage{}, err
	}
	agents, err := p.agents.List(c.Request.Context(), sessionFrom(c).AccountID, value.Page{After: after, Limit: agentsPerPage})
	if err != nil {
		return templates.AgentsPage{}, err
	}
	form.FormID = uuid.New()
	list := templates.AgentList{Paged: after != uuid.Nil, Next: pageAfter(agentsPath, paramAfter, agents.Next)}
	missing := shown.ID != uuid.Nil
	sortAgents(agents.Items)
	for _, agent := range agents.Items {
		item := templates.AgentItem{Agent: agent}
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

// newRemoval shows in the list the confirmation that an agent is to be removed.
func (p *agentPages) newRemoval(c *gin.Context) error {
	agent, err := p.find(c)
	if err != nil {
		return err
	}
	used, err := p.agents.LastUsed(c.Request.Context(), agent.AccountID, agent.ID)
	if err != nil {
		return err
	}
	item := templates.AgentItem{Agent: agent, Confirming: true}
	if !used.IsZero() {
		item.LastUsed = optionalMoment(&used, p.now())
	}
	return p.ask(c, http.StatusOK, item)
}

// newPause asks whether to pause an agent, and says how many calls end.
func (p *agentPages) newPause(c *gin.Context) error {
	agent, err := p.find(c)
	if err != nil {
		return err
	}
	item := templates.AgentItem{Agent: agent, Pausing: agent.PausedAt == nil, PauseFocused: true}
	if item.Calls, err = p.calls.OpenOfAgent(c.Request.Context(), agent.AccountID, agent.ID); err != nil {
		return err
	}
	return p.ask(c, http.StatusOK, item)
}

// setPaused returns the handler that pauses or resumes an agent.
func (p *agentPages) setPaused(paused bool, notice string) handler {
	return func(c *gin.Context) error {
		agent, err := p.agents.SetPaused(c.Request.Context(), sessionFrom(c).AccountID, idOf(c), paused, actorOf(c))
		if err != nil {
			return err
		}
		return p.reply(c, reply{
			notice:   fmt.Sprintf(notice, templates.Isolate(agent.Name)),
			fragment: templates.AgentItem{Agent: agent, PauseFocused: true},
			location: fmt.Sprintf("%s#pause-%s", agentsPath, agent.ID),
		})
	}
}

func (p *agentPages) createRemoval(c *gin.Context) error {
	agent, err := p.agents.Remove(c.Request.Context(), sessionFrom(c).AccountID, idOf(c), actorOf(c))
	if err != nil {
		return err
	}
	page, err := p.page(c, templates.AgentForm{}, templates.AgentItem{})
	if err != nil {
		return err
	}
	page.List.Focused = true
	return p.reply(c, reply{
		notice:   fmt.Sprintf("Agent “%s” was removed.", templates.Isolate(agent.Name)),
		fragment: templates.AgentRemoved{List: page.List},
		location: agentsPath,
	})
}

// showIntegration shows how to use a key with an agent: the one in the query string, or the first.
func (p *agentPages) showIntegration(c *gin.Context) error {
	list, err := p.agents.List(c.Request.Context(), sessionFrom(c).AccountID, value.Page{Limit: value.MaxAgents})
	if err != nil {
		return err
	}
	wanted, err := queryID(c, "agent")
	if err != nil {
		return err
	}
	page, id := templates.IntegrationPage{
		Agents: list.Items, Voice: p.callsOn, Webhooks: p.webhooksOn, Support: p.support,
	}, ""
	for _, agent := range list.Items {
		if wanted == uuid.Nil || agent.ID == wanted {
			page.Agent, id = agent, agent.ID.String()
			break
		}
	}
	if wanted != page.Agent.ID && wanted != uuid.Nil {
		return problem.NotFound()
	}
	sortAgents(page.Agents)
	page.Examples = templates.NewExamples(p.url("/api/widget/token"), id)
	page.Prompt = templates.NewPrompt(p.baseURL.String(), id)
	return p.reply(c, reply{fragment: page, page: present(page), address: c.Request.URL.RequestURI()})
}

// exampleAgent returns the id of an agent of an account for examples, empty if it has none.
func exampleAgent(ctx context.Context, all *agents.Agents, accountID uuid.UUID) (string, error) {
	first, err := all.List(ctx, accountID, value.Page{Limit: 1})
	if err != nil || len(first.Items) == 0 {
		return "", err
	}
	return first.Items[0].ID.String(), nil
}
