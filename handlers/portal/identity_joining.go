package portal

import (
	"errors"
	"net/url"

	"github.com/gin-gonic/gin"

	"portal/models"
)

// startProviderJoin sends the browser to the provider, to accept the invitation in the path. It
// waits for the provider, so it sets its own deadlines. It works only from the page of the
// invitation: a link on another site must not make the visitor's identity join an account.
func (p *Portal) startProviderJoin(c *gin.Context) error {
	hideToken(c)
	if site := c.GetHeader("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return p.redirect(c, invitationPath+"/"+url.PathEscape(c.Param("token")))
	}
	begun := attempt{Purpose: joins, Invitation: c.Param("token")}
	var err error
	p.withDeadline(c, func() { _, err = p.store.Invitations.Find(c.Request.Context(), begun.Invitation) })
	if err != nil {
		return p.refuseToJoin(c, err)
	}
	address, err := p.beginAttempt(c, begun, c.Query("again") != "")
	if err != nil {
		return p.refuseIdentity(c, begun, models.Identity{}, err)
	}
	return p.redirect(c, address)
}

// joinWithIdentity accepts an invitation for a user without a password, who signs in with the
// identity.
func (p *Portal) joinWithIdentity(c *gin.Context, begun attempt, found models.Identity) error {
	client := p.providerClient(c, found)
	signedIn, err := p.store.Invitations.AcceptWithIdentity(c.Request.Context(), begun.Invitation, found, client)
	if errors.Is(err, models.ErrInvitationInvalid) || errors.Is(err, models.ErrEmailTaken) {
		return p.refuseToJoin(c, err)
	}
	if err != nil {
		return p.refuseIdentity(c, begun, found, err)
	}
	return p.signedIn(c, signedIn, homePath)
}

// joinPath returns the path that accepts an invitation with the provider, or "" without one.
func (p *Portal) joinPath(token string) string {
	if p.provider == nil {
		return ""
	}
	return invitationPath + "/" + token + "/oidc"
}
