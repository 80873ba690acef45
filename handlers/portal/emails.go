package portal

import (
	"errors"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// changeEmail changes the user's email. It waits in the queue for password hashing, so it sets its
// own deadlines.
func (p *Portal) changeEmail(c *gin.Context) error {
	session, email := sessionFrom(c), strings.TrimSpace(c.PostForm("email"))
	err := p.store.Credentials.ChangeEmail(c.Request.Context(), session, c.PostForm(passwordField), email, actorOf(c))
	if err != nil {
		p.withDeadline(c, func() { err = p.refuseEmail(c, email, err) })
		return err
	}
	if err := p.setDevice(c, email); err != nil {
		return err
	}
	return p.reply(c, reply{
		notice:   "Email changed.",
		fragment: templates.EmailChanged{Form: templates.EmailForm{Email: email, NoPassword: session.NoPassword, Changed: true}},
		location: accountPath,
	})
}

// refuseEmail shows the form again with the reason for the refusal. It returns err if err is not
// about the input.
func (p *Portal) refuseEmail(c *gin.Context, email string, err error) error {
	refusal := problem.From(err)
	session := sessionFrom(c)
	form := templates.EmailForm{Email: session.Email, NoPassword: session.NoPassword, Open: true, New: email}
	invalid, isInvalid := errors.AsType[*models.InvalidError](err)
	_, limited := errors.AsType[*models.SignInLimitError](err)
	switch {
	case errors.Is(err, models.ErrEmailTaken):
		form.NewProblem = refusal.Message
	case limited, errors.Is(err, models.ErrSignInTooOld):
		form.Problem = refusal.Message
	case !isInvalid && !errors.Is(err, models.ErrWrongCredentials):
		return err
	}
	if isInvalid {
		form.NewProblem = invalid.Message
	}
	switch {
	case !errors.Is(err, models.ErrWrongCredentials):
	case session.NoPassword: // a concurrent request has changed the email or set a password
		form.Problem = "Your email or password has just been changed. Reload the page, then try again."
	default:
		form.PasswordProblem = "The password is incorrect."
	}
	setRetryAfter(c, refusal)
	return p.reply(c, reply{status: refusal.Status, fragment: form, page: func() (templates.Page, error) {
		page, err := p.accountPage(c, passwordForm(c))
		page.Email = form
		return page, err
	}})
}
