package portal

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/people"
	"portal/models/value"
	"portal/templates"
)

// signInPages are the pages that begin a session.
type signInPages struct {
	*site

	signIns     *people.SignIn
	people      *people.People
	invitations *people.Invitations
	credentials *people.Credentials
	passkeys    *relyingParty // nil: none
	oidc        *oidcClient   // nil: none
}

func (p *signInPages) show(c *gin.Context) error {
	next := p.destination(c.Query("next"))
	session, err := p.currentSession(c)
	if err != nil {
		return err
	}
	if session != nil {
		return p.redirect(c, next)
	}
	// Without the database the form cannot work, so the page is an error.
	if err := p.signIns.Ready(c.Request.Context()); err != nil {
		return err
	}
	form := p.form(next)
	if _, had := unmarked(c.Request.URL); had {
		form.Problem = "Your browser did not keep the cookie. Open " + p.baseURL.String() + " and allow cookies."
	}
	return p.reply(c, reply{fragment: form, page: present(p.page(form))})
}

// signInAddress returns the address of the sign-in page, which leads to the page next. It keeps the
// mark of a sign-in, so that the page says what is wrong.
func signInAddress(c *gin.Context, next string) string {
	query := url.Values{"next": {next}}
	if _, had := unmarked(c.Request.URL); had {
		query.Set(paramSignedIn, "yes")
	}
	return signInPath + "?" + query.Encode()
}

func (p *signInPages) page(form templates.SignInForm) templates.SignInPage {
	page := templates.SignInPage{Form: form, ForgottenURL: p.support, Support: p.support, Passkeys: p.passkeys != nil}
	if p.mailsOn {
		page.ForgottenURL = passwordResetPath
	}
	if p.oidc != nil {
		page.Provider = p.oidc.Name()
		page.ProviderPath = providerPath + "?" + url.Values{"next": {form.Next}}.Encode()
	}
	return page
}

func (p *signInPages) form(next string) templates.SignInForm {
	return templates.SignInForm{Next: next, NoPasswords: p.passwordsOff}
}

// signInWithPassword signs in. Every sign-in creates a session with a new token.
func (p *signInPages) signInWithPassword(c *gin.Context) error {
	form := p.form(p.destination(c.PostForm("next")))
	form.Email = value.ReadEmail(c.PostForm("email"))
	user, err := p.signIns.VerifyPassword(c.Request.Context(), c.PostForm("email"), c.PostForm("password"), p.newClient(c))
	if err == nil {
		p.withDeadline(c, func() { err = p.start(c, user, form.Next) })
	}
	if refusal, ok := refusalOf(c, err, value.ErrWrongCredentials, value.ErrSignInDisabled, value.ErrOnlyByProvider); ok {
		form.Problem = refusal.Message
		return p.reply(c, reply{status: refusal.Status, fragment: form, page: present(p.page(form))})
	}
	return err
}

// showSessionState returns the fragment that says on an open page whether its session has ended.
func (p *signInPages) showSessionState(c *gin.Context) error {
	session, err := p.currentSession(c)
	if err != nil {
		return err
	}
	state := templates.SessionState{Ended: session == nil}
	if session != nil && isOfAnother(c, *session) {
		state.Other = session.Email
	}
	return p.reply(c, reply{fragment: state, location: homePath})
}

// start signs in a user who has entered or set the password, and opens the page next.
func (p *signInPages) start(c *gin.Context, user people.User, next string) error {
	signedIn, err := p.signIns.Start(c.Request.Context(), user, p.newClient(c))
	if err != nil {
		return err
	}
	return p.signedIn(c, signedIn, next)
}

// signedIn completes a sign-in: it gives the browser the token of its new session, ends the old
// session, makes the browser a device of the user, and opens the page next. If the second step is
// due, signedIn starts it instead.
func (p *signInPages) signedIn(c *gin.Context, signedIn people.SignedIn, next string) error {
	if signedIn.Pending {
		return p.startSecondStep(c, signedIn.Token, next)
	}
	// Both cookies are sent, also if the earlier session cannot be ended.
	if err := cmp.Or(p.startSession(c, signedIn.Token), p.cookies.put(c, deviceCookie, people.NewDevice(signedIn.User))); err != nil {
		return err
	}
	next = p.marked(c, next)
	if signedIn.RecoveryCodes == nil {
		return p.redirect(c, next)
	}
	// The notice is for the new session.
	session, err := p.sessions.stored.Peek(c.Request.Context(), signedIn.Token)
	if err != nil {
		_ = c.Error(err) // the sign-in has succeeded
		return p.redirect(c, next)
	}
	c.Set(sessionContextKey, session)
	return p.redirectWith(c, next, codesLeft(*signedIn.RecoveryCodes))
}

// codesLeft returns the notice after a sign-in with a recovery code.
func codesLeft(left int) string {
	if left == 1 {
		return "You signed in with a recovery code. 1 code is left."
	}
	return fmt.Sprintf("You signed in with a recovery code. %d codes are left.", left)
}

