package portal

import (
	"slices"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

const secondFactorPath = "/account/second-factor"

// setUpPaths are the routes that stay open to a user who must set up a second factor first.
var setUpPaths = []string{
	secondFactorPath, passkeysPath, passkeysPath + "/options", "/account/authenticator", "/account/authenticator/confirmation",
}

// mustSetUp reports whether the request must wait until the user has set up a second factor.
func mustSetUp(c *gin.Context, session models.Session) bool {
	return session.FactorDue && !slices.Contains(setUpPaths, c.FullPath())
}

// newSecondFactor shows a user whose account requires a second factor how to set one up.
func (p *Portal) newSecondFactor(c *gin.Context) error {
	if !sessionFrom(c).FactorDue {
		return p.redirect(c, accountPath)
	}
	page := templates.SecondFactorPage{Passkeys: p.webauthn != nil, NoApp: p.passwordsOff && p.webauthn != nil, Confirmed: c.Query(paramConfirmed) != ""}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

// requireSecondFactor turns the requirement of a second factor for everyone in the account on or
// off.
func (p *Portal) requireSecondFactor(c *gin.Context) error {
	session := sessionFrom(c)
	required := c.PostForm("required") == "yes"
	if err := p.store.Accounts.RequireSecondFactor(c.Request.Context(), session.AccountID, required, actorOf(c)); err != nil {
		return err
	}
	notice := "A second factor is now required of everyone in this account."
	if !required {
		notice = "A second factor is no longer required."
	}
	return p.redirectWith(c, accountPath, notice)
}
