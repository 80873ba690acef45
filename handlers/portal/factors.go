package portal

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"
	"rsc.io/qr"

	"portal/models/value"
	"portal/templates"
)

// newSecondFactor shows a user whose account requires a second factor how to set one up.
func (p *accountPages) newSecondFactor(c *gin.Context) error {
	if !sessionFrom(c).FactorDue {
		return p.redirect(c, accountPath)
	}
	page := templates.SecondFactorPage{Passkeys: p.passkeys != nil, NoApp: p.passwordsOff && p.passkeys != nil, Confirmed: c.Query(paramConfirmed) != ""}
	return p.reply(c, reply{fragment: page, page: present(page)})
}

// startTOTP shows the secret for an authenticator app, once, and asks for the first code.
func (p *accountPages) startTOTP(c *gin.Context) error {
	secret, err := p.credentials.StartTOTP(c.Request.Context(), sessionFrom(c))
	if err != nil {
		return p.totpUnchanged(c, err)
	}
	page := templates.TOTPPage{Secret: secret}
	code, err := qr.Encode(templates.TOTPURL(p.product, sessionFrom(c).Email, secret), qr.M)
	if err != nil {
		return err
	}
	page.Code = templates.NewQRCode(code.Size, code.Black)
	return p.reply(c, reply{fragment: page, page: present(page), reveals: true})
}

// enableTOTP turns two-step verification on and shows the recovery codes, once.
func (p *accountPages) enableTOTP(c *gin.Context) error {
	codes, err := p.credentials.EnableTOTP(c.Request.Context(), sessionFrom(c), c.PostForm("code"), actorOf(c))
	if refusal, ok := refusalOf(c, err, value.ErrWrongCode); ok {
		page := templates.TOTPPage{Problem: refusal.Message}
		return p.reply(c, reply{status: refusal.Status, fragment: page, page: present(page)})
	}
	if err != nil {
		return p.totpUnchanged(c, err)
	}
	return p.showRecoveryCodes(c, templates.RecoveryCodesPage{Codes: codes, TurnedOn: true})
}

// renewRecoveryCodes replaces the recovery codes and shows the new ones, once.
func (p *accountPages) renewRecoveryCodes(c *gin.Context) error {
	codes, err := p.credentials.RenewRecoveryCodes(c.Request.Context(), sessionFrom(c), actorOf(c))
	if err != nil {
		return p.totpUnchanged(c, err)
	}
	return p.showRecoveryCodes(c, templates.RecoveryCodesPage{Codes: codes})
}

func (p *accountPages) showRecoveryCodes(c *gin.Context, page templates.RecoveryCodesPage) error {
	return p.reply(c, reply{fragment: page, page: present(page), reveals: true})
}

// confirmFactor returns the handler that asks whether to make a change of two-step verification.
func (p *accountPages) confirmFactor(change templates.FactorChange) handler {
	return func(c *gin.Context) error {
		page, err := p.page(c, passwordForm(c))
		if err != nil {
			return err
		}
		if page.Factors.Since == nil {
			return p.redirect(c, accountPath)
		}
		if change == templates.FactorTurningOff && page.Factors.LastApp() {
			return p.refuseLastApp(c)
		}
		page.Factors.Confirming = change
		return p.reply(c, reply{fragment: page.Factors, page: present(page)})
	}
}

// refuseLastApp shows that the app is the user's only factor, and the account requires one.
func (p *accountPages) refuseLastApp(c *gin.Context) error {
	page, err := p.page(c, passwordForm(c))
	if err != nil {
		return err
	}
	page.Factors.AppRefused, page.Factors.Focused = true, true
	return p.reply(c, reply{status: http.StatusConflict, fragment: page.Factors, page: present(page)})
}

// disableTOTP turns two-step verification off.
func (p *accountPages) disableTOTP(c *gin.Context) error {
	err := p.credentials.DisableTOTP(c.Request.Context(), sessionFrom(c), actorOf(c))
	if errors.Is(err, value.ErrLastFactor) {
		return p.refuseLastApp(c)
	}
	if err != nil {
		return p.totpUnchanged(c, err)
	}
	return p.redirectWith(c, accountPath, "Two-step verification turned off. You’ve been signed out everywhere else.")
}

// totpUnchanged leads back to the account page if a repeated or outdated form has nothing to
// change. If err has another cause, it returns err.
func (p *accountPages) totpUnchanged(c *gin.Context, err error) error {
	switch {
	case errors.Is(err, value.ErrTOTPOn):
		return p.redirectWith(c, accountPath, "Two-step verification is already on.")
	case errors.Is(err, value.ErrTOTPOff):
		return p.redirectWith(c, accountPath, "Two-step verification is off. Set it up again.")
	}
	return err
}
