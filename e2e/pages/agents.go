package pages

// Agents is the page at /agents.
type Agents struct{ Frame }

// OpenAgents opens the page.
func OpenAgents(b *Tab) Agents {
	b.Open("/agents")
	return ExpectAgents(b)
}

// ExpectAgents waits until the tab shows the page.
func ExpectAgents(b *Tab) Agents {
	b.expectPage("/agents", "Agents")
	return Agents{Frame{b}}
}

// Create submits the form for a new agent.
func (a Agents) Create(name string) {
	a.Fill("Name", name)
	a.Click("Create agent")
}

// List is the list of agents.
func (a Agents) List() Area { return a.In("list", "All agents") }

// StartRemoval opens the confirmation of an agent's removal and returns its entry.
func (a Agents) StartRemoval(name string) Area {
	a.Row(name).Click("Remove")
	a.Row(name).Expect("button", "Confirm removal")
	a.settled()
	return a.Row(name)
}

// Remove removes the agent, confirms the removal and waits until it is done.
func (a Agents) Remove(name string) {
	a.StartRemoval(name).Click("Confirm removal")
	a.Row(name).ExpectGone()
	a.settled()
}
