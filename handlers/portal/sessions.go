package portal

import (
	"context"
	"errors"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// newSession shows the sign-in page.
func (p *Portal) newSession(c *gin.Context) error {
	next := p.destination(c.Query("next"))
	session, err := p.currentSession(c)
	if err != nil {
		return err
	}
	if session != nil {
		return p.redirect(c, next)
	}
	// A form that cannot work is better not shown.
	if err := p.store.Ping(c.Request.Context()); err != nil {
		return err
	}
	form := templates.SignInForm{Next: next}
	return p.reply(c, reply{fragment: form, page: present(templates.SignInPage{Form: form})})
}

// createSession signs in. Every sign-in begins a session of its own, under a
// reference that the browser did not know before.
func (p *Portal) createSession(c *gin.Context) error {
	form := templates.SignInForm{
		Email: strings.TrimSpace(c.PostForm("email")),
		Next:  p.destination(c.PostForm("next")),
	}
	user, err := p.store.VerifyPassword(c.Request.Context(), form.Email, c.PostForm("password"), c.ClientIP())
	if err == nil {
		err = p.beginSession(c, user)
	}
	if _, limited := errors.AsType[*models.SignInLimitError](err); limited || errors.Is(err, models.ErrWrongCredentials) {
		told := problem.From(err)
		if seconds := told.RetryAfterSeconds(); seconds != "" {
			c.Header("Retry-After", seconds)
		}
		form.Problem = told.Message
		return p.reply(c, reply{
			status: told.Status, fragment: form, page: present(templates.SignInPage{Form: form}),
		})
	}
	if err != nil {
		return err
	}
	return p.redirect(c, form.Next)
}

// beginSession ends the session that this browser had, if any, and begins one of
// the user's.
func (p *Portal) beginSession(c *gin.Context, user models.User) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), models.Timeout)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	request := withClient(c)
	old, err := p.sessions.Get(request, p.sessions.name)
	if err != nil {
		return err
	}
	if err := p.sessions.end(request, old); err != nil {
		return err
	}
	session := p.sessions.fresh()
	session.Values[userKey{}] = user
	return session.Save(request, c.Writer)
}

// destroySession signs out. It works for a session that has ended, too.
func (p *Portal) destroySession(c *gin.Context) error {
	request := withClient(c)
	session, err := p.sessions.Get(request, p.sessions.name)
	if err != nil {
		return err
	}
	session.Options.MaxAge = -1
	if err := session.Save(request, c.Writer); err != nil {
		return err
	}
	return p.redirect(c, signInPath)
}
