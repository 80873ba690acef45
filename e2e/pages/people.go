package pages

// People is the page at /people.
type People struct{ Frame }

// OpenPeople opens the page.
func OpenPeople(b *Tab) People {
	b.open("/people", "People")
	return People{Frame{b}}
}

// Submit submits the form that invites a person.
func (p People) Submit(email, role string) {
	p.Fill("Email", email)
	p.Choose("Role", role)
	p.Click("Invite")
}

// Invite invites a person and returns the reveal of the link.
func (p People) Invite(email, role string) Reveal {
	p.Submit(email, role)
	return expectReveal(p.Tab, "Invitation created", "Invitation link")
}

// Remove asks for a person's removal and confirms it.
func (p People) Remove(email string) {
	p.Row(email).Click("Remove")
	p.Row(email).ExpectFocus("button", "Cancel")
	p.settled()
	p.Row(email).Click("Confirm removal")
}

// Join opens the link of an invitation to the account with this name.
func Join(b *Tab, link, account string) { b.open(link[len(b.Site):], "Join "+account) }

// SubmitJoin submits the form of an invitation with a password.
func SubmitJoin(b *Tab, password string) {
	b.Fill("Password", password)
	b.Click("Join")
}
