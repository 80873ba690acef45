package portal

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// SignInLinkPath is the path of sign-in links, without the token.
const SignInLinkPath = "/sign-in-links"

// showSignInLink shows the button that uses the link. Opening the page does not use the link,
// because programs that scan messages open the links in them.
func (p *signInPages) showSignInLink(c *gin.Context) error {
	user, err := p.signIns.LinkUser(c.Request.Context(), c.Param("token"))
	if err != nil {
		return p.refuseSignInLink(c, err)
	}
	hideToken(c)
	page := templates.SignInLinkPage{Email: user.Email, Action: c.Request.URL.Path}
	return p.sendPage(c, http.StatusOK, page)
}

// useSignInLink signs the user of the link in, and ends the browser's session, if there is one.
func (p *signInPages) useSignInLink(c *gin.Context) error {
	hideToken(c)
	signedIn, err := p.signIns.UseLink(c.Request.Context(), c.Param("token"), p.newClient(c))
	if err != nil {
		return p.refuseSignInLink(c, err)
	}
	return p.signedIn(c, signedIn, homePath)
}

// refuseSignInLink shows why the link does not work. If err has another cause, it returns err.
func (p *signInPages) refuseSignInLink(c *gin.Context, err error) error {
	if !errors.Is(err, models.ErrLinkInvalid) && !errors.Is(err, models.ErrSignInDisabled) {
		return err
	}
	refusal := problem.From(err)
	return p.sendPage(c, refusal.Status, templates.SignInLinkPage{Problem: refusal.Message})
}

// hideToken keeps the token out of the Referer header of the page's requests.
func hideToken(c *gin.Context) { c.Header("Referrer-Policy", "strict-origin") }
