package portal

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// settingsPages are the pages on which owners change what concerns the whole account.
type settingsPages struct {
	*site

	accounts    *models.Accounts
	credentials *models.Credentials
	keys        *models.Keys
}

// show shows the settings. Cancel leads to it.
func (p *settingsPages) show(c *gin.Context) error {
	page, err := p.page(c)
	if err != nil {
		return err
	}
	page.TwoStep.Focused = c.Query("asked") != ""
	return p.reply(c, reply{fragment: page.TwoStep, page: present(page)})
}

// rename renames the account.
func (p *settingsPages) rename(c *gin.Context) error {
	form := templates.AccountNameForm{Name: c.PostForm("name")}
	err := p.accounts.Rename(c.Request.Context(), sessionFrom(c).AccountID, form.Name, actorOf(c))
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		form.Problem = invalid.Message
		return p.reply(c, reply{status: http.StatusUnprocessableEntity, fragment: form, page: func() (templates.Page, error) {
			page, err := p.page(c)
			page.Name = form
			return page, err
		}})
	}
	if err != nil {
		return err
	}
	account, err := p.accounts.Find(c.Request.Context(), sessionFrom(c).AccountID)
	if err != nil {
		return err
	}
	return p.reply(c, reply{
		notice:   "The account’s name was saved.",
		fragment: templates.AccountNameForm{Name: account.Name, Saved: true}, location: settingsPath,
	})
}

// newRequirement asks whether to change the requirement of two-step verification.
func (p *settingsPages) newRequirement(c *gin.Context) error {
	page, err := p.page(c)
	if err != nil {
		return err
	}
	if !page.TwoStep.Required && !page.TwoStep.Own {
		return p.redirect(c, settingsPath)
	}
	page.TwoStep.Confirming = true
	page.TwoStep.People, page.TwoStep.WithoutFactor, err = p.accounts.CountFactors(c.Request.Context(), sessionFrom(c).AccountID)
	if err != nil {
		return err
	}
	return p.reply(c, reply{fragment: page.TwoStep, page: present(page)})
}

// createRequirement turns the requirement of two-step verification on or off.
func (p *settingsPages) createRequirement(c *gin.Context) error {
	value := c.PostForm("required")
	if value != "yes" && value != "no" {
		return problem.InvalidRequest("The form is incomplete. Open the Settings page and try again there.")
	}
	required := value == "yes"
	err := p.accounts.RequireSecondFactor(c.Request.Context(), sessionFrom(c).AccountID, required, actorOf(c))
	if err != nil {
		return err
	}
	notice := "Two-step verification is now required."
	if !required {
		notice = "Two-step verification is no longer required."
	}
	return p.redirectWith(c, settingsPath, notice)
}

func (p *settingsPages) page(c *gin.Context) (templates.SettingsPage, error) {
	session := sessionFrom(c)
	factors, err := p.credentials.Factors(c.Request.Context(), session)
	page := templates.SettingsPage{
		Webhooks: p.Store.Webhooks.Enabled(),

		Name:    templates.AccountNameForm{Name: session.AccountName},
		TwoStep: templates.TwoStepRequirement{Required: factors.Required, Own: factors.HasAny, NoApp: p.PasswordsOff},
	}
	limit := p.keys.MaxLifetime()
	if err != nil || limit == 0 {
		return page, err
	}
	page.KeyExpiry = &templates.KeyExpiryRule{Maximum: models.WholeDays(limit)}
	active, err := p.keys.Active(c.Request.Context(), session.AccountID)
	for _, key := range active {
		if key.ExpiresAt == nil {
			page.KeyExpiry.Without++
		}
	}
	return page, err
}
