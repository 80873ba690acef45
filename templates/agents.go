package templates

import (
	"github.com/google/uuid"

	"portal/models/agents"
	"portal/models/calls"
)

// AgentsPage is /agents. As a fragment it updates the page after an agent was created.
type AgentsPage struct {
	Form AgentForm
	List AgentList
}

func (AgentsPage) screen() screen { return screen{file: "agents/index.html", section: SectionAgents} }

func (AgentsPage) fragment() string { return "agent-created" }

// AgentForm is the form that creates an agent.
type AgentForm struct {
	FormID      uuid.UUID // unique for each rendered form; a repeat creates nothing
	Name        string    // as submitted
	NameProblem string    // the error of the name
	Focused     bool      // the field takes the focus
}

func (AgentForm) fragment() string { return "agent-form" }

// AgentList is the list of agents, or the text for an empty list.
type AgentList struct {
	Agents  []AgentItem
	Next    string // URL of the next page; empty on the last one
	Paged   bool   // this is not the first page
	Focused bool   // the heading takes the focus
}

func (AgentList) fragment() string { return "agent-list" }

// Whole reports whether the list has all agents.
func (l AgentList) Whole() bool { return l.Next == "" && !l.Paged }

// AgentItem is one agent in the list.
type AgentItem struct {
	agents.Agent

	Confirming   bool             // the item shows the confirmation
	Pausing      bool             // the item asks whether to pause the agent
	Calls        *calls.OpenCalls // that end; nil without LiveKit
	PauseFocused bool             // the Pause or Resume button takes the focus
	LastUsed     *Moment          // for the confirmation; nil: not in the last 90 days
	New          bool             // the item was just created
	Focused      bool             // the Remove button takes the focus

	Rename        *Rename // not nil while the item edits the name
	RenameFocused bool    // the Rename button takes the focus
}

func (AgentItem) fragment() string { return "agent" }

// AgentRemoved updates the page after an agent was removed.
type AgentRemoved struct{ List AgentList }

func (AgentRemoved) fragment() string { return "agent-removed" }
