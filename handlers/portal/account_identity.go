package portal

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

const identityPath = "/account/identity"

// createIdentity sends the browser to the provider, to connect an identity to the signed-in user.
// Because the Content-Security-Policy allows no form whose response redirects to another site, it
// answers with a page that leads there.
func (p *accountPages) createIdentity(c *gin.Context) error {
	request := authRequest{Purpose: connects, Session: sessionFrom(c).ID}
	address, err := p.oidc.begin(c, request)
	if err != nil {
		return p.oidc.refuse(c, request, models.Identity{}, err)
	}
	c.Header("Refresh", "0; url="+address)
	return p.sendPage(c, http.StatusOK, templates.ProviderPage{Provider: p.oidc.Name(), Address: address})
}

// removeIdentity disconnects the user's identity.
func (p *accountPages) removeIdentity(c *gin.Context) error {
	err := p.credentials.DisconnectIdentity(c.Request.Context(), sessionFrom(c), p.oidc.Issuer(), p.oidc.Name(), actorOf(c))
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
		notice:   p.oidc.Name() + " disconnected. Signed out of all other sessions.",
		fragment: templates.IdentityDisconnected{Form: form, List: list},
		location: accountPath,
	})
}

// onlySignIn says how to keep a way to sign in without the provider.
func (p *accountPages) onlySignIn() string {
	name := p.oidc.Name()
	if p.PasswordsOff {
		return "You can only sign in with " + name + ", so it can’t be disconnected."
	}
	return "You can only sign in with " + name + ". Set a password first, then disconnect it."
}
