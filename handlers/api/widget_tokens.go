package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/livekit"
	"portal/models/value"
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

// liveKitBody is what a browser needs to join a room of the LiveKit server, under the names of
// LiveKit's SDKs.
type liveKitBody struct {
	ServerURL        string `json:"server_url"`
	ParticipantToken string `json:"participant_token"`
}

// tokenBuffers are buffers for token responses. A longer response allocates its own.
var tokenBuffers = sync.Pool{New: func() any { return new([1024]byte) }}

// widgetTokens has the endpoints that issue and check widget tokens.
type widgetTokens struct {
	*site

	api     *keys.API
	agents  *agents.Agents
	tokens  *widget.Tokens
	liveKit *livekit.Server // nil: no LiveKit tokens

	ofToken, ofAccount *rateLimiter  // of the requests with tokens; nil: none
	signing            chan struct{} // holds an entry for each request that signs
}

// create exchanges the caller's API key for a short-lived token for one agent of the
// caller's account. The token can have a context: what the caller says about the visitor.
func (w *widgetTokens) create(c *gin.Context, caller keys.Principal) error {
	grant, err := w.readTokenRequest(c)
	if err != nil {
		return err
	}
	agentID := grant.AgentID // not grant, which the closure would make escape to the heap
	err = w.queries.Run(func() error { return w.api.CheckAgent(c.Request.Context(), caller, agentID) })
	if err == nil && w.liveKit != nil && caller.CallsLimited() {
		err = w.queries.Run(func() error { return w.api.CheckCalls(c.Request.Context(), caller) })
	}
	if err != nil {
		return err
	}
	grant.AccountID, grant.KeyID, grant.Until = caller.AccountID, caller.KeyID, caller.ExpiresAt()
	buffer, _ := tokenBuffers.Get().(*[1024]byte)
	defer tokenBuffers.Put(buffer)
	body, err := w.appendTokenResponse(buffer[:0], grant)
	if err != nil {
		return err
	}
	w.agents.Used(caller.AccountID, agentID, caller.KeyID)
	c.Data(http.StatusOK, responseType, body)
	return nil
}

// appendTokenResponse appends the body of a token response to b. Because signing takes most of the
// CPU time of a request, it limits how many requests sign at once, so that other goroutines do not
// wait long for a processor.
func (w *widgetTokens) appendTokenResponse(b []byte, grant widget.Grant) ([]byte, error) {
	w.signing <- struct{}{}
	defer func() { <-w.signing }()
	b, claims, err := w.tokens.Issue(append(b, beforeToken...), grant)
	if err != nil {
		return nil, err
	}
	if claims.ExpiresAt <= claims.IssuedAt { // the last second of the key
		return nil, &value.KeyExpiredError{At: grant.Until}
	}
	b = strconv.AppendInt(append(b, beforeLifetime...), claims.ExpiresAt-claims.IssuedAt, 10)
	if w.liveKit != nil {
		access, err := w.liveKitAccess(claims)
		if err != nil {
			return nil, err
		}
		b = append(append(b, beforeLiveKit...), access...)
		// For LiveKit's TokenSource.endpoint.
		b = append(append(b, ','), access[1:len(access)-1]...)
	}
	return append(b, afterToken...), nil
}

// liveKitAccess returns the JSON of the access to a new room, for as long as the widget token with
// these claims is valid.
func (w *widgetTokens) liveKitAccess(claims widget.Claims) ([]byte, error) {
	participant := livekit.Participant{
		Identity: claims.ID.String(), AgentID: claims.AgentID, KeyID: claims.KeyID, ExpiresAt: time.Unix(claims.ExpiresAt, 0),
	}
	if claims.Context != nil {
		participant.User, participant.Metadata = (*livekit.User)(claims.User), claims.Metadata
	}
	token, err := w.liveKit.ParticipantToken(participant)
	if err != nil {
		return nil, err
	}
	return json.Marshal(liveKitBody{ServerURL: w.liveKit.URL(), ParticipantToken: token})
}

// Limits of a token's context.
const (
	maxContextText   = 128 // characters of an id or a name
	maxMetadata      = 20  // strings
	maxMetadataBytes = 2048
)

// readTokenRequest returns the grant that the body asks for, without the account and the key. For
// any other body than the described one it returns a 400, besides the errors of [readBody].
func (w *widgetTokens) readTokenRequest(c *gin.Context) (widget.Grant, error) {
	body, err := readBody(c, jsonType)
	if err != nil {
		return widget.Grant{}, err
	}
	if id, ok := usualAgentID(body); ok {
		return widget.Grant{AgentID: id}, nil
	}
	o := parseObject(body, `{"agentId": "<uuid>"}`)
	grant := widget.Grant{AgentID: o.id("agentId")}
	context := widget.Context{User: o.user(), Metadata: o.metadata()}
	if context.User != nil || context.Metadata != nil {
		grant.Context = &context
	}
	grant.Life = o.life(w.tokens.TTL())
	return grant, o.err
}

