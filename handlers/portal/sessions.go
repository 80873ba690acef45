package portal

import (
	"errors"
	"net/url"
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
	// Without the database the form cannot work, so the page is an error.
	if err := p.store.Ping(c.Request.Context()); err != nil {
		return err
	}
	form := p.signInForm(next)
	return p.reply(c, reply{fragment: form, page: present(p.signInPage(form))})
}

func (p *Portal) signInPage(form templates.SignInForm) templates.SignInPage {
	page := templates.SignInPage{Form: form, ForgottenURL: p.supportURL, Passkeys: p.webauthn != nil}
	if p.store.Outbox.Enabled() {
		page.ForgottenURL = passwordResetPath
	}
	if p.provider != nil {
		page.Provider = p.provider.Name()
		page.ProviderPath = providerPath + "?" + url.Values{"next": {form.Next}}.Encode()
	}
	return page
}

func (p *Portal) signInForm(next string) templates.SignInForm {
	return templates.SignInForm{Next: next, NoPasswords: p.passwordsOff}
}

// createSession signs in. Every sign-in creates a session with a new token.
func (p *Portal) createSession(c *gin.Context) error {
	form := p.signInForm(p.destination(c.PostForm("next")))
	form.Email = strings.TrimSpace(c.PostForm("email"))
	user, err := p.store.SignIn.VerifyPassword(c.Request.Context(), form.Email, c.PostForm("password"), p.newClient(c))
	if err == nil {
		p.withDeadline(c, func() { err = p.signIn(c, user, models.WithPassword, form.Next) })
	}
	_, limited := errors.AsType[*models.SignInLimitError](err)
	if limited || errors.Is(err, models.ErrWrongCredentials) || errors.Is(err, models.ErrSignInDisabled) {
		refusal := problem.From(err)
		setRetryAfter(c, refusal)
		form.Problem = refusal.Message
		return p.reply(c, reply{
			status: refusal.Status, fragment: form, page: present(p.signInPage(form)),
		})
	}
	return err
}

// showSession returns the fragment that says on an open page whether its session has ended.
func (p *Portal) showSession(c *gin.Context) error {
	session, err := p.currentSession(c)
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: templates.SessionState{Ended: session == nil}, location: homePath})
}

// signIn signs in a user who has proved an identity with this method, and opens the page next.
func (p *Portal) signIn(c *gin.Context, user models.User, method models.SignInMethod, next string) error {
	signedIn, err := p.store.SignIn.Start(c.Request.Context(), user, method, p.newClient(c))
	if err != nil {
		return err
	}
	return p.signedIn(c, signedIn, next)
}

// signedIn completes a sign-in: it gives the browser the token of its new session, ends the old
// session, makes the browser a device of the user, and opens the page next. If the second step is
// due, signedIn starts it instead.
func (p *Portal) signedIn(c *gin.Context, signedIn models.SignedIn, next string) error {
	if signedIn.Pending {
		return p.startSecondStep(c, signedIn.Token, next)
	}
	// Most proofs work only once, so the new session must start even if the old one cannot be
	// ended.
	if err := p.sessions.set(c, signedIn.Token); err != nil {
		return err
	}
	if err := p.setDevice(c, signedIn.User.Email); err != nil {
		return err
	}
	old, err := p.currentSession(c)
	if err != nil {
		return err
	}
	if err := p.endSession(c, old); err != nil {
		return err
	}
	return p.redirect(c, next)
}

// destroySession signs out. It also works when the session has already ended.
func (p *Portal) destroySession(c *gin.Context) error {
	session, err := p.currentSession(c)
	if err != nil {
		return err
	}
	if err := p.endSession(c, session); err != nil {
		return err
	}
	p.sessions.drop(c)
	return p.redirect(c, signInPath)
}
