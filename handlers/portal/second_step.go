package portal

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

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
	if errors.Is(err, models.ErrSignInNotPending) {
		notice := ""
		if c.Request.Method == http.MethodPost {
			notice = "The sign-in has expired. Sign in again."
		}
		return p.redirectWith(c, signInPath+"?"+url.Values{"next": {form.Next}}.Encode(), notice)
	}
	refusal, ok := refusalOf(c, err, models.ErrWrongCode, models.ErrSignInDisabled)
	if !ok {
		return err
	}
	form.Problem = refusal.Message
	return p.reply(c, reply{status: refusal.Status, fragment: form, page: present(templates.SecondStepPage{Form: form, Passkeys: p.passkeys != nil})})
}

// pendingToken returns the token of the browser's pending sign-in, or "" if there is none.
func (p *signInPages) pendingToken(c *gin.Context) (token string) {
	p.pending.get(c, &token)
	return token
}
