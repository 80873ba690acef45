package portal

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

const (
	peoplePath = "/people"
	// peoplePerPage is the number of people on a page. The first page also has the invitations.
	peoplePerPage = 100
)

// listPeople shows the people of the account and, to owners, the form that invites one.
func (p *Portal) listPeople(c *gin.Context) error {
	page, err := p.peoplePage(c)
	if err != nil {
		return err
	}
	if page.List.Left, err = p.leftKeys(c); err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page.List, page: present(page)})
}

// showPerson shows the row of a person. Cancel leads to it.
func (p *Portal) showPerson(c *gin.Context) error {
	return p.showRow(c, fmt.Sprintf("%s#remove-%s", peoplePath, c.Param("id")), func(row *templates.PersonRow) error {
		row.Focused = true
		return nil
	})
}

// updateRole changes the role of a person.
func (p *Portal) updateRole(c *gin.Context) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	role := models.Role(c.PostForm("role"))
	user, err := p.store.People.SetRole(c.Request.Context(), sessionFrom(c).AccountID, id, role, actorOf(c))
	if err != nil {
		return p.explainPeople(c, err)
	}
	session := sessionFrom(c)
	if user.ID == session.UserID {
		session.Role = user.Role
		c.Set(sessionContextKey, session)
	}
	page, err := p.peoplePage(c)
	if err != nil {
		return err
	}
	if row := page.List.Row(id); row != nil {
		row.RoleFocused = true
	}
	return p.reply(c, reply{
		notice:   fmt.Sprintf("%s is now %s.", user.Email, roleName(user.Role)),
		fragment: templates.PeopleChanged{Page: page}, location: fmt.Sprintf("%s#role-%s", peoplePath, id),
	})
}

// explainPeople shows the page with the reason why a change was refused. It returns err if it has
// another cause.
func (p *Portal) explainPeople(c *gin.Context, err error) error {
	if !errors.Is(err, models.ErrLastOwner) {
		return err
	}
	refusal := problem.From(err)
	page, err := p.peoplePage(c)
	if err != nil {
		return err
	}
	page.List.Problem = "The account must have an owner. Make another person an owner first."
	return p.reply(c, reply{status: refusal.Status, fragment: page.List, page: present(page)})
}

// showRow shows the page of people after change has changed the row of the person in the path. If
// location is not empty, a browser goes there instead.
func (p *Portal) showRow(c *gin.Context, location string, change func(*templates.PersonRow) error) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	user, err := p.store.People.Find(c.Request.Context(), sessionFrom(c).AccountID, id)
	if err == nil && user.RemovedAt != nil {
		err = models.ErrUserNotFound
	}
	if err != nil {
		return err
	}
	page, err := p.peoplePage(c)
	if err != nil {
		return err
	}
	row := page.List.Row(id)
	if row == nil { // on another page
		page.List.People = append([]templates.PersonRow{p.personRow(c, user)}, page.List.People...)
		row = &page.List.People[0]
	}
	if err := change(row); err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page.List, page: present(page), location: location})
}

// peoplePage returns the page of people that the query string selects.
func (p *Portal) peoplePage(c *gin.Context) (templates.PeoplePage, error) {
	session, ctx := sessionFrom(c), c.Request.Context()
	after, paged, err := queryID(c, paramAfter)
	if err != nil {
		return templates.PeoplePage{}, err
	}
	users, err := p.store.People.List(ctx, session.AccountID, models.Page{After: after, Limit: peoplePerPage})
	if err != nil {
		return templates.PeoplePage{}, err
	}
	list := templates.PeopleList{Manage: may(session, managePeople), Paged: paged}
	if users.Next != uuid.Nil {
		list.Next = peoplePath + "?" + url.Values{paramAfter: {users.Next.String()}}.Encode()
	}
	for _, user := range users.Items {
		list.People = append(list.People, p.personRow(c, user))
	}
	page := templates.PeoplePage{List: list}
	if list.Manage {
		page.Form = &templates.InvitationForm{}
	}
	if !paged {
		page.List.Invitations, err = p.invitationRows(c)
	}
	return page, err
}

func (p *Portal) personRow(c *gin.Context, user models.User) templates.PersonRow {
	return templates.PersonRow{
		ID: user.ID, Email: user.Email, Owner: user.Role == models.RoleOwner, You: user.ID == sessionFrom(c).UserID,
		Disabled: user.DisabledAt != nil, LastSignIn: optionalMoment(user.LastSignInAt, p.now()),
	}
}
