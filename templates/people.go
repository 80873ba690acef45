package templates

import (
	"net/url"

	"github.com/google/uuid"

	"portal/models/keys"
)

// PeoplePage is /people.
type PeoplePage struct {
	Form *InvitationForm // nil for members
	List PeopleList

	Reveal *InvitationReveal // a new invitation; nil: none
}

func (PeoplePage) screen() screen { return screen{file: "people/index.html", section: SectionPeople} }

// PeopleMain is everything inside the main element of /people, for a form that replaced it.
type PeopleMain struct {
	PeoplePage

	OperatorNotice string // as in [Frame]
}

func (PeopleMain) fragment() string { return "people-main" }

// Notice returns "": the page has no notice.
func (PeopleMain) Notice() string { return "" }

// InvitationForm is the form that invites a person.
type InvitationForm struct {
	Email        string // as submitted
	Owner        bool   // the new person is to be an owner
	Mails        bool   // the portal sends the link to the email
	EmailProblem string // the error of the email
	RoleProblem  string // the error of the role
	Problem      string // an error that concerns neither field
}

func (InvitationForm) fragment() string { return "invitation-form" }

// Refused reports whether the form was submitted and refused, so the email takes the focus.
func (f InvitationForm) Refused() bool {
	return f.EmailProblem != "" || f.RoleProblem != "" || f.Problem != ""
}

// PeopleList is the table of people and pending invitations.
type PeopleList struct {
	People      []PersonRow
	Invitations []InvitationRow
	Manage      bool      // the user may manage people
	Problem     string    // why a change was refused
	Left        *LeftKeys // the keys of a person who was removed; nil if there are none
	Next        string    // URL of the next page; empty on the last one
	Paged       bool      // this is not the first page
	Focused     bool      // the heading takes the focus

	WithoutFactor bool // only people without two-step verification
}

func (PeopleList) fragment() string { return "people-list" }

// Row returns the row of a person, or nil if the list does not have it.
func (l PeopleList) Row(id uuid.UUID) *PersonRow {
	for i := range l.People {
		if l.People[i].ID == id {
			return &l.People[i]
		}
	}
	return nil
}

// OneOwner reports whether the list has everyone in the account, and only one of them is an owner.
func (l PeopleList) OneOwner() bool {
	owners := 0
	for _, person := range l.People {
		if person.Owner {
			owners++
		}
	}
	return owners == 1 && l.Next == "" && !l.Paged && !l.WithoutFactor
}

// PersonRow is a user of the account.
type PersonRow struct {
	ID          uuid.UUID
	Email       string
	Owner       bool // otherwise a member
	You         bool // the signed-in user
	Disabled    bool
	LastSignIn  *Moment // nil if the person has never signed in
	Confirming  bool    // the row confirms the removal
	Promoting   bool    // the row confirms that the person becomes an owner
	Demoting    bool    // the row confirms that the person becomes a member
	LastOwner   bool    // the person can neither become a member nor be removed
	RoleFrom    string  // the name of the provider that decides about the role; may be empty
	Keys        int     // active keys that the person has generated, for the confirmation
	Focused     bool    // the Remove button takes the focus
	RoleFocused bool    // the button that changes the role takes the focus
}

// InvitationRow is a pending invitation.
type InvitationRow struct {
	ID      uuid.UUID
	Email   string
	Role    string // "an owner" or "a member"
	Expires Moment
}

// LeftKeys are the active keys that a removed person has generated.
type LeftKeys struct {
	Email string
	Keys  []keys.Key
}

// Select returns the URL of the list with the keys selected.
func (l LeftKeys) Select() string {
	query := url.Values{}
	for _, key := range l.Keys {
		query.Add("selected", key.ID.String())
	}
	return "/api-keys?" + query.Encode() + "#api-key-list"
}

// InvitationReveal shows the link of a new invitation once, as a page or as a dialog.
type InvitationReveal struct {
	Email   string
	Role    string // "an owner" or "a member"
	Link    string // rendered once, in this response only
	Expires Moment
	Mailed  bool // the person gets an email with another link
	Again   bool // the link replaces an earlier one
}

// End returns the end of the reveal.
func (InvitationReveal) End() RevealEnd {
	return RevealEnd{What: "link", Remedy: "“Send again” makes a new one.", Back: "/people"}
}

// Heading is the heading of the page or dialog.
func (r InvitationReveal) Heading() string {
	if r.Again {
		return "New invitation link"
	}
	return "Invitation created"
}

func (InvitationReveal) screen() screen {
	return screen{file: "people/invitation.html", section: SectionPeople}
}

// InvitationCreated updates the page after a person was invited: an empty form, the table and the
// dialog.
type InvitationCreated struct {
	List   *PeopleList // nil leaves the table as it is, because it could not be read
	Reveal InvitationReveal
	Mails  bool // as in [InvitationForm]
}

func (InvitationCreated) fragment() string { return "invitation-created" }

// Form returns the empty form.
func (i InvitationCreated) Form() InvitationForm { return InvitationForm{Mails: i.Mails} }

// JoinPage is the page of an invitation.
type JoinPage struct {
	Account  string // name of the account; empty if the invitation does not work
	Role     string // "an owner" or "a member"
	Inviter  string // email of the user who sent it; empty: an operator or a user who is gone
	SignedIn string // email of the user who is signed in; empty for a visitor

	Provider     string // name of the OpenID Connect provider; empty: none
	ProviderPath string // of the link that joins with it

	Form JoinForm
}

func (JoinPage) screen() screen { return screen{file: "people/join.html", layout: layoutPlain} }

// JoinForm is the form that accepts an invitation. It never contains the submitted password.
type JoinForm struct {
	Email           string // of the new user
	Action          string // path of the form
	PasswordProblem string // the error of the password
	Refusal         string // why the invitation was not accepted; the form is then not shown
	NoPasswords     bool   // sign-in with a password is turned off, so there is no form
}

func (JoinForm) fragment() string { return "join" }
