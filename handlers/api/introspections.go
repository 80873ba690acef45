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
	body, err := a.introspect(c, caller, token)
	if err != nil {
		return err
	}
	c.PureJSON(http.StatusOK, body)
	return nil
}

func (a *API) introspect(c *gin.Context, caller models.Principal, token string) (introspectionBody, error) {
	ctx, cancel := a.withTimeout(c, caller.Waited())
	defer cancel()
	var active activeToken
	claims, err := a.tokens.Verify(token)
	if err == nil {
		active, err = a.activeToken(ctx, claims)
	}
	if _, inactive := tokenProblem(err); inactive || err == nil && active.AccountID != caller.AccountID {
		return introspectionBody{}, nil
	}
	if err != nil {
		return introspectionBody{}, err
	}
	return introspectionBody{Active: true, Claims: &active.claims}, nil
}
