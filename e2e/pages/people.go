package pages

import (
	"regexp"

	"github.com/playwright-community/playwright-go"
)

// People is the page at /people.
type People struct{ Frame }

// OpenPeople opens the page. The visitor must be signed in.
func OpenPeople(b *Tab) People {
	b.t.Helper()
	b.Open("/people")
	return ExpectPeople(b)
}

// ExpectPeople waits until the tab shows the page.
func ExpectPeople(b *Tab) People {
	b.t.Helper()
	b.ExpectPath("/people")
	b.ExpectHeading("People")
	return People{Frame{b}}
}

// Submit submits the form that invites a person. The caller checks the result.
func (p People) Submit(email, role string) {
	p.t.Helper()
	p.fill(p.role("textbox", "Email"), email, "the email")
	_, err := p.role("combobox", "Role").SelectOption(playwright.SelectOptionValues{Labels: &[]string{role}})
	p.must(err, "choose the role %s", role)
	p.click(p.role("button", "Invite"), "Invite")
}

// Email returns the value of the form's field.
func (p People) Email() string {
	p.t.Helper()
	value, err := p.role("textbox", "Email").InputValue()
	p.must(err, "read the email")
	return value
}

// Invite invites a person and returns the link, which is shown once.
func (p People) Invite(email, role string) Invitation {
	p.t.Helper()
	p.Submit(email, role)
	i := Invitation{Tab: p.Tab, root: p.role("dialog", "Invitation created")}
	if !p.JavaScript {
		p.ExpectHeading("Invitation created")
		i.root = p.Page.GetByRole("main")
	}
	p.visible(i.field(), "the link")
	return i
}

// ExpectRow waits for a row with this email and role.
func (p People) ExpectRow(email, role string) {
	p.t.Helper()
	p.visible(within(p.row(email), "cell", role), "%s as %s", email, role)
}

// ExpectNoRow waits until no row has this email.
func (p People) ExpectNoRow(email string) {
	p.t.Helper()
	p.must(p.expect.Locator(p.row(email)).ToHaveCount(0), "expect no row of %s", email)
}

// ExpectNoButtons checks that the table and the page have no buttons that manage people.
func (p People) ExpectNoButtons() {
	p.t.Helper()
	p.must(p.expect.Locator(p.table().GetByRole("button")).ToHaveCount(0), "expect no buttons in the table")
	p.hidden(p.role("button", "Invite"), "button Invite")
}

// Press presses a button in the row of a person or an invitation. The caller checks the result.
func (p People) Press(button, email string) {
	p.t.Helper()
	p.click(within(p.row(email), "button", button), button+" of "+email)
}

// ExpectFocus waits until a button in the row has the focus.
func (p People) ExpectFocus(button, email string) {
	p.t.Helper()
	if p.JavaScript {
		p.focused(within(p.row(email), "button", button), "%s of %s", button, email)
	}
}

// Remove asks for a person's removal and confirms it. The caller checks the result.
func (p People) Remove(email string) {
	p.t.Helper()
	p.Press("Remove", email)
	p.ExpectFocus("Cancel", email)
	p.settled()
	p.Press("Confirm removal", email)
}

func (p People) table() playwright.Locator { return p.role("table", "People") }

func (p People) row(email string) playwright.Locator {
	// The email alone: other rows may have one that contains it.
	exactly := p.Page.GetByText(regexp.MustCompile(`^` + regexp.QuoteMeta(email) + `$`))
	return p.table().GetByRole("row").Filter(playwright.LocatorFilterOptions{Has: exactly})
}

// Invitation shows the link of a new invitation once: a dialog with JavaScript, a page without.
type Invitation struct {
	*Tab
	root playwright.Locator
}

// Link returns the link.
func (i Invitation) Link() string {
	i.t.Helper()
	value, err := i.field().InputValue()
	i.must(err, "read the link")
	return value
}

// Copy presses Copy link.
func (i Invitation) Copy() {
	i.t.Helper()
	i.click(within(i.root, "button", "Copy link"), "Copy link")
}

// Done closes the dialog or the page.
func (i Invitation) Done() People {
	i.t.Helper()
	i.must(i.expect.Locator(i.field()).Not().ToBeEditable(), "expect the link to be read-only")
	i.click(within(i.root, "button", "Done"), "Done")
	i.hidden(i.field(), "the link")
	return ExpectPeople(i.Tab)
}

func (i Invitation) field() playwright.Locator { return within(i.root, "textbox", "Invitation link") }

// Join is the page of an invitation.
type Join struct{ *Tab }

// OpenJoin opens the link of an invitation to the account with this name.
func OpenJoin(b *Tab, link, account string) Join {
	b.t.Helper()
	b.Open(link[len(b.Site):])
	b.ExpectHeading("Join " + account)
	return Join{b}
}

// Submit submits the form with a password. The caller checks the result.
func (j Join) Submit(password string) {
	j.t.Helper()
	j.fill(j.role("textbox", "Password"), password, "the password")
	j.click(j.role("button", "Join"), "Join")
}
