package portal

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

const (
	secondStepPath = "/login/verification"
	// pendingAge is the lifetime of the cookie with a sign-in that waits for its second step.
	pendingAge = 10 * time.Minute
)

// startSecondStep gives the browser the token of the pending sign-in and asks for the code.
func (p *signInPages) startSecondStep(c *gin.Context, token, next string) error {
	if err := p.pending.set(c, token); err != nil {
		return err
	}
	return p.redirect(c, secondStepPath+"?"+url.Values{"next": {next}}.Encode())
}

// pendingToken returns the token of the browser's pending sign-in, or "" if there is none.
func (p *signInPages) pendingToken(c *gin.Context) (token string) {
	p.pending.get(c, &token)
	return token
}

// showSecondStep asks for the code of the second step, or for a passkey if the user has no
// authenticator app.
func (p *signInPages) showSecondStep(c *gin.Context) error {
	form := templates.SecondStepForm{Next: p.destination(c.Query("next"))}
	user, err := p.signIns.PendingUser(c.Request.Context(), p.pendingToken(c))
	if err != nil {
		return p.refuseCode(c, form, err)
	}
	factors, err := p.credentials.Factors(c.Request.Context(), models.Session{AccountID: user.AccountID, UserID: user.ID})
	if err != nil {
		return err
	}
	page := templates.SecondStepPage{Form: form, Passkeys: p.passkeys != nil, PasskeyOnly: factors.AuthenticatorSince == nil}
	return p.reply(c, reply{fragment: form, page: present(page)})
}

// finishSecondStep checks the code of the second step and signs in.
func (p *signInPages) finishSecondStep(c *gin.Context) error {
	form := templates.SecondStepForm{Next: p.destination(c.PostForm("next"))}
	signedIn, err := p.signIns.Finish(c.Request.Context(), p.pendingToken(c), c.PostForm("code"), p.newClient(c))
	if err != nil {
		return p.refuseCode(c, form, err)
	}
	p.pending.drop(c)
	return p.signedIn(c, signedIn, form.Next)
}

// refuseCode shows the form again with the reason for the refusal. If no sign-in is pending, it
// leads back to the first step; if err has another cause, it returns err.
func (p *signInPages) refuseCode(c *gin.Context, form templates.SecondStepForm, err error) error {
	_, limited := errors.AsType[*models.SignInLimitError](err)
	switch {
	case errors.Is(err, models.ErrSignInNotPending):
		notice := ""
		if c.Request.Method == http.MethodPost {
			notice = "The sign-in has expired. Sign in again."
		}
		return p.redirectWith(c, signInPath+"?"+url.Values{"next": {form.Next}}.Encode(), notice)
	case !limited && !errors.Is(err, models.ErrWrongCode) && !errors.Is(err, models.ErrSignInDisabled):
		return err
	}
	refusal := problem.From(err)
	setRetryAfter(c, refusal)
	form.Problem = refusal.Message
	return p.reply(c, reply{status: refusal.Status, fragment: form, page: present(templates.SecondStepPage{Form: form, Passkeys: p.passkeys != nil})})
}
