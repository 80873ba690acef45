package portal

import (
	"errors"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// changePassword changes the user's password. It waits for a turn to hash, and limits its own time.
func (p *Portal) changePassword(c *gin.Context) error {
	token, err := p.store.ChangePassword(c.Request.Context(), sessionFrom(c),
		c.PostForm("current_password"), c.PostForm("new_password"), actorOf(c))
	withDeadline(c, func() {
		if err != nil {
			err = p.refusePassword(c, err)
		} else {
			err = p.passwordChanged(c, token)
		}
	})
	return err
}

// refusePassword shows the form again with the reason for the refusal. It returns err if err is
// not about the input.
func (p *Portal) refusePassword(c *gin.Context, err error) error {
	refusal := problem.From(err)
	var form templates.PasswordForm
	if errors.Is(err, models.ErrWrongCredentials) {
		form.CurrentProblem = "The current password is incorrect."
	}
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		form.NewProblem = invalid.Message
	}
	if _, ok := errors.AsType[*models.SignInLimitError](err); ok {
		form.Problem = refusal.Message
	}
	if form == (templates.PasswordForm{}) {
		return err
	}
	setRetryAfter(c, refusal)
	form.Email, form.Focused = sessionFrom(c).Email, true
	return p.reply(c, reply{status: refusal.Status, fragment: form, page: func() (templates.Page, error) {
		return p.accountPage(c, form)
	}})
}

// passwordChanged gives the browser the new token of its session, and renews the account page.
func (p *Portal) passwordChanged(c *gin.Context, token string) error {
	if err := p.sessions.setCookie(c.Writer, token); err != nil {
		return err
	}
	list, err := p.sessionList(c)
	if err != nil {
		return err
	}
	form := templates.PasswordForm{Email: sessionFrom(c).Email, Focused: true}
	return p.reply(c, reply{
		notice:   "Password changed. Signed out of all other sessions.",
		fragment: templates.PasswordChanged{Form: form, List: list},
		location: accountPath,
	})
}
