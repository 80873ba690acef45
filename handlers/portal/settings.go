package portal

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/problem"
	"portal/models/keys"
	"portal/models/people"
	"portal/models/value"
	"portal/templates"
)

// settingsPages are the pages on which owners change what concerns the whole account.
type settingsPages struct {
	*site

	accounts    *people.Accounts
	credentials *people.Credentials
	keys        *keys.Keys
	unused      *keys.Unused
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

func (p *settingsPages) rename(c *gin.Context) error {
	form := templates.AccountNameForm{Name: c.PostForm("name")}
	err := p.accounts.Rename(c.Request.Context(), sessionFrom(c).AccountID, form.Name, actorOf(c))
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
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

// setUnusedLifetime sets when unused keys are revoked.
func (p *settingsPages) setUnusedLifetime(c *gin.Context) error {
	ctx, accountID := c.Request.Context(), sessionFrom(c).AccountID
	days, err := strconv.Atoi(c.PostForm("after"))
	if err != nil {
		days = -1 // no choice
	}
	err = p.unused.SetLifetime(ctx, accountID, time.Duration(days)*value.Day, actorOf(c))
	invalid, isInvalid := errors.AsType[*value.InvalidError](err)
	if err != nil && !isInvalid {
		return err
	}
	form, err := p.unusedKeys(ctx, accountID)
	if err != nil {
		return err
	}
	if isInvalid {
		form.Problem = invalid.Message
		return p.reply(c, reply{status: http.StatusUnprocessableEntity, fragment: form, page: func() (templates.Page, error) {
			page, err := p.page(c)
			page.Unused = form
			return page, err
		}})
	}
	form.Saved = true
	return p.reply(c, reply{notice: "The setting for unused keys was saved.", fragment: form, location: settingsPath})
}

// unusedKeys returns the form about unused keys of an account.
func (p *settingsPages) unusedKeys(ctx context.Context, accountID uuid.UUID) (templates.UnusedKeysForm, error) {
	form := templates.UnusedKeysForm{Mail: p.mailsOn}
	account, err := p.accounts.Find(ctx, accountID)
	if err != nil {
		return form, err
	}
	current := p.unused.Lifetime(account)
	for _, after := range p.unused.Lifetimes() {
		form.Choices = append(form.Choices, templates.UnusedChoice{Days: int(after / value.Day), Name: keys.UnusedText(after), Current: after == current})
	}
	return form, nil
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
		Webhooks: p.webhooksOn,

		Name:    templates.AccountNameForm{Name: session.AccountName},
		TwoStep: templates.TwoStepRequirement{Required: factors.Required, Own: factors.HasAny, NoApp: p.passwordsOff},
	}
	if err != nil {
		return page, err
	}
	page.Unused, err = p.unusedKeys(c.Request.Context(), session.AccountID)
	limit := p.keys.MaxLifetime()
	if err != nil || limit == 0 {
		return page, err
	}
	page.KeyExpiry = &templates.KeyExpiryRule{Maximum: value.WholeDays(limit)}
	active, err := p.keys.Active(c.Request.Context(), session.AccountID)
	for _, key := range active {
		if key.ExpiresAt == nil {
			page.KeyExpiry.Without++
		}
	}
	return page, err
}
