package portal

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"portal/handlers/portal/identity"
	"portal/handlers/problem"
	"portal/models/people"
	"portal/models/value"
	"portal/templates"
)

// createIdentity sends the browser to the provider, to connect an identity to the signed-in user.
// Because the Content-Security-Policy allows no form whose response redirects to another site, it
// answers with a page that leads there.
func (p *accountPages) createIdentity(c *gin.Context) error {
	request := authRequest{Purpose: connects, Session: sessionFrom(c).ID}
	address, err := p.oidc.begin(c, request)
	if err != nil {
		return p.oidc.refuse(c, request, people.Identity{}, err)
	}
	c.Header("Refresh", "0; url="+address)
	return p.sendPage(c, http.StatusOK, templates.ProviderPage{Provider: p.oidc.Name(), Address: address})
}

// removeIdentity disconnects the user's identity.
func (p *accountPages) removeIdentity(c *gin.Context) error {
	err := p.credentials.DisconnectIdentity(c.Request.Context(), sessionFrom(c), p.oidc.Issuer(), p.oidc.Name(), actorOf(c))
	refused := errors.Is(err, value.ErrOnlySignIn)
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
	return p.reply(c, reply{status: problem.From(value.ErrOnlySignIn).Status, fragment: form, page: func() (templates.Page, error) {
		page, err := p.page(c, passwordForm(c))
		page.Identity = form
		return page, err
	}})
}

// identityDisconnected renews the section and the list of sessions on the account page.
func (p *accountPages) identityDisconnected(c *gin.Context, form templates.IdentityForm) error {
	list, err := p.sessionList(c)
	if err != nil {
		return err
	}
	return p.reply(c, reply{
		notice:   p.oidc.Name() + " disconnected. You’ve been signed out everywhere else.",
		fragment: templates.IdentityDisconnected{Form: form, List: list},
		location: accountPath,
	})
}

// onlySignIn says how to keep a way to sign in without the provider.
func (p *accountPages) onlySignIn() string {
	name := p.oidc.Name()
	if p.passwordsOff {
		return "You can only sign in with " + name + ", so it can’t be disconnected."
	}
	return "You can only sign in with " + name + ". Set a password first, then disconnect it."
}

// These handlers wait for the OpenID Connect provider, so they set their own deadlines.

// startProviderSignIn sends the browser to the provider.
func (p *signInPages) startProviderSignIn(c *gin.Context) error {
	return p.oidc.start(c, authRequest{Purpose: signsIn, Next: p.destination(c.Query("next"))})
}

// startProviderJoin sends the browser to the provider, to accept the invitation in the path. It
// works only from the page of the invitation: a link on another site must not make the visitor's
// identity join an account.
func (p *signInPages) startProviderJoin(c *gin.Context) error {
	token := linkToken(c)
	if site := c.GetHeader("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return p.redirect(c, invitationPath+"/"+url.PathEscape(token))
	}
	var err error
	p.withDeadline(c, func() { _, err = p.invitations.Find(c.Request.Context(), token) })
	if err != nil {
		return p.refuseToJoin(c, err)
	}
	return p.oidc.start(c, authRequest{Purpose: joins, Invitation: token})
}

// finishProviderSignIn receives the browser from the provider, and signs the user in or connects
// the identity.
func (p *signInPages) finishProviderSignIn(c *gin.Context) error {
	request, found, err := p.oidc.finish(c)
	if err == nil {
		p.withDeadline(c, func() {
			switch request.Purpose {
			case connects:
				err = p.connectIdentity(c, request, found)
			case joins:
				err = p.joinWithIdentity(c, request, found)
			case signsIn:
				err = p.signInWithIdentity(c, request, found)
			}
		})
	}
	if err == nil {
		return nil
	}
	if request.State == "" && errors.Is(err, identity.ErrExpired) {
		var session *people.Session
		p.withDeadline(c, func() { session, _ = p.currentSession(c) })
		if session != nil { // such as after going back
			_ = c.Error(err) // for the log
			c.Set(sessionContextKey, *session)
			return p.redirectWith(c, homePath, "You’re signed in already. This sign-in was completed before or has expired.")
		}
	}
	return p.oidc.refuse(c, request, found, err)
}

// signInWithIdentity signs in the user of an identity, and ends the browser's session, if there is
// one.
func (p *signInPages) signInWithIdentity(c *gin.Context, request authRequest, found people.Identity) error {
	signIn := p.signIns.WithIdentity
	if p.oidc.DecidesAccess() {
		signIn = p.signIns.WithClaims
	}
	signedIn, err := signIn(c.Request.Context(), found, p.oidc.TrustsEmail(), p.providerClient(c, found))
	if err != nil {
		return err
	}
	return p.signedIn(c, signedIn, request.Next)
}

// joinWithIdentity accepts an invitation for a user without a password, who signs in with the
// identity.
func (p *signInPages) joinWithIdentity(c *gin.Context, request authRequest, found people.Identity) error {
	if p.oidc.DecidesAccess() { // and not the invitation
		return p.signInWithIdentity(c, request, found)
	}
	signedIn, err := p.invitations.AcceptWithIdentity(c.Request.Context(), request.Invitation, found, p.oidc.TrustsEmail(), p.providerClient(c, found))
	if errors.Is(err, value.ErrInvitationInvalid) || errors.Is(err, value.ErrEmailTaken) {
		return p.refuseToJoin(c, err)
	}
	if err != nil {
		return err
	}
	return p.signedIn(c, signedIn, homePath)
}

// connectIdentity connects an identity to the user of the session in which the request began.
func (p *signInPages) connectIdentity(c *gin.Context, request authRequest, found people.Identity) error {
	session, err := p.currentSession(c)
	if err != nil {
		return err
	}
	if session == nil || session.ID != request.Session {
		return identity.ErrExpired
	}
	c.Set(sessionContextKey, *session)
	if err := p.credentials.ConnectIdentity(c.Request.Context(), *session, found, p.oidc.Name(), actorOf(c)); err != nil {
		return err
	}
	return p.redirectWith(c, accountPath, p.oidc.Name()+" connected. You can sign in with it from now on.")
}

// providerClient returns the client of a user with this identity.
func (p *signInPages) providerClient(c *gin.Context, found people.Identity) people.Client {
	client := p.newClient(c)
	client.Provider, client.AuthenticatedAt = p.oidc.Name(), found.AuthenticatedAt
	return client
}
