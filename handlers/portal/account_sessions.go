package portal

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
)

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
	session := sessionFrom(c)
	err := p.Store.Sessions.Revoke(c.Request.Context(), session.AccountID, session.UserID, idOf(c), actorOf(c))
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
	err := p.Store.Sessions.RevokeOthers(c.Request.Context(), session.AccountID, session.UserID, session.ID, actorOf(c))
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
