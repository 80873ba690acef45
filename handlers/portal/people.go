package portal

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/keys"
	"portal/models/people"
	"portal/models/value"
	"portal/templates"
)

// peoplePages are the people of an account and the invitations.
type peoplePages struct {
	*site

	people      *people.People
	invitations *people.Invitations
	keys        *keys.Keys
}

// peoplePerPage is the number of people on a page, besides the invitations on the first one.
const peoplePerPage = 100

// showWithoutFactor filters the list of people.
const showWithoutFactor = "no-two-step"

// list shows the people of the account and, to owners, the form that invites one.
func (p *peoplePages) list(c *gin.Context) error {
	page, err := p.page(c)
	if err != nil {
		return err
	}
	if page.List.Left, err = p.leftKeys(c); err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page.List, page: present(page)})
}

// show shows the row of a person. Cancel leads to it.
func (p *peoplePages) show(c *gin.Context) error {
	asked := "remove"
	if c.Query("focus") == "role" {
		asked = "role"
	}
	return p.showRow(c, fmt.Sprintf("%s#%s-%s", peoplePath, asked, c.Param("id")), func(row *templates.PersonRow) error {
		row.Focused, row.RoleFocused = asked == "remove", asked == "role"
		return nil
	})
}

// newRole shows in the table the confirmation that a person is to become an owner or a member.
func (p *peoplePages) newRole(c *gin.Context) error {
	return p.showRow(c, "", func(row *templates.PersonRow) error {
		if row.RoleFrom == "" {
			row.Promoting, row.Demoting = !row.Owner, row.Owner && !row.LastOwner
		}
		return nil
	})
}

// updateRole changes the role of a person.
func (p *peoplePages) updateRole(c *gin.Context) error {
	id, role := idOf(c), people.Role(c.PostForm("role"))
	user, err := p.people.SetRole(c.Request.Context(), sessionFrom(c).AccountID, id, role, actorOf(c))
	if err != nil {
		return p.explain(c, err)
	}
	session := sessionFrom(c)
	notice := fmt.Sprintf("%s is now %s.", templates.Isolate(user.Email), roleName(user.Role))
	if user.ID == session.UserID { // the navigation changes too
		return p.redirectWith(c, peoplePath, notice)
	}
	page, err := p.page(c)
	if err != nil {
		return err
	}
	if row := page.List.Row(id); row != nil {
		row.RoleFocused = true
	}
	return p.reply(c, reply{
		notice:   notice,
		fragment: page.List, location: fmt.Sprintf("%s#role-%s", peoplePath, id),
	})
}

// explain shows the page with the reason why a change was refused. If err has another cause, it
// returns err.
func (p *peoplePages) explain(c *gin.Context, err error) error {
	if !errors.Is(err, value.ErrLastOwner) {
		return err
	}
	refusal := problem.From(err)
	page, err := p.page(c)
	if err != nil {
		return err
	}
	page.List.Problem = "The account must have an owner who can sign in with a password, a passkey or an identity provider. " +
		"Make such a person an owner first."
	if page.List.OneOwner() {
		page.List.Problem = "You are the only owner. Make someone else an owner first."
	}
	return p.reply(c, reply{status: refusal.Status, fragment: page.List, page: present(page)})
}

// showRow shows the page of people after change has changed the row of the person in the path. If
// location is not empty, a browser goes there instead.
func (p *peoplePages) showRow(c *gin.Context, location string, change func(*templates.PersonRow) error) error {
	id := idOf(c)
	user, err := p.people.Find(c.Request.Context(), sessionFrom(c).AccountID, id)
	if err == nil && user.RemovedAt != nil {
		err = value.ErrUserNotFound
	}
	if err != nil {
		return err
	}
	page, err := p.page(c)
	if err != nil {
		return err
	}
	row := page.List.Row(id)
	if row == nil { // on another page
		page.List.People = append([]templates.PersonRow{p.row(c, user)}, page.List.People...)
		row = &page.List.People[0]
	}
	if err := change(row); err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page.List, page: present(page), location: location})
}

