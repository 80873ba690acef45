package api

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"portal/models"
)

// tokenBody is the answer of RFC 6749, section 5.1.
type tokenBody struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int64  `json:"expires_in"` // seconds
}

// createWidgetToken exchanges the caller's API key for a short-lived token that
// is safe in a browser, for one agent of the caller's account (spec section 4).
func (a *API) createWidgetToken(c *gin.Context, caller models.Principal) error {
	agentID, err := readAgentID(c)
	if err != nil {
		return err
	}
	ctx, cancel := databaseContext(c)
	defer cancel()
	if err := a.store.CheckAgent(ctx, caller, agentID); err != nil {
		return err
	}
	token, err := a.tokens.Issue(caller, agentID)
	if err != nil {
		return err
	}
	c.PureJSON(http.StatusOK, tokenBody{
		AccessToken: token,
		TokenType:   "Bearer",
		ExpiresIn:   int64(a.tokens.TTL() / time.Second),
	})
	return nil
}
