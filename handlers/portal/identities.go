package portal

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/portal/identity"
	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// The paths of sign-in at the OpenID Connect provider. The provider sends the browser back to
// [CallbackPath].
const (
	providerPath = "/login/oidc"
	CallbackPath = providerPath + "/callback"

	identityPath = "/account/identity"
)

// startProviderSignIn sends the browser to the provider. It waits for the provider, so it sets its
// own deadlines.
func (p *Portal) startProviderSignIn(c *gin.Context) error {
	next := p.destination(c.Query("next"))
	again := c.Query("again") != ""
	address, err := p.beginAttempt(c, attempt{Purpose: signsIn, Next: next}, again)
	if err != nil {
		return p.refuseIdentity(c, attempt{Purpose: signsIn, Next: next}, models.Identity{}, err)
	}
	return p.redirect(c, address)
}

// finishProviderSignIn receives the browser from the provider, and signs the user in or connects
// the identity. It waits for the provider, so it sets its own deadlines.
func (p *Portal) finishProviderSignIn(c *gin.Context) error {
	hideToken(c)
	begun := p.attemptOf(c)
	found, err := p.provider.Finish(c.Request.Context(), begun.Attempt, c.Request.URL.Query())
	if !errors.Is(err, identity.ErrExpired) {
		p.attempts.drop(c)
	}
	if err != nil {
		return p.refuseIdentity(c, begun, models.Identity{}, err)
	}
	p.withDeadline(c, func() {
		switch begun.Purpose {
		case connects:
			err = p.connectIdentity(c, begun, found)
		case joins:
			err = p.joinWithIdentity(c, begun, found)
		case signsIn:
			err = p.signInWithIdentity(c, begun, found)
		}
	})
	return err
}

// signInWithIdentity signs in the user of an identity. It ends the browser's session, if there is
// one.
func (p *Portal) signInWithIdentity(c *gin.Context, begun attempt, found models.Identity) error {
	client := p.providerClient(c, found)
	signedIn, err := p.store.SignIn.WithIdentity(c.Request.Context(), found, p.provider.TrustsEmail(), client)
	if err != nil {
		return p.refuseIdentity(c, begun, found, err)
	}
	return p.signedIn(c, signedIn, begun.Next)
}

// createIdentity sends the browser to the provider, to connect an identity to the signed-in user.
// It answers with a page that leads there, because the Content-Security-Policy allows no form whose
// response redirects to another site.
func (p *Portal) createIdentity(c *gin.Context) error {
	begun := attempt{Purpose: connects, Session: sessionFrom(c).ID}
	address, err := p.beginAttempt(c, begun, false)
	if err != nil {
		return p.refuseIdentity(c, begun, models.Identity{}, err)
	}
	c.Header("Refresh", "0; url="+address)
	return p.sendPage(c, http.StatusOK, templates.ProviderPage{Provider: p.provider.Name(), Address: address})
}

// connectIdentity connects an identity to the user of the session in which the attempt began.
func (p *Portal) connectIdentity(c *gin.Context, begun attempt, found models.Identity) error {
	session, err := p.currentSession(c)
	if err != nil {
		return err
	}
	if session == nil || session.ID != begun.Session {
		return p.refuseIdentity(c, begun, found, identity.ErrExpired)
	}
	c.Set(sessionContextKey, *session)
	err = p.store.Credentials.ConnectIdentity(c.Request.Context(), *session, found, p.provider.Name(), actorOf(c))
	if err != nil {
		return p.refuseIdentity(c, begun, found, err)
	}
	return p.redirectWith(c, accountPath, p.provider.Name()+" connected. You can sign in with it from now on.")
}

// removeIdentity disconnects the user's identity.
func (p *Portal) removeIdentity(c *gin.Context) error {
	err := p.store.Credentials.DisconnectIdentity(c.Request.Context(), sessionFrom(c), p.provider.Issuer(), p.provider.Name(), actorOf(c))
	refused := errors.Is(err, models.ErrOnlySignIn)
	if err != nil && !refused {
		return err
	}
	form, err := p.identityForm(c)
	if err != nil {
		return err
	}
	form.Focused = true
	if !refused {
		return p.identityDisconnected(c, form)
	}
	form.Problem = p.onlySignIn()
	return p.reply(c, reply{status: problem.From(models.ErrOnlySignIn).Status, fragment: form, page: func() (templates.Page, error) {
		page, err := p.accountPage(c, passwordForm(c))
		page.Identity = form
		return page, err
	}})
}

// identityDisconnected renews the section and the list of sessions on the account page.
func (p *Portal) identityDisconnected(c *gin.Context, form templates.IdentityForm) error {
	list, err := p.sessionList(c)
	if err != nil {
		return err
	}
	return p.reply(c, reply{
		notice:   p.provider.Name() + " disconnected. Signed out of all other sessions.",
		fragment: templates.IdentityDisconnected{Form: form, List: list},
		location: accountPath,
	})
}

// onlySignIn says how to keep a way to sign in without the provider.
func (p *Portal) onlySignIn() string {
	name := p.provider.Name()
	if p.passwordsOff {
		return "You can only sign in with " + name + ", so it can’t be disconnected."
	}
	return "You can only sign in with " + name + ". Set a password first, then disconnect it."
}

// identityForm returns the section of the account page that connects and disconnects the provider.
// Without a provider it is empty.
func (p *Portal) identityForm(c *gin.Context) (templates.IdentityForm, error) {
	if p.provider == nil {
		return templates.IdentityForm{}, nil
	}
	form := templates.IdentityForm{Provider: p.provider.Name()}
	session := sessionFrom(c)
	found, err := p.store.Credentials.FindIdentity(c.Request.Context(), session.AccountID, session.UserID, p.provider.Issuer())
	if errors.Is(err, models.ErrIdentityNotFound) {
		return form, nil
	}
	form.Connected, form.Email = err == nil, found.Email
	form.Since = templates.NewMoment(found.CreatedAt, p.now())
	return form, err
}
