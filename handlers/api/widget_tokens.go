package api

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/models"
	"portal/models/livekit"
	"portal/models/widget"
)

// widgetTokenBody is the token response of RFC 6749, section 5.1.
type widgetTokenBody struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"` // seconds

	LiveKit *liveKitBody `json:"livekit,omitempty"`
}

// liveKitBody is what a browser needs to join a room of the LiveKit server. The names of the fields
// are those of LiveKit's SDKs.
type liveKitBody struct {
	ServerURL        string `json:"server_url"`
	ParticipantToken string `json:"participant_token"`
}

// createWidgetToken exchanges the caller's API key for a short-lived token for one agent of the
// caller's account.
func (a *API) createWidgetToken(c *gin.Context, caller models.Principal) error {
	agentID, err := readAgentID(c)
	if err != nil {
		return err
	}
	err = a.queries.Run(func() error { return a.store.API.CheckAgent(c.Request.Context(), caller, agentID) })
	if err != nil {
		return err
	}
	body, err := a.issue(caller, agentID)
	if err != nil {
		return err
	}
	a.store.Agents.TokenIssued(agentID)
	c.PureJSON(http.StatusOK, body)
	return nil
}

// issue issues the tokens of a response. It limits how many requests sign at once. Signing takes
// most of the CPU time of a request, so other goroutines would wait long for a processor.
func (a *API) issue(caller models.Principal, agentID uuid.UUID) (body widgetTokenBody, err error) {
	a.signing <- struct{}{}
	defer func() { <-a.signing }()
	token, claims, err := a.tokens.Issue(widget.Grant{AccountID: caller.AccountID, KeyID: caller.KeyID, AgentID: agentID})
	if err != nil {
		return body, err
	}
	body = widgetTokenBody{AccessToken: token, TokenType: "Bearer", ExpiresIn: int(a.tokens.TTL() / time.Second)}
	if a.liveKit != nil {
		body.LiveKit, err = a.liveKitAccess(claims)
	}
	return body, err
}

// liveKitAccess returns access to a new room for as long as the widget token with these claims is
// valid.
func (a *API) liveKitAccess(claims widget.Claims) (*liveKitBody, error) {
	token, err := a.liveKit.ParticipantToken(livekit.Participant{
		Identity: claims.ID.String(), AgentID: claims.AgentID, KeyID: claims.KeyID, ExpiresAt: time.Unix(claims.ExpiresAt, 0),
	})
	if err != nil {
		return nil, err
	}
	return &liveKitBody{ServerURL: a.liveKit.URL(), ParticipantToken: token}, nil
}
