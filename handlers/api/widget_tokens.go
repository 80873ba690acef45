package api

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"portal/models"
)

// widgetTokenBody is the token response of RFC 6749, section 5.1.
type widgetTokenBody struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"` // seconds
}

// createWidgetToken exchanges the caller's API key for a short-lived token for one agent of the
// caller's account.
func (a *API) createWidgetToken(c *gin.Context, caller models.Principal) error {
	agentID, err := readAgentID(c)
	if err != nil {
		return err
	}
	err = a.queries.Run(func() error { return a.store.CheckAgent(c.Request.Context(), caller, agentID) })
	if err != nil {
		return err
	}
	token, err := a.tokens.Issue(caller, agentID)
	if err != nil {
		return err
	}
	a.store.TokenIssued(agentID)
	c.PureJSON(http.StatusOK, widgetTokenBody{
		AccessToken: token, TokenType: "Bearer", ExpiresIn: int(a.tokens.TTL() / time.Second),
	})
	return nil
}