// signOut signs out, also when the session has already ended.
func (p *signInPages) signOut(c *gin.Context) error {
	if err := p.endSession(c); err != nil {
		return err
	}
	return p.redirect(c, signInPath)
}

// startSecondStep gives the browser the token of the pending sign-in and asks for the code.
func (p *signInPages) startSecondStep(c *gin.Context, token, next string) error {
	if err := p.cookies.put(c, pendingCookie, token); err != nil {
		return err
	}
	return p.redirect(c, p.marked(c, secondStepPath+"?"+url.Values{"next": {next}}.Encode()))
}

// showSecondStep asks for the code of the second step, or for a passkey if the user has no
// authenticator app.
func (p *signInPages) showSecondStep(c *gin.Context) error {
	form := templates.SecondStepForm{Next: p.destination(c.Query("next"))}
	user, err := p.signIns.PendingUser(c.Request.Context(), p.pendingToken(c))
	if err != nil {
		return p.refuseCode(c, form, err)
	}
	if plain, had := unmarked(c.Request.URL); had {
		return p.redirect(c, plain)
	}
	factors, err := p.credentials.Factors(c.Request.Context(), people.Session{AccountID: user.AccountID, UserID: user.ID})
	if err != nil {
		return err
	}
	page := p.secondStep(form)
	page.PasskeyOnly = factors.AuthenticatorSince == nil
	return p.reply(c, reply{fragment: form, page: present(page)})
}

// finishSecondStep checks the code of the second step and signs in.
func (p *signInPages) finishSecondStep(c *gin.Context) error {
	form := templates.SecondStepForm{Next: p.destination(c.PostForm("next"))}
	signedIn, err := p.signIns.Finish(c.Request.Context(), p.pendingToken(c), c.PostForm("code"), p.newClient(c))
	if err != nil {
		return p.refuseCode(c, form, err)
	}
	p.cookies.drop(c, pendingCookie)
	return p.signedIn(c, signedIn, form.Next)
}

// refuseCode shows the form again with the reason for the refusal. If no sign-in is pending, it
// leads back to the first step; if err has another cause, it returns err.
func (p *signInPages) refuseCode(c *gin.Context, form templates.SecondStepForm, err error) error {
	if errors.Is(err, value.ErrSignInNotPending) {
		notice := ""
		if c.Request.Method == http.MethodPost {
			notice = "The sign-in has expired. Sign in again."
		}
		return p.redirectWith(c, signInAddress(c, form.Next), notice)
	}
	refusal, ok := refusalOf(c, err, value.ErrWrongCode, value.ErrSignInDisabled, value.ErrOnlyByProvider)
	if !ok {
		return err
	}
	form.Problem = refusal.Message
	return p.reply(c, reply{status: refusal.Status, fragment: form, page: present(p.secondStep(form))})
}

func (p *signInPages) secondStep(form templates.SecondStepForm) templates.SecondStepPage {
	return templates.SecondStepPage{Form: form, Passkeys: p.passkeys != nil, Support: p.support}
}

// pendingToken returns the token of the browser's pending sign-in, or "" if there is none.
func (p *signInPages) pendingToken(c *gin.Context) (token string) {
	p.cookies.read(c, pendingCookie, &token)
	return token
}

// requireSession redirects visitors to the sign-in page, which leads them back afterwards.
func (p *signInPages) requireSession(c *gin.Context) {
	session, err := p.currentSession(c)
	switch {
	case err != nil:
		p.Render(c, err)
		c.Abort()
	case session == nil:
		notice := ""
		if interrupted(c) {
			notice = "Your session has ended. Your changes were not saved."
		}
		if account := p.removedFrom(c); account != "" {
			notice = fmt.Sprintf("You were removed from %s. Only an owner can invite you back.", templates.Isolate(account))
		}
		_ = p.redirectWith(c, signInAddress(c, p.returnPath(c)), notice)
		c.Abort()
	case isOfAnother(c, *session):
		p.Render(c, problem.AnotherUser(templates.Isolate(session.Email)))
		c.Abort()
	default:
		c.Set(sessionContextKey, *session)
		middleware.SetCaller(c, middleware.Caller{Account: session.AccountID, User: session.UserID})
		if session.FactorDue && !slices.Contains(setUpPaths, c.FullPath()) {
			_ = p.redirect(c, secondFactorPath)
			c.Abort()
		}
	}
}

// removedFrom returns the name of the account that the user of an ended session was removed from,
// otherwise "". The browser has named the user since it signed in.
func (p *signInPages) removedFrom(c *gin.Context) string {
	var device people.Device
	if _, err := c.Request.Cookie(p.sessions.name); err != nil || !p.cookies.read(c, deviceCookie, &device) {
		return ""
	}
	account, err := p.people.RemovedFrom(c.Request.Context(), device.UserID)
	if err != nil {
		_ = c.Error(err) // the redirect works without it
	}
	return account
}

// setUpPaths are the routes that stay open to a user who must set up a second factor first.
var setUpPaths = []string{
	secondFactorPath, passkeysPath, passkeysPath + "/options", "/account/authenticator", "/account/authenticator/confirmation",
}
