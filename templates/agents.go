package templates

import "github.com/google/uuid"

// AgentsPage is /agents.
type AgentsPage struct {
	Form AgentForm
	List AgentList
}

func (AgentsPage) screen() screen {
	return screen{file: "agents/index.html", layout: layoutPortal, section: SectionAgents}
}

// AgentForm is the form that creates an agent.
type AgentForm struct {
	FormID      uuid.UUID // of this rendered form: a repeat makes nothing
	Name        string    // as it was typed
	NameProblem string    // what is wrong with the name
	Focused     bool      // the field takes the focus
}

func (AgentForm) fragment() string { return "agent-form" }

// AgentList is the list of agents, or what stands in its place.
type AgentList struct {
	Agents  []AgentItem
	Focused bool // the list's heading takes the focus
}

func (AgentList) fragment() string { return "agent-list" }

// AgentItem is one agent in the list.
type AgentItem struct {
	ID         uuid.UUID
	Name       string
	Confirming bool // the item asks whether to remove the agent
	Focused    bool // the item's Remove takes the focus
}

func (AgentItem) fragment() string { return "agent" }

// AgentCreated is what changes on the page of agents when one is created.
type AgentCreated struct {
	Form AgentForm
	List AgentList
}

func (AgentCreated) fragment() string { return "agent-created" }

// AgentRemoved is what changes on the page of agents when one is removed.
type AgentRemoved struct{ List AgentList }

func (AgentRemoved) fragment() string { return "agent-removed" }
