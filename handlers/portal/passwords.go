package portal

import (
	"errors"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// changePassword changes the user's password, or sets the first one. It waits in the queue for
// password hashing, so it sets its own deadlines.
func (p *Portal) changePassword(c *gin.Context) error {
	token, err := p.store.Credentials.ChangePassword(c.Request.Context(), sessionFrom(c),
		c.PostForm(passwordField), c.PostForm("new_password"), actorOf(c))
	p.withDeadline(c, func() {
		if err != nil {
			err = p.refusePassword(c, err)
		} else {
			err = p.passwordChanged(c, token)
		}
	})
	return err
}

// passwordForm returns the empty form of the user.
func passwordForm(c *gin.Context) templates.PasswordForm {
	session := sessionFrom(c)
	return templates.PasswordForm{Email: session.Email, NoPassword: session.NoPassword}
}

// refusePassword shows the form again with the reason for the refusal. It returns err if err is
// not about the input.
func (p *Portal) refusePassword(c *gin.Context, err error) error {
	refusal := problem.From(err)
	form := passwordForm(c)
	switch _, limited := errors.AsType[*models.SignInLimitError](err); {
	case limited, errors.Is(err, models.ErrSignInTooOld):
		form.Problem = refusal.Message
	case errors.Is(err, models.ErrWrongCredentials) && form.NoPassword:
		form.NoPassword = false // a concurrent request has set one
		form.Problem = "Your password has already been set. To change it, enter it as the current password."
	case errors.Is(err, models.ErrWrongCredentials):
		form.CurrentProblem = "The current password is incorrect."
	}
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		form.NewProblem = invalid.Message
	}
	if form.Problem == "" && form.CurrentProblem == "" && form.NewProblem == "" {
		return err
	}
	setRetryAfter(c, refusal)
	form.Focused = true
	return p.reply(c, reply{status: refusal.Status, fragment: form, page: func() (templates.Page, error) {
		return p.accountPage(c, form)
	}})
}

// passwordChanged gives the browser the new token of its session, and renews the account page.
func (p *Portal) passwordChanged(c *gin.Context, token string) error {
	if err := p.sessions.set(c, token); err != nil {
		return err
	}
	list, err := p.sessionList(c)
	if err != nil {
		return err
	}
	session, notice := sessionFrom(c), "Password changed."
	changed := templates.PasswordChanged{Form: templates.PasswordForm{Email: session.Email, Focused: true}, List: list}
	if session.NoPassword {
		notice, changed.Email = "Password set.", &templates.EmailForm{Email: session.Email}
	}
	return p.reply(c, reply{
		notice:   notice + " Signed out of all other sessions.",
		fragment: changed,
		location: accountPath,
	})
}
