package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"portal/models"
)

// The answer of RFC 6749, section 5.1, around the token, which has no character
// that JSON escapes; expires_in is in seconds. This is the endpoint that
// backends wait for, and an encoder would take longer than checking the key.
const (
	beforeToken = `{"access_token":"`
	afterToken  = `","token_type":"Bearer","expires_in":` //nolint:gosec // the names of fields
	atTheEnd    = "}\n"
)

// createWidgetToken exchanges the caller's API key for a short-lived token that
// is safe in a browser, for one agent of the caller's account (spec section 4).
func (a *API) createWidgetToken(c *gin.Context, caller models.Principal) error {
	agentID, err := readAgentID(c)
	if err != nil {
		return err
	}
	if err := a.store.CheckAgent(c.Request.Context(), caller, agentID); err != nil {
		return err
	}
	token, err := a.tokens.Issue(caller, agentID)
	if err != nil {
		return err
	}
	body := make([]byte, 0, len(beforeToken)+len(token)+len(afterToken)+len("3600")+len(atTheEnd))
	body = append(body, beforeToken...)
	body = append(body, token...)
	body = append(body, afterToken...)
	body = strconv.AppendInt(body, int64(a.tokens.TTL()/time.Second), 10)
	body = append(body, atTheEnd...)
	c.Data(http.StatusOK, "application/json; charset=utf-8", body)
	return nil
}
