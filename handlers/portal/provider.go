package portal

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/deps"
	"portal/handlers/middleware"
	"portal/handlers/portal/identity"
	"portal/handlers/problem"
	"portal/models/people"
	"portal/models/value"
	"portal/templates"
)

// oidcClient is the portal as a client of the OpenID Connect provider.
type oidcClient struct {
	*site
	*identity.Provider

	signIns *people.SignIn
}

// newOIDCClient returns nil if there is no provider.
func newOIDCClient(s *site, d deps.Deps) *oidcClient {
	if d.Provider == nil {
		return nil
	}
	config := *d.Provider
	config.RedirectURL, config.Now, config.Logger = s.url(CallbackPath), d.Now, d.Logger
	return &oidcClient{site: s, Provider: identity.New(config), signIns: d.Store.SignIn}
}

// purpose is the reason for a sign-in at the provider.
type purpose int

const (
	signsIn  purpose = iota // as the user of the identity
	connects                // the identity to the user of a session
	joins                   // as a new user with an invitation
)

// authRequest is a request to the provider that a browser has begun. Only this browser can complete
// it, so nobody can be signed in as another person by a link.
type authRequest struct {
	identity.AuthRequest

	Purpose    purpose
	Next       string    // path to open after a sign-in
	Session    uuid.UUID // in which to connect the identity
	Invitation string    // token of the invitation
}

// begin stores a new request in the browser, beside those of its other tabs, and returns the
// provider's address.
func (p *oidcClient) begin(c *gin.Context, request authRequest) (address string, err error) {
	address, request.AuthRequest, err = p.Begin(c.Request.Context(), c.Query("again") != "")
	if err != nil {
		return "", err
	}
	return address, p.cookies.add(c, requestCookie, request.State, request)
}

// start sends the browser to the provider.
func (p *oidcClient) start(c *gin.Context, request authRequest) error {
	address, err := p.begin(c, request)
	if err != nil {
		return p.refuse(c, request, people.Identity{}, err)
	}
	return p.redirect(c, address)
}

// finish returns the request that the browser has begun, and the identity that the provider has
// sent it back with.
func (p *oidcClient) finish(c *gin.Context) (request authRequest, found people.Identity, err error) {
	p.cookies.take(c, requestCookie, c.Query("state"), &request)
	found, err = p.Finish(c.Request.Context(), request.AuthRequest, c.Request.URL.Query(), func(ctx context.Context, found people.Identity) (identity.EmailUse, error) {
		return p.emailUse(ctx, request.Purpose, found)
	})
	return request, found, err
}

// emailUse returns what a request needs the email of an identity for.
func (p *oidcClient) emailUse(ctx context.Context, purpose purpose, found people.Identity) (identity.EmailUse, error) {
	if purpose == connects {
		return identity.EmailShown, nil
	}
	known, err := p.signIns.KnowsIdentity(ctx, found)
	switch {
	case err != nil || known:
		return identity.EmailUnused, err
	case purpose == signsIn && !p.TrustsEmail() && !p.DecidesAccess():
		return identity.EmailShown, nil
	}
	return identity.EmailRequired, nil
}

// refuse shows why a sign-in at the provider has failed, and what the user can do. It
// returns err if err is not about the sign-in.
func (p *oidcClient) refuse(c *gin.Context, request authRequest, found people.Identity, err error) error {
	status, message := p.explain(err)
	if status == 0 {
		return err
	}
	page := templates.IdentityProblemPage{
		Provider: p.Name(), Problem: message, Email: found.Email,
		Connecting: request.Purpose == connects, Joining: request.Purpose == joins, NoPasswords: p.passwordsOff,
		Unknown: errors.Is(err, value.ErrIdentityNotFound),
		Another: found.Subject != "",
	}
	_ = c.Error(err) // for the log
	if status >= http.StatusInternalServerError {
		page.RequestID = middleware.RequestIDOf(c)
	}
	path, query := providerPath, url.Values{"next": {p.destination(request.Next)}}
	if page.Joining {
		path, query = p.joinPath(request.Invitation), url.Values{}
	}
	if page.Another {
		// Otherwise the provider would return the same identity again.
		query.Set("again", "yes")
	}
	page.Again = (&url.URL{Path: path, RawQuery: query.Encode()}).String()
	return p.sendPage(c, status, page)
}

// explain returns the status and the message for an error of a sign-in at the provider. The
// status is 0 for other errors.
func (p *oidcClient) explain(err error) (status int, message string) {
	name := p.Name()
	switch {
	case errors.Is(err, identity.ErrExpired):
		return http.StatusBadRequest, "This sign-in has expired, or it was started in another browser. Start again."
	case errors.Is(err, identity.ErrDenied):
		return http.StatusForbidden, name + " didn’t sign you in. You may have cancelled, or you may not have access."
	case errors.Is(err, identity.ErrFailed):
		return http.StatusServiceUnavailable, name + " is not available right now. Try again in a moment."
	case errors.Is(err, value.ErrIdentityNotFound):
		return http.StatusForbidden, "This " + name + " account isn’t linked to a user here."
	case errors.Is(err, value.ErrNoAccess):
		return http.StatusForbidden, "Your organization has not given you access to " + p.product + "."
	case errors.Is(err, value.ErrIdentityTaken):
		return http.StatusConflict, "This " + name + " identity can’t be connected. It belongs to another user, or your user already has another one."
	case errors.Is(err, value.ErrSignInDisabled):
		refusal := problem.From(err)
		return refusal.Status, refusal.Message
	}
	return 0, ""
}

func (p *oidcClient) joinPath(token string) string { return invitationPath + "/" + token + "/oidc" }
