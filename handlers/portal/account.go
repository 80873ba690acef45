package portal

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

const accountPath = "/account"

// showAccount shows where the user is signed in, and the form that changes the
// password.
func (p *Portal) showAccount(c *gin.Context) error {
	page, err := p.accountPage(c, templates.PasswordForm{})
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page.Sessions, page: present(page)})
}

// revokeSession ends one of the user's other sessions.
func (p *Portal) revokeSession(c *gin.Context) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	session := customer(c)
	err = p.store.RevokeSession(c.Request.Context(), session.AccountID, session.UserID, id, actorOf(c))
	if errors.Is(err, models.ErrSessionNotFound) {
		// Whose it was cannot be told.
		return problem.Problem{
			Status: http.StatusNotFound, Code: problem.CodeNotFound,
			Message: "You have no such session. It may have ended already: reload the page to see those that have not.",
		}
	}
	if err != nil {
		return err
	}
	return p.sessionsEnded(c, "The session has ended.")
}

// revokeOtherSessions ends all of the user's sessions but this one. That there
// were none is no error: it is what was asked for.
func (p *Portal) revokeOtherSessions(c *gin.Context) error {
	session := customer(c)
	err := p.store.RevokeOtherSessions(c.Request.Context(), session.AccountID, session.UserID, session.ID, actorOf(c))
	if err != nil {
		return err
	}
	return p.sessionsEnded(c, "You are signed in here alone now.")
}

func (p *Portal) sessionsEnded(c *gin.Context, notice string) error {
	list, err := p.sessionList(c)
	if err != nil {
		return err
	}
	list.Focused = true
	return p.reply(c, reply{notice: notice, fragment: list, location: accountPath})
}

// changePassword changes the user's password. It waits its turn for longer than
// the database may take, and bounds its own time.
func (p *Portal) changePassword(c *gin.Context) error {
	session := customer(c)
	reference, err := p.store.ChangePassword(c.Request.Context(), session,
		c.PostForm("current_password"), c.PostForm("new_password"), actorOf(c))

	form := templates.PasswordForm{Email: session.Email, Focused: true}
	var told problem.Problem
	if err != nil {
		told = problem.From(err)
	}
	invalid, isInvalid := errors.AsType[*models.InvalidError](err)
	_, limited := errors.AsType[*models.SignInLimitError](err)
	wrong := errors.Is(err, models.ErrWrongCredentials)
	if isInvalid {
		form.NewProblem = invalid.Message
	}
	if wrong {
		form.CurrentProblem = "The current password is wrong."
	}
	switch {
	case isInvalid || wrong:
	case limited:
		form.Problem = told.Message
		c.Header("Retry-After", told.RetryAfterSeconds())
	case err != nil:
		return err
	}

	ctx, cancel := context.WithTimeout(c.Request.Context(), models.Timeout)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	if err != nil {
		return p.reply(c, reply{
			status: told.Status, fragment: form,
			page: func() (templates.Page, error) { return p.accountPage(c, form) },
		})
	}
	// The session goes on under a reference that nobody has seen.
	if err := p.sessions.hand(c.Writer, p.sessions.fresh(), reference); err != nil {
		return err
	}
	list, err := p.sessionList(c)
	if err != nil {
		return err
	}
	return p.reply(c, reply{
		notice:   "Your password was changed. You are signed in here alone now.",
		fragment: templates.PasswordChanged{Form: form, List: list},
		location: accountPath,
	})
}

func (p *Portal) accountPage(c *gin.Context, form templates.PasswordForm) (templates.AccountPage, error) {
	list, err := p.sessionList(c)
	form.Email = customer(c).Email
	return templates.AccountPage{Sessions: list, Password: form}, err
}

// sessionList is where the user is signed in, this session first.
func (p *Portal) sessionList(c *gin.Context) (templates.SessionList, error) {
	current := customer(c)
	sessions, err := p.store.Sessions(c.Request.Context(), current.AccountID, current.UserID)
	if err != nil {
		return templates.SessionList{}, err
	}
	now := p.now()
	var list templates.SessionList
	for _, session := range sessions {
		item := templates.SessionItem{
			ID: session.ID, Device: device(session.UserAgent), Current: session.ID == current.ID,
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
