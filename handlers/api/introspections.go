package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/models/widget"
)

// introspectionBody is the response of RFC 7662, section 2.2. Without claims it is
// {"active": false}.
type introspectionBody struct {
	Active bool `json:"active"`
	*widget.Claims
}

// introspectWidgetToken reports whether a widget token is active, and returns its claims if it is.
// A token of another account is not active.
func (a *API) introspectWidgetToken(c *gin.Context, caller models.Principal) error {
	token, err := readToken(c)
	if err != nil {
		return err
	}
	ctx, cancel := a.withTimeout(c, caller.Waited())
	defer cancel()
	claims, err := a.tokens.Verify(token)
	if err == nil {
		err = a.checkActive(ctx, claims)
	}
	var body introspectionBody
	if _, inactive := tokenProblem(err); inactive {
		err = nil
	} else if claims.AccountID == caller.AccountID {
		body = introspectionBody{Active: true, Claims: &claims}
	}
	return send(c, http.StatusOK, body, err)
}
