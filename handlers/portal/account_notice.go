package portal

import (
	"time"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

// The parameters by which the page of the account is told what has been done on
// the way to it, and their values beside the id of a session.
const (
	paramEnded   = "ended"
	paramChanged = "changed"

	endedOthers     = "others"
	changedPassword = "password"
)

// What it says of that.
const (
	toldSession  = "The session has ended."
	toldSessions = "You are signed in here alone now."
	toldPassword = "Your password was changed. You are signed in here alone now."
)

// justNow is for how long a page that is loaded tells of a change.
const justNow = time.Minute

// accountNotice is what the page of the account says of what was done on the way
// to it. It says nothing that the list or the record does not bear out.
func (p *Portal) accountNotice(c *gin.Context, list templates.SessionList) (string, error) {
	ended := c.Query(paramEnded)
	id, isID := parseID(ended)
	switch {
	case isID && !list.Has(id):
		return toldSession, nil
	case ended == endedOthers && list.Others() == 0:
		return toldSessions, nil
	case c.Query(paramChanged) != changedPassword || list.Others() > 0:
		return "", nil
	}
	session := customer(c)
	changes, err := p.store.Activities(c.Request.Context(), session.AccountID,
		models.ActivityPage{Action: models.ActionPasswordChanged, Limit: 1})
	if err != nil {
		return "", err
	}
	if len(changes) == 1 && *changes[0].SubjectID == session.UserID && p.now().Sub(changes[0].At) < justNow {
		return toldPassword, nil
	}
	return "", nil
}
