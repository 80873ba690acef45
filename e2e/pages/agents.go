package pages

import "github.com/playwright-community/playwright-go"

// Agents is the page at /agents.
type Agents struct{ Frame }

// OpenAgents opens the page. The visitor must be signed in.
func OpenAgents(b *Tab) Agents {
	b.t.Helper()
	b.Open("/agents")
	return ExpectAgents(b)
}

// ExpectAgents waits until the tab shows the page.
func ExpectAgents(b *Tab) Agents {
	b.t.Helper()
	b.ExpectPath("/agents")
	b.ExpectHeading("Agents")
	return Agents{Frame{b}}
}

// Create submits the form for a new agent. The caller checks the result.
func (a Agents) Create(name string) {
	a.t.Helper()
	a.EnterName(name)
	a.Submit()
}

// EnterName fills in the form for a new agent.
func (a Agents) EnterName(name string) {
	a.t.Helper()
	a.fill(a.role("textbox", "Name"), name, "the name")
}

// Submit submits the form for a new agent as it is.
func (a Agents) Submit() {
	a.t.Helper()
	a.click(a.role("button", "Create agent"), "Create agent")
}

// CreateByDoubleClick submits the form for a new agent with a double click.
func (a Agents) CreateByDoubleClick(name string) {
	a.t.Helper()
	a.fill(a.role("textbox", "Name"), name, "the name")
	a.must(a.role("button", "Create agent").Dblclick(), "double-click Create agent")
}

// ExpectCount waits until the page lists count agents.
func (a Agents) ExpectCount(count int) {
	a.t.Helper()
	a.must(a.expect.Locator(a.Page.GetByRole("main").GetByRole("listitem")).ToHaveCount(count), "expect %d agents", count)
}

// Name returns the value of the form's field.
func (a Agents) Name() string {
	a.t.Helper()
	value, err := a.role("textbox", "Name").InputValue()
	a.must(err, "read the name")
	return value
}

// ExpectListed waits for an agent with this name and id.
func (a Agents) ExpectListed(name, id string) {
	a.t.Helper()
	entry := a.entry(name)
	a.visible(entry, "agent %q", name)
	if id != "" {
		a.must(a.expect.Locator(entry).ToContainText(id), "expect the id of %q", name)
	}
}

// ExpectNotListed waits until no agent has this name.
func (a Agents) ExpectNotListed(name string) {
	a.t.Helper()
	a.must(a.expect.Locator(a.entry(name)).ToHaveCount(0), "expect no agent %q", name)
}

// CopyID presses the button that copies the agent's id.
func (a Agents) CopyID(name string) {
	a.t.Helper()
	a.click(a.entry(name).GetByRole("button", playwright.LocatorGetByRoleOptions{Name: "Copy"}), "the copy button of "+name)
}

// Remove removes the agent, confirms the removal and waits until it is done.
func (a Agents) Remove(name string) {
	a.t.Helper()
	a.StartRemoval(name)
	a.click(a.role("button", "Confirm removal"), "Confirm removal")
	a.hidden(a.role("button", "Confirm removal"), "button Confirm removal")
	a.settled()
}

// StartRemoval opens the confirmation of an agent's removal.
func (a Agents) StartRemoval(name string) {
	a.t.Helper()
	a.click(within(a.entry(name), "button", "Remove"), "Remove of "+name)
	a.visible(a.role("button", "Confirm removal"), "button Confirm removal")
	a.settled()
}

// CancelRemoval cancels the removal that waits for confirmation.
func (a Agents) CancelRemoval() {
	a.t.Helper()
	a.click(a.role("button", "Cancel"), "Cancel")
	a.hidden(a.role("button", "Confirm removal"), "button Confirm removal")
	a.settled()
}

func (a Agents) entry(name string) playwright.Locator {
	main := a.Page.GetByRole("main")
	return main.GetByRole("listitem").Or(main.GetByRole("row")).Filter(playwright.LocatorFilterOptions{HasText: name})
}
