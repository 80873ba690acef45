package portal

import (
	"errors"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models/people"
	"portal/models/value"
	"portal/templates"
)

// accountPages are the pages on which users change how they sign in.
type accountPages struct {
	*site

	credentials *people.Credentials
	passkeys    *relyingParty // nil: none
	oidc        *oidcClient   // nil: none
}

// paramConfirmed is set after the user has confirmed the sign-in to add a passkey.
const paramConfirmed = "confirmed"

// show shows the user's sessions and the forms that change the email and the password.
func (p *accountPages) show(c *gin.Context) error {
	page, err := p.page(c, passwordForm(c))
	if err != nil {
		return err
	}
	page.Sessions.EndFocused = c.Query("asked") != "" // after Cancel
	page.Factors.Confirmed = c.Query(paramConfirmed) != ""
	if id, ok := parseID(c.Query("asked")); ok {
		page.Sessions.EndFocused = false
		if passkey := page.Factors.Passkey(id); passkey != nil {
			passkey.Focused = true
		}
		return p.reply(c, reply{fragment: templates.PasskeySection{Factors: page.Factors}, page: present(page)})
	}
	if c.Query("asked") == "factors" {
		page.Sessions.EndFocused, page.Factors.Focused = false, true
		return p.reply(c, reply{fragment: page.Factors, page: present(page)})
	}
	return p.reply(c, reply{fragment: page.Sessions, page: present(page)})
}

func (p *accountPages) page(c *gin.Context, form templates.PasswordForm) (templates.AccountPage, error) {
	list, err := p.sessionList(c)
	if err != nil {
		return templates.AccountPage{}, err
	}
	identity, err := p.identityForm(c)
	if err != nil {
		return templates.AccountPage{}, err
	}
	factors, err := p.factors(c)
	if err != nil {
		return templates.AccountPage{}, err
	}
	email, err := p.emailForm(c)
	return templates.AccountPage{
		Email: email, Sessions: list, Password: form,
		NoPasswords: p.passwordsOff || sessionFrom(c).ByProvider, Identity: identity, Factors: factors,
	}, err
}

// sessionList returns the user's sessions, this one first.
func (p *accountPages) sessionList(c *gin.Context) (templates.SessionList, error) {
	current := sessionFrom(c)
	sessions, err := p.sessions.stored.List(c.Request.Context(), current.AccountID, current.UserID)
	if err != nil {
		return templates.SessionList{}, err
	}
	now := p.now()
	var list templates.SessionList
	for _, session := range sessions {
		item := templates.SessionItem{
			ID: session.ID, Device: templates.Device(session.UserAgent), Current: session.ID == current.ID,
			Began: templates.NewMoment(session.CreatedAt, now), FirstAddress: session.FirstAddress,
			Seen: templates.NewMoment(session.LastSeenAt, now), LastAddress: session.LastAddress,
		}
		if item.Current {
			list.Sessions = slices.Insert(list.Sessions, 0, item)
		} else {
			list.Sessions = append(list.Sessions, item)
		}
	}
	return list, nil
}

// identityForm returns the section of the account page that connects and disconnects the provider.
// Without a provider it is empty.
func (p *accountPages) identityForm(c *gin.Context) (templates.IdentityForm, error) {
	if p.oidc == nil {
		return templates.IdentityForm{}, nil
	}
	session := sessionFrom(c)
	form := templates.IdentityForm{Provider: p.oidc.Name(), Decides: p.oidc.DecidesAccess()}
	found, err := p.credentials.FindIdentity(c.Request.Context(), session.AccountID, session.UserID, p.oidc.Issuer())
	if errors.Is(err, value.ErrIdentityNotFound) {
		return form, nil
	}
	form.Connected, form.Email = err == nil, found.Email
	form.Since = templates.NewMoment(found.CreatedAt, p.now())
	return form, err
}

// emailForm returns the empty form of the user, with the pending change.
func (p *accountPages) emailForm(c *gin.Context) (templates.EmailForm, error) {
	session := sessionFrom(c)
	form := templates.EmailForm{Email: session.Email, NoPassword: session.NoPassword, NoMail: !p.mailsOn, Support: p.support}
	if form.NoMail {
		return form, nil
	}
	pending, err := p.credentials.PendingEmail(c.Request.Context(), session)
	form.Pending = pending
	return form, err
}

// passwordForm returns the empty form of the user.
func passwordForm(c *gin.Context) templates.PasswordForm {
	session := sessionFrom(c)
	return templates.PasswordForm{Email: session.Email, NoPassword: session.NoPassword}
}

// factors returns the sections of the account page about factors.
func (p *accountPages) factors(c *gin.Context) (templates.Factors, error) {
	found, err := p.credentials.Factors(c.Request.Context(), sessionFrom(c))
	if err != nil {
		return templates.Factors{}, err
	}
	view := templates.Factors{
		RecoveryCodes: found.RecoveryCodes, Passkeys: p.passkeys != nil, NoApp: p.passwordsOff,
		ByProvider: sessionFrom(c).ByProvider,
		Required:   found.Required && !sessionFrom(c).ByProvider, Owner: owns(sessionFrom(c)),
	}
	view.Since = optionalMoment(found.AuthenticatorSince, p.now())
	passkeys, err := p.credentials.Passkeys(c.Request.Context(), sessionFrom(c))
	for _, passkey := range passkeys {
		view.PasskeyItems = append(view.PasskeyItems, templates.PasskeyItem{
			ID: passkey.ID, Name: passkey.Name,
			Created: templates.NewMoment(passkey.CreatedAt, p.now()), Used: optionalMoment(passkey.LastUsedAt, p.now()),
		})
	}
	return view, err
}

// newOthersRevocation asks whether to end all of the user's other sessions.
func (p *accountPages) newOthersRevocation(c *gin.Context) error {
	page, err := p.page(c, passwordForm(c))
	if err != nil {
		return err
	}
	page.Sessions.Confirming = page.Sessions.Others() > 0
	return p.reply(c, reply{fragment: page.Sessions, page: present(page)})
}

// revokeSession ends one of the user's other sessions.
func (p *accountPages) revokeSession(c *gin.Context) error {
	session := sessionFrom(c)
	err := p.sessions.stored.Revoke(c.Request.Context(), session.AccountID, session.UserID, idOf(c), actorOf(c))
	if errors.Is(err, value.ErrSessionNotFound) {
		// A 401 would mean that the session of this request has ended.
		return problem.Problem{
			Status: http.StatusNotFound, Code: problem.CodeNotFound,
			Message: "Session not found. It may have already ended. Reload the page to see your active sessions.",
		}
	}
	if err != nil {
		return err
	}
	return p.sessionsEnded(c, "Session ended.")
}

// revokeOtherSessions ends all of the user's sessions except this one, if there are any.
func (p *accountPages) revokeOtherSessions(c *gin.Context) error {
	session := sessionFrom(c)
	err := p.sessions.stored.RevokeOthers(c.Request.Context(), session.AccountID, session.UserID, session.ID, actorOf(c))
	if err != nil {
		return err
	}
	return p.sessionsEnded(c, "You’ve been signed out everywhere else.")
}

func (p *accountPages) sessionsEnded(c *gin.Context, notice string) error {
	list, err := p.sessionList(c)
	if err != nil {
		return err
	}
	list.Focused = true
	return p.reply(c, reply{notice: notice, fragment: list, location: accountPath})
}
