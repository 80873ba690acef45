package portal

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/handlers/portal/identity"
	"portal/handlers/problem"
	"portal/models"
	"portal/templates"
)

// refuseIdentity shows why a sign-in at the provider has failed, and what the user can do. It
// returns err if err is not about the sign-in.
func (p *Portal) refuseIdentity(c *gin.Context, begun attempt, found models.Identity, err error) error {
	status, message := p.identityProblem(err)
	if status == 0 {
		return err
	}
	page := templates.IdentityProblemPage{
		Provider: p.provider.Name(), Problem: message, Email: found.Email,
		Connecting: begun.Purpose == connects, Joining: begun.Purpose == joins, NoPasswords: p.passwordsOff,
		Unknown: errors.Is(err, models.ErrIdentityNotFound),
		Another: found.Subject != "",
	}
	if status >= http.StatusInternalServerError {
		_ = c.Error(err) // for the log
		page.RequestID = middleware.RequestIDOf(c)
	}
	path, query := providerPath, url.Values{"next": {p.destination(begun.Next)}}
	if page.Joining {
		path, query = p.joinPath(begun.Invitation), url.Values{}
	}
	if page.Another {
		// Otherwise the provider would return the same identity again.
		query.Set("again", "yes")
	}
	page.Again = (&url.URL{Path: path, RawQuery: query.Encode()}).String()
	return p.sendPage(c, status, page)
}

// identityProblem returns the status and the message for an error of a sign-in at the provider. The
// status is 0 for other errors.
func (p *Portal) identityProblem(err error) (status int, message string) {
	name := p.provider.Name()
	switch {
	case errors.Is(err, identity.ErrExpired):
		return http.StatusBadRequest, "This sign-in has expired, or it was started in another browser. Start again."
	case errors.Is(err, identity.ErrDenied):
		return http.StatusForbidden, name + " did not sign you in, because you cancelled or have no access."
	case errors.Is(err, identity.ErrFailed):
		return http.StatusServiceUnavailable, name + " is not available right now. Try again in a moment."
	case errors.Is(err, models.ErrIdentityNotFound):
		return http.StatusForbidden, "No user here is connected to this " + name + " identity."
	case errors.Is(err, models.ErrIdentityTaken):
		return http.StatusConflict, "This " + name + " identity can’t be connected. It belongs to another user, or your user already has another one."
	case errors.Is(err, models.ErrSignInDisabled):
		refusal := problem.From(err)
		return refusal.Status, refusal.Message
	}
	return 0, ""
}
