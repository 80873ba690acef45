package portal

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// emailChangePath is the path, without the token, of the links that confirm a new email.
const emailChangePath = "/email-changes"

// showEmailChange shows the button that uses the link. Opening the page does not use the link,
// because programs that scan messages open the links in them.
func (p *signInPages) showEmailChange(c *gin.Context) error {
	hideToken(c)
	email, err := p.credentials.NewEmail(c.Request.Context(), c.Param("token"))
	if err != nil {
		return p.refuseEmailChange(c, err)
	}
	return p.sendPage(c, http.StatusOK, templates.EmailChangePage{Email: email, Action: c.Request.URL.Path})
}

// confirmEmail changes the email. It neither needs a session nor starts one.
func (p *signInPages) confirmEmail(c *gin.Context) error {
	hideToken(c)
	email, err := p.credentials.ConfirmEmail(c.Request.Context(), c.Param("token"), c.ClientIP())
	if err != nil {
		return p.refuseEmailChange(c, err)
	}
	return p.sendPage(c, http.StatusOK, templates.EmailChangePage{Email: email, Changed: true})
}

// refuseEmailChange shows why the link does not work. It returns err if err has another cause.
func (p *signInPages) refuseEmailChange(c *gin.Context, err error) error {
	if !errors.Is(err, models.ErrMailLinkInvalid) && !errors.Is(err, models.ErrSignInDisabled) && !errors.Is(err, models.ErrEmailTaken) {
		return err
	}
	refusal := problem.From(err)
	if errors.Is(err, models.ErrMailLinkInvalid) {
		refusal.Message = "This link has already been used or has expired. For a new link, change your email again on the Account page."
	}
	return p.sendPage(c, refusal.Status, templates.EmailChangePage{Problem: refusal.Message})
}
