package portal

import (
	"errors"

	"github.com/gin-gonic/gin"
	"rsc.io/qr"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// startAuthenticator shows the secret for an authenticator app, once, and asks for the first code.
func (p *Portal) startAuthenticator(c *gin.Context) error {
	secret, err := p.store.Credentials.StartTOTP(c.Request.Context(), sessionFrom(c))
	if err != nil {
		return p.authenticatorUnchanged(c, err)
	}
	page := templates.AuthenticatorPage{Secret: secret}
	code, err := qr.Encode(templates.AuthenticatorURL(p.name, sessionFrom(c).Email, secret), qr.M)
	if err != nil {
		return err
	}
	page.Code = templates.NewQRCode(code.Size, code.Black)
	return p.reply(c, reply{fragment: page, page: present(page), reveals: true})
}

// enableAuthenticator turns two-step verification on and shows the recovery codes, once.
func (p *Portal) enableAuthenticator(c *gin.Context) error {
	codes, err := p.store.Credentials.EnableTOTP(c.Request.Context(), sessionFrom(c), c.PostForm("code"), actorOf(c))
	_, limited := errors.AsType[*models.SignInLimitError](err)
	if limited || errors.Is(err, models.ErrWrongCode) {
		refusal := problem.From(err)
		setRetryAfter(c, refusal)
		page := templates.AuthenticatorPage{Problem: refusal.Message}
		return p.reply(c, reply{status: refusal.Status, fragment: page, page: present(page)})
	}
	if err != nil {
		return p.authenticatorUnchanged(c, err)
	}
	return p.showRecoveryCodes(c, templates.RecoveryCodesPage{Codes: codes, TurnedOn: true})
}

// renewRecoveryCodes replaces the recovery codes and shows the new ones, once.
func (p *Portal) renewRecoveryCodes(c *gin.Context) error {
	codes, err := p.store.Credentials.RenewRecoveryCodes(c.Request.Context(), sessionFrom(c), actorOf(c))
	if err != nil {
		return p.authenticatorUnchanged(c, err)
	}
	return p.showRecoveryCodes(c, templates.RecoveryCodesPage{Codes: codes})
}

func (p *Portal) showRecoveryCodes(c *gin.Context, page templates.RecoveryCodesPage) error {
	return p.reply(c, reply{fragment: page, page: present(page), reveals: true})
}

// disableAuthenticator turns two-step verification off.
func (p *Portal) disableAuthenticator(c *gin.Context) error {
	if err := p.store.Credentials.DisableTOTP(c.Request.Context(), sessionFrom(c), actorOf(c)); err != nil {
		return p.authenticatorUnchanged(c, err)
	}
	return p.redirectWith(c, accountPath, "Two-step verification turned off. Signed out of all other sessions.")
}

// authenticatorUnchanged leads back to the account page if a repeated or outdated form has nothing
// to change. It returns err if err has another cause.
func (p *Portal) authenticatorUnchanged(c *gin.Context, err error) error {
	switch {
	case errors.Is(err, models.ErrTOTPOn):
		return p.redirectWith(c, accountPath, "Two-step verification is already on.")
	case errors.Is(err, models.ErrTOTPOff):
		return p.redirectWith(c, accountPath, "Two-step verification is off. Set it up again.")
	}
	return err
}

// factors returns the sections of the account page about factors.
func (p *Portal) factors(c *gin.Context) (templates.Factors, error) {
	found, err := p.store.Credentials.Factors(c.Request.Context(), sessionFrom(c))
	if err != nil {
		return templates.Factors{}, err
	}
	view := templates.Factors{
		RecoveryCodes: found.RecoveryCodes, Required: found.Required, Owner: may(sessionFrom(c), managePeople),
		Passkeys: p.webauthn != nil, NoApp: p.passwordsOff,
	}
	if view.PasskeyItems, err = p.passkeyItems(c); err != nil {
		return templates.Factors{}, err
	}
	if found.AuthenticatorSince != nil {
		since := templates.NewMoment(*found.AuthenticatorSince, p.now())
		view.Since = &since
	}
	return view, nil
}
