package portal

import (
	"errors"
	"net/url"

	"github.com/gin-gonic/gin"

	"portal/handlers/portal/identity"
	"portal/models"
)

// These handlers wait for the OpenID Connect provider, so they set their own deadlines.

// startProviderSignIn sends the browser to the provider.
func (p *signInPages) startProviderSignIn(c *gin.Context) error {
	return p.oidc.start(c, authRequest{Purpose: signsIn, Next: p.destination(c.Query("next"))})
}

// startProviderJoin sends the browser to the provider, to accept the invitation in the path. It
// works only from the page of the invitation: a link on another site must not make the visitor's
// identity join an account.
func (p *signInPages) startProviderJoin(c *gin.Context) error {
	token := c.Param("token")
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
	if err != nil {
		return p.oidc.refuse(c, request, found, err)
	}
	return nil
}

// signInWithIdentity signs in the user of an identity, and ends the browser's session, if there is
// one.
func (p *signInPages) signInWithIdentity(c *gin.Context, request authRequest, found models.Identity) error {
	signedIn, err := p.signIns.WithIdentity(c.Request.Context(), found, p.oidc.TrustsEmail(), p.providerClient(c, found))
	if err != nil {
		return err
	}
	return p.signedIn(c, signedIn, request.Next)
}

// joinWithIdentity accepts an invitation for a user without a password, who signs in with the
// identity.
func (p *signInPages) joinWithIdentity(c *gin.Context, request authRequest, found models.Identity) error {
	signedIn, err := p.invitations.AcceptWithIdentity(c.Request.Context(), request.Invitation, found, p.providerClient(c, found))
	if errors.Is(err, models.ErrInvitationInvalid) || errors.Is(err, models.ErrEmailTaken) {
		return p.refuseToJoin(c, err)
	}
	if err != nil {
		return err
	}
	return p.signedIn(c, signedIn, homePath)
}

// connectIdentity connects an identity to the user of the session in which the request began.
func (p *signInPages) connectIdentity(c *gin.Context, request authRequest, found models.Identity) error {
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
func (p *signInPages) providerClient(c *gin.Context, found models.Identity) models.Client {
	client := p.newClient(c)
	client.Provider, client.AuthenticatedAt = p.oidc.Name(), found.AuthenticatedAt
	return client
}