// page returns the page of people that the query string selects.
func (p *peoplePages) page(c *gin.Context) (templates.PeoplePage, error) {
	session, ctx := sessionFrom(c), c.Request.Context()
	after, err := queryID(c, paramAfter)
	if err != nil {
		return templates.PeoplePage{}, err
	}
	read, filtered := p.people.List, owns(session) && c.Query(paramShow) == showWithoutFactor
	if filtered {
		read = p.people.ListWithoutFactor
	}
	users, err := read(ctx, session.AccountID, value.Page{After: after, Limit: peoplePerPage})
	if err != nil {
		return templates.PeoplePage{}, err
	}
	list := templates.PeopleList{
		Manage: owns(session), Paged: after != uuid.Nil, Next: pageAfter(peoplePath, paramAfter, users.Next), WithoutFactor: filtered,
	}
	if filtered && list.Next != "" {
		list.Next += "&" + url.Values{paramShow: {showWithoutFactor}}.Encode()
	}
	for _, user := range users.Items {
		list.People = append(list.People, p.row(c, user))
	}
	if list.Manage {
		last, err := p.people.LastOwner(ctx, session.AccountID)
		if err != nil {
			return templates.PeoplePage{}, err
		}
		if err := p.addRolesFrom(c, &list); err != nil {
			return templates.PeoplePage{}, err
		}
		if row := list.Row(last); row != nil {
			row.LastOwner = true
		}
	}
	page := templates.PeoplePage{List: list}
	if list.Manage {
		page.Form = &templates.InvitationForm{Mails: p.mailsOn}
	}
	if !list.Paged && !filtered {
		page.List.Invitations, err = p.invitationRows(c)
	}
	return page, err
}

// addRolesFrom notes in a list whose role the identity provider decides.
func (p *peoplePages) addRolesFrom(c *gin.Context, list *templates.PeopleList) error {
	decided, err := p.people.RolesFromProvider(c.Request.Context(), sessionFrom(c).AccountID)
	for _, id := range decided {
		if row := list.Row(id); row != nil {
			row.RoleFrom = p.provider
		}
	}
	return err
}

func (p *peoplePages) row(c *gin.Context, user people.User) templates.PersonRow {
	return templates.PersonRow{
		ID: user.ID, Email: user.Email, Owner: user.Role == people.RoleOwner, You: user.ID == sessionFrom(c).UserID,
		Disabled: user.DisabledAt != nil, LastSignIn: optionalMoment(user.LastSignInAt, p.now()),
	}
}

// paramRemoved is the person who has just been removed.
const paramRemoved = "removed"

// newRemoval shows in the table the confirmation that a person is to be removed.
func (p *peoplePages) newRemoval(c *gin.Context) error {
	return p.showRow(c, "", func(row *templates.PersonRow) error {
		keys, err := p.keys.GeneratedBy(c.Request.Context(), sessionFrom(c).AccountID, row.ID)
		row.Confirming, row.Keys = true, len(keys)
		return err
	})
}

// createRemoval removes a person from the account. Owners who remove themselves are signed
// out.
func (p *peoplePages) createRemoval(c *gin.Context) error {
	id, session, ctx := idOf(c), sessionFrom(c), c.Request.Context()
	user, err := p.people.Find(ctx, session.AccountID, id)
	if err != nil {
		return err
	}
	if err := p.people.Remove(ctx, session.AccountID, id, actorOf(c)); err != nil {
		return p.explain(c, err)
	}
	if id == session.UserID {
		c.Set(sessionContextKey, people.Session{}) // the notice is for a visitor
		return p.redirectWith(c, signInPath, fmt.Sprintf("You have left %s.", session.AccountName))
	}
	page, err := p.page(c)
	if err != nil {
		return err
	}
	if page.List.Left, err = p.keysOf(c, user); err != nil {
		return err
	}
	page.List.Focused = true
	return p.reply(c, reply{
		notice:   fmt.Sprintf("%s was removed and signed out.", templates.Isolate(user.Email)),
		fragment: page.List,
		location: peoplePath + "?" + url.Values{paramRemoved: {id.String()}}.Encode(),
	})
}

// leftKeys returns the active keys of the removed person in the query string, or nil if there is
// none.
func (p *peoplePages) leftKeys(c *gin.Context) (*templates.LeftKeys, error) {
	id, ok := parseID(c.Query(paramRemoved))
	if !ok || !owns(sessionFrom(c)) {
		return nil, nil
	}
	user, err := p.people.Find(c.Request.Context(), sessionFrom(c).AccountID, id)
	if errors.Is(err, value.ErrUserNotFound) || err == nil && user.RemovedAt == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.keysOf(c, user)
}

// keysOf returns the active keys that a person has generated, or nil if there are none.
func (p *peoplePages) keysOf(c *gin.Context, user people.User) (*templates.LeftKeys, error) {
	keys, err := p.keys.GeneratedBy(c.Request.Context(), sessionFrom(c).AccountID, user.ID)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	return &templates.LeftKeys{Email: user.Email, Keys: keys}, nil
}

// roleName returns the role in a sentence: "an owner" or "a member".
func roleName(role people.Role) string {
	if role == people.RoleOwner {
		return "an owner"
	}
	return "a member"
}
