package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/models/livekit"
	"portal/models/widget"
)

// The token response of RFC 6749, section 5.1, around the token and its lifetime in seconds. A
// token has no character that JSON escapes. BenchmarkTokenResponse shows what a JSON encoder would
// cost.
const (
	beforeToken    = `{"access_token":"`
	beforeLifetime = `","token_type":"Bearer","expires_in":`
	beforeLiveKit  = `,"livekit":`
	afterToken     = "}\n"
)

// liveKitBody is what a browser needs to join a room of the LiveKit server. The names of the fields
// are those of LiveKit's SDKs.
type liveKitBody struct {
	ServerURL        string `json:"server_url"`
	ParticipantToken string `json:"participant_token"`
}

// tokenBuffers are buffers for token responses. A longer response allocates its own.
var tokenBuffers = sync.Pool{New: func() any { return new([1024]byte) }}

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
	buffer, _ := tokenBuffers.Get().(*[1024]byte)
	defer tokenBuffers.Put(buffer)
	body, err := a.appendTokenResponse(buffer[:0], widget.Grant{AccountID: caller.AccountID, KeyID: caller.KeyID, AgentID: agentID})
	if err != nil {
		return err
	}
	a.store.Agents.TokenIssued(agentID)
	c.Data(http.StatusOK, responseType, body)
	return nil
}

// appendTokenResponse appends the body of a token response to b. It limits how many requests sign
// at once. Signing takes most of the CPU time of a request, so other goroutines would wait long for
// a processor.
func (a *API) appendTokenResponse(b []byte, grant widget.Grant) ([]byte, error) {
	a.signing <- struct{}{}
	defer func() { <-a.signing }()
	b, claims, err := a.tokens.Issue(append(b, beforeToken...), grant)
	if err != nil {
		return nil, err
	}
	b = strconv.AppendInt(append(b, beforeLifetime...), int64(a.tokens.TTL()/time.Second), 10)
	if a.liveKit != nil {
		access, err := a.liveKitAccess(claims)
		if err != nil {
			return nil, err
		}
		b = append(append(b, beforeLiveKit...), access...)
	}
	return append(b, afterToken...), nil
}

// liveKitAccess returns the JSON of the access to a new room, for as long as the widget token with
// these claims is valid.
func (a *API) liveKitAccess(claims widget.Claims) ([]byte, error) {
	token, err := a.liveKit.ParticipantToken(livekit.Participant{
		Identity: claims.ID.String(), AgentID: claims.AgentID, KeyID: claims.KeyID, ExpiresAt: time.Unix(claims.ExpiresAt, 0),
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(liveKitBody{ServerURL: a.liveKit.URL(), ParticipantToken: token})
}
