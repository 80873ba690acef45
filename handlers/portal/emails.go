package portal

import (
	"errors"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// changeEmail changes the user's email. It waits for a turn to hash, and limits its own time.
func (p *Portal) changeEmail(c *gin.Context) error {
	session, email := sessionFrom(c), strings.TrimSpace(c.PostForm("email"))
	err := p.store.ChangeEmail(c.Request.Context(), session, c.PostForm("current_password"), email, actorOf(c))
	if err != nil {
		withDeadline(c, func() { err = p.refuseEmail(c, email, err) })
		return err
	}
	if err := p.setDevice(c, email); err != nil {
		return err
	}
	return p.reply(c, reply{
		notice:   "Email changed.",
		fragment: templates.EmailChanged{Form: templates.EmailForm{Email: email, Changed: true}},
		location: accountPath,
	})
}

// refuseEmail shows the form again with the reason for the refusal. It returns err if err is not
// about the input.
func (p *Portal) refuseEmail(c *gin.Context, email string, err error) error {
	refusal := problem.From(err)
	form := templates.EmailForm{Email: sessionFrom(c).Email, Open: true, New: email}
	invalid, isInvalid := errors.AsType[*models.InvalidError](err)
	_, limited := errors.AsType[*models.SignInLimitError](err)
	switch {
	case errors.Is(err, models.ErrEmailTaken):
		form.NewProblem = refusal.Message
	case limited:
		form.Problem = refusal.Message
	case !isInvalid && !errors.Is(err, models.ErrWrongCredentials):
		return err
	}
	if isInvalid {
		form.NewProblem = invalid.Message
	}
	if errors.Is(err, models.ErrWrongCredentials) {
		form.PasswordProblem = "The password is incorrect."
	}
	setRetryAfter(c, refusal)
	return p.reply(c, reply{status: refusal.Status, fragment: form, page: func() (templates.Page, error) {
		page, err := p.accountPage(c, templates.PasswordForm{Email: form.Email})
		page.Email = form
		return page, err
	}})
}
