package portal

import (
	"errors"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// accountPages are the pages on which users change how they sign in.
type accountPages struct {
	*site

	credentials *models.Credentials
	passkeys    *passkeys // nil: none
	provider    *provider // nil: none
}

const accountPath = "/account"

// show shows the user's sessions and the forms that change the email and the password.
func (p *accountPages) show(c *gin.Context) error {
	page, err := p.page(c, passwordForm(c))
	if err != nil {
		return err
	}
	page.Sessions.EndFocused = c.Query("asked") != "" // after Cancel
	page.Factors.Confirmed = c.Query(paramConfirmed) != ""
	if c.Query("asked") == "factors" {
		page.Sessions.EndFocused, page.Factors.Focused = false, true
		return p.reply(c, reply{fragment: page.Factors, page: present(page)})
	}
	return p.reply(c, reply{fragment: page.Sessions, page: present(page)})
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
	err := p.Store.Sessions.Revoke(c.Request.Context(), session.AccountID, session.UserID, idOf(c), actorOf(c))
	if errors.Is(err, models.ErrSessionNotFound) {
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
	err := p.Store.Sessions.RevokeOthers(c.Request.Context(), session.AccountID, session.UserID, session.ID, actorOf(c))
	if err != nil {
		return err
	}
	return p.sessionsEnded(c, "Signed out of all other sessions.")
}

func (p *accountPages) sessionsEnded(c *gin.Context, notice string) error {
	list, err := p.sessionList(c)
	if err != nil {
		return err
	}
	list.Focused = true
	return p.reply(c, reply{notice: notice, fragment: list, location: accountPath})
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
	return templates.AccountPage{
		Email: p.emailForm(c), Sessions: list, Password: form,
		NoPasswords: p.PasswordsOff, Identity: identity, Factors: factors,
	}, err
}

// sessionList returns the user's sessions, this one first.
func (p *accountPages) sessionList(c *gin.Context) (templates.SessionList, error) {
	current := sessionFrom(c)
	sessions, err := p.Store.Sessions.List(c.Request.Context(), current.AccountID, current.UserID)
	if err != nil {
		return templates.SessionList{}, err
	}
	now := p.Now()
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

const identityPath = "/account/identity"

// createIdentity sends the browser to the provider, to connect an identity to the signed-in user.
// Because the Content-Security-Policy allows no form whose response redirects to another site, it
// answers with a page that leads there.
func (p *accountPages) createIdentity(c *gin.Context) error {
	request := authRequest{Purpose: connects, Session: sessionFrom(c).ID}
	address, err := p.provider.begin(c, request)
	if err != nil {
		return p.provider.refuse(c, request, models.Identity{}, err)
	}
	c.Header("Refresh", "0; url="+address)
	return p.sendPage(c, http.StatusOK, templates.ProviderPage{Provider: p.provider.Name(), Address: address})
}

// removeIdentity disconnects the user's identity.
func (p *accountPages) removeIdentity(c *gin.Context) error {
	err := p.credentials.DisconnectIdentity(c.Request.Context(), sessionFrom(c), p.provider.Issuer(), p.provider.Name(), actorOf(c))
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
		notice:   p.provider.Name() + " disconnected. Signed out of all other sessions.",
		fragment: templates.IdentityDisconnected{Form: form, List: list},
		location: accountPath,
	})
}

// onlySignIn says how to keep a way to sign in without the provider.
func (p *accountPages) onlySignIn() string {
	name := p.provider.Name()
	if p.PasswordsOff {
		return "You can only sign in with " + name + ", so it can’t be disconnected."
	}
	return "You can only sign in with " + name + ". Set a password first, then disconnect it."
}

// identityForm returns the section of the account page that connects and disconnects the provider.
// Without a provider it is empty.
func (p *accountPages) identityForm(c *gin.Context) (templates.IdentityForm, error) {
	if p.provider == nil {
		return templates.IdentityForm{}, nil
	}
	form := templates.IdentityForm{Provider: p.provider.Name()}
	session := sessionFrom(c)
	found, err := p.credentials.FindIdentity(c.Request.Context(), session.AccountID, session.UserID, p.provider.Issuer())
	if errors.Is(err, models.ErrIdentityNotFound) {
		return form, nil
	}
	form.Connected, form.Email = err == nil, found.Email
	form.Since = templates.NewMoment(found.CreatedAt, p.Now())
	return form, err
}
