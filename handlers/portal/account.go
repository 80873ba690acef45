package portal

import (
	"errors"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// accountPages are the pages on which users change how they sign in.
type accountPages struct {
	*site

	credentials *models.Credentials
	passkeys    *passkeys // nil: none
	provider    *provider // nil: none
	mail        bool      // the portal sends mail
}

const accountPath = "/account"

// show shows the user's sessions and the forms that change the email and the password.
func (p *accountPages) show(c *gin.Context) error {
	page, err := p.page(c, passwordForm(c))
	if err != nil {
		return err
	}
	page.Sessions.EndFocused = c.Query("asked") != "" // after Cancel
	page.Factors.Confirmed = c.Query(paramConfirmed) != ""
	if c.Query("asked") == "factors" {
		page.Sessions.EndFocused, page.Factors.Focused = false, true
		return p.reply(c, reply{fragment: page.Factors, page: present(page)})
	}
	return p.reply(c, reply{fragment: page.Sessions, page: present(page)})
}

// newOthersRevocation asks whether to end all of the user's other sessions.
func (p *accountPages) newOthersRevocation(c *gin.Context) error {
	page, err := p.page(c, passwordForm(c))
	if err != nil {
		return err
	}
	page.Sessions.Confirming = page.Sessions.Others() > 0
	return p.reply(c, reply{fragment: page.Sessions, page: present(page)})
}

// revokeSession ends one of the user's other sessions.
func (p *accountPages) revokeSession(c *gin.Context) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	session := sessionFrom(c)
	err = p.sessions.Revoke(c.Request.Context(), session.AccountID, session.UserID, id, actorOf(c))
	if errors.Is(err, models.ErrSessionNotFound) {
		// A 401 would mean that the session of this request has ended.
		return problem.Problem{
			Status: http.StatusNotFound, Code: problem.CodeNotFound,
			Message: "Session not found. It may have already ended. Reload the page to see your active sessions.",
		}
	}
	if err != nil {
		return err
	}
	return p.sessionsEnded(c, "Session ended.")
}

// revokeOtherSessions ends all of the user's sessions except this one, if there are any.
func (p *accountPages) revokeOtherSessions(c *gin.Context) error {
	session := sessionFrom(c)
	err := p.sessions.RevokeOthers(c.Request.Context(), session.AccountID, session.UserID, session.ID, actorOf(c))
	if err != nil {
		return err
	}
	return p.sessionsEnded(c, "Signed out of all other sessions.")
}

func (p *accountPages) sessionsEnded(c *gin.Context, notice string) error {
	list, err := p.sessionList(c)
	if err != nil {
		return err
	}
	list.Focused = true
	return p.reply(c, reply{notice: notice, fragment: list, location: accountPath})
}

func (p *accountPages) page(c *gin.Context, form templates.PasswordForm) (templates.AccountPage, error) {
	list, err := p.sessionList(c)
	if err != nil {
		return templates.AccountPage{}, err
	}
	identity, err := p.identityForm(c)
	if err != nil {
		return templates.AccountPage{}, err
	}
	factors, err := p.factors(c)
	return templates.AccountPage{
		Email: p.emailForm(c), Sessions: list, Password: form,
		NoPasswords: p.passwordsOff, Identity: identity, Factors: factors,
	}, err
}

// sessionList returns the user's sessions, this one first.
func (p *accountPages) sessionList(c *gin.Context) (templates.SessionList, error) {
	current := sessionFrom(c)
	sessions, err := p.sessions.List(c.Request.Context(), current.AccountID, current.UserID)
	if err != nil {
		return templates.SessionList{}, err
	}
	now := p.now()
	var list templates.SessionList
	for _, session := range sessions {
		item := templates.SessionItem{
			ID: session.ID, Device: templates.Device(session.UserAgent), Current: session.ID == current.ID,
			Began: templates.NewMoment(session.CreatedAt, now), FirstAddress: session.FirstAddress,
			Seen: templates.NewMoment(session.LastSeenAt, now), LastAddress: session.LastAddress,
		}
		if item.Current {
			list.Sessions = slices.Insert(list.Sessions, 0, item)
		} else {
			list.Sessions = append(list.Sessions, item)
		}
	}
	return list, nil
}
