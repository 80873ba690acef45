package portal

import (
	"errors"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models/value"
	"portal/templates"
)

// requestEmailChange sends a link to the new email. Because it waits in the queue for password
// hashing, it sets its own deadlines.
func (p *accountPages) requestEmailChange(c *gin.Context) error {
	session, email := sessionFrom(c), value.ReadEmail(c.PostForm("email"))
	err := p.credentials.RequestEmailChange(c.Request.Context(), session, c.PostForm(passwordField), email, actorOf(c))
	if err != nil {
		p.withDeadline(c, func() { err = p.refuseEmail(c, email, err) })
		return err
	}
	p.withDeadline(c, func() { err = p.emailAsked(c, linkNotice(email)) })
	return err
}

func linkNotice(email string) string {
	return "Open the link in the email to " + templates.Isolate(email) + " within 30 minutes. If the address already has a login here, no email is sent."
}

// emailAsked shows the section of the email after a change of the pending email, with a notice.
func (p *accountPages) emailAsked(c *gin.Context, notice string) error {
	form, err := p.emailForm(c)
	if err != nil {
		return err
	}
	form.Asked = true
	return p.reply(c, reply{notice: notice, fragment: form, location: accountPath})
}

// resendEmailChange sends a new link to the pending email.
func (p *accountPages) resendEmailChange(c *gin.Context) error {
	email, sent, err := p.credentials.ResendEmailChange(c.Request.Context(), sessionFrom(c))
	switch {
	case errors.Is(err, value.ErrNoEmailChange):
		return p.emailAsked(c, "The link has been used or has expired. Enter the new email again.")
	case err != nil:
		return err
	case !sent:
		return p.emailAsked(c, "Too many emails were sent to "+email+". Try again in an hour.")
	}
	return p.emailAsked(c, linkNotice(email))
}

// cancelEmailChange ends the pending change of the email.
func (p *accountPages) cancelEmailChange(c *gin.Context) error {
	if err := p.credentials.CancelEmailChange(c.Request.Context(), sessionFrom(c)); err != nil {
		return err
	}
	return p.emailAsked(c, "The change of your email was cancelled.")
}

// refuseEmail shows the form again with the reason for the refusal. It returns err if err is not
// about the input.
func (p *accountPages) refuseEmail(c *gin.Context, email string, err error) error {
	form, formErr := p.emailForm(c)
	if formErr != nil {
		return formErr
	}
	form.Open, form.New = true, email
	if refusal, ok := refusalOf(c, err, value.ErrSignInTooOld); ok {
		form.Problem = refusal.Message
	}
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		form.NewProblem = invalid.Message
	}
	switch wrong := errors.Is(err, value.ErrWrongCredentials); {
	// A concurrent request has changed the email or set a password.
	case wrong && form.NoPassword:
		form.Problem = "Your email or password has just been changed. Reload the page, then try again."
	case wrong:
		form.PasswordProblem = "The password is incorrect."
	}
	if form.Problem == "" && form.NewProblem == "" && form.PasswordProblem == "" {
		return err
	}
	return p.reply(c, reply{status: problem.From(err).Status, fragment: form, page: func() (templates.Page, error) {
		page, err := p.page(c, passwordForm(c))
		page.Email = form
		return page, err
	}})
}

// changePassword changes the user's password, or sets the first one. It waits in the queue for
// password hashing, so it sets its own deadlines.
func (p *accountPages) changePassword(c *gin.Context) error {
	token, err := p.credentials.ChangePassword(c.Request.Context(), sessionFrom(c),
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

// refusePassword shows the form again with the reason for the refusal. If err is not about the
// input, it returns err.
func (p *accountPages) refusePassword(c *gin.Context, err error) error {
	form := passwordForm(c)
	if refusal, ok := refusalOf(c, err, value.ErrSignInTooOld); ok {
		form.Problem = refusal.Message
	}
	switch wrong := errors.Is(err, value.ErrWrongCredentials); {
	case wrong && form.NoPassword:
		form.NoPassword = false // a concurrent request has set one
		form.Problem = "Your password has already been set. To change it, enter it as the current password."
	case wrong:
		form.CurrentProblem = "The current password is incorrect."
	}
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		form.NewProblem = invalid.Message
	}
	if form.Problem == "" && form.CurrentProblem == "" && form.NewProblem == "" {
		return err
	}
	form.Focused = true
	return p.reply(c, reply{status: problem.From(err).Status, fragment: form, page: func() (templates.Page, error) {
		return p.page(c, form)
	}})
}

// passwordChanged gives the browser the new token of its session, and renews the account page.
func (p *accountPages) passwordChanged(c *gin.Context, token string) error {
	if err := p.renewSession(c, token); err != nil {
		return err
	}
	list, err := p.sessionList(c)
	if err != nil {
		return err
	}
	session, notice := sessionFrom(c), "Password changed."
	changed := templates.PasswordChanged{Form: templates.PasswordForm{Email: session.Email, Focused: true}, List: list}
	if session.NoPassword {
		email, err := p.emailForm(c)
		if err != nil {
			return err
		}
		email.NoPassword = false
		notice, changed.Email = "Password set.", &email
	}
	return p.reply(c, reply{
		notice:   notice + " You’ve been signed out everywhere else.",
		fragment: changed,
		location: accountPath,
	})
}