// user returns the field user, or nil if it is missing.
func (o *object) user() *widget.User {
	fields := o.optional("user")
	if fields == nil {
		return nil
	}
	user := &widget.User{ID: o.contextText("user.id", fields["id"])}
	if name := fields["name"]; name != nil {
		user.Name = o.contextText("user.name", name)
	}
	return user
}

// contextText returns a value that must be a string for people to read.
func (o *object) contextText(name string, value any) string {
	text, _ := value.(string)
	if length := utf8.RuneCountInString(text); length == 0 || length > maxContextText || strings.ContainsFunc(text, unicode.IsControl) {
		o.refuse(fmt.Sprintf("%s must be a string of 1 to %d characters, without control characters.", name, maxContextText))
	}
	return text
}

// metadata returns the field metadata, or nil if it is missing.
func (o *object) metadata() map[string]string {
	fields := o.optional("metadata")
	if fields == nil {
		return nil
	}
	metadata := map[string]string{}
	size := len("{}")
	for name, value := range fields {
		if value == nil {
			continue
		}
		text, ok := value.(string)
		if !ok {
			o.refuse("The values of metadata must be strings.")
		}
		metadata[o.contextText("A name in metadata", name)] = text
		size += quotedLength(name) + len(":") + quotedLength(text) + len(",")
	}
	if len(metadata) > maxMetadata || size-len(",") > maxMetadataBytes {
		o.refuse(fmt.Sprintf("The field metadata must have at most %d strings, and as JSON at most %d bytes.", maxMetadata, maxMetadataBytes))
	}
	return metadata
}

// quotedLength returns the length of the shortest JSON string with this text.
func quotedLength(text string) int {
	length := len(`""`) + len(text)
	for _, c := range []byte(text) {
		switch {
		case strings.IndexByte("\"\\\b\f\n\r\t", c) >= 0:
			length += len(`\n`) - 1
		case c < ' ':
			length += len(`\u0000`) - 1
		}
	}
	return length
}

// life returns the field expiresIn, or 0 if it is missing.
func (o *object) life(longest time.Duration) time.Duration {
	value := o.fields["expiresIn"]
	if value == nil {
		return 0
	}
	number, _ := value.(json.Number)
	seconds, err := number.Float64()
	if err != nil || seconds != math.Trunc(seconds) || seconds < 60 || seconds > longest.Seconds() {
		o.refuse(fmt.Sprintf("The field expiresIn must be a whole number of seconds, 60 to %d.", int64(longest.Seconds())))
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// checkActive asks the database about the key, the account and the agent of a verified widget
// token. [tokenProblem] returns the response to the error of a token that is not active.
func (w *widgetTokens) checkActive(ctx context.Context, claims widget.Claims) error {
	caller, err := w.api.AuthenticateToken(ctx, claims)
	if err != nil {
		return err
	}
	return w.queries.Run(func() error { return w.api.CheckAgent(ctx, caller, claims.AgentID) })
}

// tokenProblems are the responses to a widget token that is not active, by reason, in order of
// precedence.
var tokenProblems = []struct {
	err     error
	problem problem.Problem
}{
	{widget.ErrExpired, problem.Unauthorized(problem.ReasonTokenExpired,
		"The widget token has expired. Request a new one.")},
	{widget.ErrInvalid, problem.Unauthorized(problem.ReasonTokenInvalid,
		"The widget token is malformed or was not issued by this service. Request a new one.")},
	{value.ErrKeyRevoked, problem.Unauthorized(problem.ReasonTokenRevoked,
		"The API key of the widget token has been revoked. Request a new token with an active key.")},
	{value.ErrKeyExpired, problem.Unauthorized(problem.ReasonTokenExpired,
		"The API key of the widget token has expired. Request a new token with an active key.")},
	{value.ErrAgentNotAllowed, problem.Unauthorized(problem.ReasonAgent,
		"The API key of the widget token no longer reaches its agent. Request a token for another agent.")},
	{value.ErrAgentPaused, problem.Unauthorized(problem.ReasonAgentPaused,
		"The agent of the widget token is paused. Request a token for another agent, or try again once it is resumed.")},
	{value.ErrAccountDisabled, problem.Unauthorized(problem.ReasonAccountDisabled,
		"The account of the widget token is disabled. Contact the operator.")},
	{value.ErrAgentNotFound, problem.Unauthorized(problem.ReasonAgent,
		"The agent of the widget token has been removed. Request a token for another agent.")},
}

// tokenProblem returns the 401 for a widget token that is not active, and false for any other
// error.
func tokenProblem(err error) (problem.Problem, bool) {
	for _, known := range tokenProblems {
		if errors.Is(err, known.err) {
			return known.problem, true
		}
	}
	return problem.Problem{}, false
}
