package portal

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models/people"
	"portal/models/value"
	"portal/templates"
)

// createInvitation invites a person and shows the link once.
func (p *peoplePages) createInvitation(c *gin.Context) error {
	email, role := value.ReadEmail(c.PostForm("email")), people.Role(c.PostForm("role"))
	invitation, token, err := p.invitations.Create(c.Request.Context(), sessionFrom(c).AccountID, email, role, actorOf(c))
	if err != nil {
		return p.refuseInvitation(c, templates.InvitationForm{Email: email, Owner: role == people.RoleOwner, Mails: p.mailsOn}, err)
	}
	return p.showInvitation(c, invitation, token, false)
}

// renewInvitation sends a pending invitation again, with a new link that is shown once.
func (p *peoplePages) renewInvitation(c *gin.Context) error {
	invitation, token, err := p.invitations.Renew(c.Request.Context(), sessionFrom(c).AccountID, idOf(c), actorOf(c))
	if err != nil {
		return err
	}
	return p.showInvitation(c, invitation, token, true)
}

// showInvitation shows the link of an invitation once. If again is set, it replaces an earlier
// link.
func (p *peoplePages) showInvitation(c *gin.Context, invitation people.Invitation, token string, again bool) error {
	created := templates.InvitationCreated{Reveal: templates.InvitationReveal{
		Email: invitation.Email, Link: p.url(invitationPath, token),
		Role: roleName(invitation.Role), Expires: templates.NewMoment(invitation.ExpiresAt, p.now()),
		Mailed: invitation.Mailed, Again: again,
	}, Mails: p.mailsOn}
	response := reply{fragment: created, page: present(created.Reveal), reveals: true}
	if page, err := p.page(c); err != nil {
		_ = c.Error(err) // the link must be shown now, the list can wait
	} else {
		page.Reveal, created.List = &created.Reveal, &page.List
		response.fragment = p.fragment(c, page, created)
	}
	return p.reply(c, response)
}

// fragment returns what HTMX gets in place of a page: the rest of the page too if the form came
// from the page that asks for the password.
func (p *peoplePages) fragment(c *gin.Context, page templates.PeoplePage, part templates.Fragment) templates.Fragment {
	if reauthenticated(c) {
		return templates.PeopleMain{PeoplePage: page, OperatorNotice: p.operatorNotice}
	}
	return part
}

// refuseInvitation shows the form again with the reason why nobody was invited. If err is not about
// the input, it returns err.
func (p *peoplePages) refuseInvitation(c *gin.Context, form templates.InvitationForm, err error) error {
	invalid, isInvalid := errors.AsType[*value.InvalidError](err)
	switch {
	case isInvalid && invalid.Field == "role":
		form.RoleProblem = invalid.Message
	case isInvalid, errors.Is(err, value.ErrEmailTaken), errors.Is(err, value.ErrEmailInvited):
		form.EmailProblem = problem.From(err).Message
	case errors.Is(err, value.ErrInvitationLimit):
		form.Problem = problem.From(err).Message
	default:
		return err
	}
	page, err := p.page(c)
	if err != nil {
		return err
	}
	page.Form = &form
	return p.reply(c, reply{status: http.StatusUnprocessableEntity, fragment: p.fragment(c, page, form), page: present(page)})
}

func (p *peoplePages) cancelInvitation(c *gin.Context) error {
	invitation, err := p.invitations.Cancel(c.Request.Context(), sessionFrom(c).AccountID, idOf(c), actorOf(c))
	if err != nil {
		return err
	}
	page, err := p.page(c)
	if err != nil {
		return err
	}
	page.List.Focused = true
	return p.reply(c, reply{
		notice:   fmt.Sprintf("The invitation for %s was cancelled.", templates.Isolate(invitation.Email)),
		fragment: p.fragment(c, page, page.List), location: peoplePath,
	})
}

func (p *peoplePages) invitationRows(c *gin.Context) ([]templates.InvitationRow, error) {
	invitations, err := p.invitations.Pending(c.Request.Context(), sessionFrom(c).AccountID)
	var rows []templates.InvitationRow
	for _, invitation := range invitations {
		rows = append(rows, templates.InvitationRow{
			ID: invitation.ID, Email: invitation.Email, Role: roleName(invitation.Role),
			Expires: templates.NewMoment(invitation.ExpiresAt, p.now()),
		})
	}
	return rows, err
}
