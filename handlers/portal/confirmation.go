package portal

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// passwordField is the name of the field with the current password.
const passwordField = "current_password"

// requireFreshSignIn is for forms that change how people sign in. It accepts a form if the user
// signed in or entered the password less than ten minutes ago. Otherwise it shows a page that asks
// for the password and then sends the form again. It must run after requireSession, and before
// deadline because it waits in the queue for password hashing.
func (p *Portal) requireFreshSignIn(c *gin.Context) {
	if c.Request.Method != http.MethodPost || sessionFrom(c).Fresh(p.now()) {
		return
	}
	passed := false
	p.handle(func(c *gin.Context) error {
		var err error
		passed, err = p.confirmSignIn(c)
		return err
	})(c)
	if !passed {
		c.Abort()
	}
}

// confirmSignIn checks the password in the form. If it is missing or wrong, confirmSignIn asks for
// it and returns false.
func (p *Portal) confirmSignIn(c *gin.Context) (passed bool, err error) {
	session := sessionFrom(c)
	password, sent := c.GetPostForm(passwordField)
	if session.NoPassword {
		return false, p.askPassword(c, problem.From(models.ErrSignInTooOld))
	}
	if !sent {
		return false, p.askPassword(c, problem.Problem{Status: http.StatusForbidden})
	}
	token, err := p.store.Sessions.Reauthenticate(c.Request.Context(), session, password, actorOf(c))
	if err == nil {
		session.AuthenticatedAt = p.now()
		c.Set(sessionContextKey, session)
		return true, p.sessions.set(c, token)
	}
	refusal := problem.From(err)
	_, limited := errors.AsType[*models.SignInLimitError](err)
	switch {
	case errors.Is(err, models.ErrWrongCredentials):
		refusal.Message = "The current password is incorrect."
	case !limited:
		return false, err
	}
	return false, p.askPassword(c, refusal)
}

// askPassword shows the page that asks for the password, with the refusal's message if it has one.
func (p *Portal) askPassword(c *gin.Context, refusal problem.Problem) error {
	setRetryAfter(c, refusal)
	session := sessionFrom(c)
	provider := ""
	if p.provider != nil {
		provider = p.provider.Name()
	}
	page := templates.ConfirmationPage{
		Email: session.Email, NoPassword: session.NoPassword, Problem: refusal.Message,
		Action: c.Request.URL.Path, Cancel: p.section(c), Provider: provider, Section: templates.Section(strings.TrimPrefix(p.section(c), "/")),
	}
	for name, values := range c.Request.PostForm {
		if name == passwordField {
			continue
		}
		for _, value := range values {
			page.Fields = append(page.Fields, templates.HiddenField{Name: name, Value: value})
		}
	}
	slices.SortStableFunc(page.Fields, func(a, b templates.HiddenField) int { return strings.Compare(a.Name, b.Name) })
	return p.reply(c, reply{status: refusal.Status, fragment: page, page: present(page)})
}
