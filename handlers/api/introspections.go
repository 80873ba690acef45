package api

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"portal/models"
)

// introspectionBody is the answer of RFC 7662, section 2.2: of a token that is
// not active it says nothing but that.
type introspectionBody struct {
	Active bool `json:"active"`
	*models.WidgetClaims
}

// introspectWidgetToken tells whether a widget token is active at this moment,
// and what it claims. A token of another account is as unknown as a forged one.
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
	claims, err := a.tokens.Verify(token)
	if errors.Is(err, models.ErrTokenInvalid) {
		return introspectionBody{}, nil
	}
	if err != nil {
		return introspectionBody{}, err
	}
	ctx, cancel := databaseContext(c, caller.Waited())
	defer cancel()
	active, err := a.store.WidgetTokenActive(ctx, caller.AccountID, claims)
	if err != nil || !active {
		return introspectionBody{}, err
	}
	return introspectionBody{Active: true, WidgetClaims: &claims}, nil
}
