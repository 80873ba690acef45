package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/keys"
	"portal/models/value"
	"portal/models/widget"
)

// gateway registers a handler for a path and for every path below it.
func gateway(r gin.IRouter, path string, h gin.HandlerFunc) {
	r.GET(path, withoutBody, h)
	r.GET(path+"/*rest", withoutBody, h)
}

// withoutBody closes the connection after the response if the request announces a body. Nothing
// reads that body, and the response does not wait for it to arrive: some gateways announce a body
// that they never send.
func withoutBody(c *gin.Context) {
	if c.Request.ContentLength != 0 {
		c.Header("Connection", "close")
	}
}

type authorizationBody struct {
	AccountID uuid.UUID  `json:"accountId"`
	KeyID     uuid.UUID  `json:"keyId"`
	AgentID   *uuid.UUID `json:"agentId,omitempty"`
}

// authorize returns the account and the id of the caller's key, and the agent if the gateway
// asks for one, also in headers, which gateways can copy.
func (cs *customers) authorize(c *gin.Context, caller keys.Principal) error {
	body := authorizationBody{AccountID: caller.AccountID, KeyID: caller.KeyID}
	agentID, err := wantedAgent(c.Request)
	if err != nil {
		return err
	}
	if agentID != nil {
		err := cs.queries.Run(func() error { return cs.api.CheckAgent(c.Request.Context(), caller, *agentID) })
		if errors.Is(err, value.ErrAgentNotFound) {
			return problem.AgentNotAllowed()
		}
		if err != nil {
			return err
		}
		cs.agents.Used(caller.AccountID, *agentID, caller.KeyID)
		body.AgentID = agentID
		c.Header("X-Agent-Id", agentID.String())
	}
	c.Header("X-Account-Id", caller.AccountID.String())
	c.Header("X-Key-Id", caller.KeyID.String())
	c.PureJSON(http.StatusOK, body)
	return nil
}

// wantedAgent returns the query parameter agentId, or nil if the request has none. It returns a 403
// if the parameter is repeated or no UUID.
func wantedAgent(r *http.Request) (*uuid.UUID, error) {
	values := queryValues(r.URL.RawQuery, "agentId")
	if len(values) == 0 {
		return nil, nil //nolint:nilnil // the parameter is optional
	}
	agentID, valid := value.ParseID(values[0])
	if len(values) > 1 || !valid {
		return nil, problem.AgentNotAllowed()
	}
	return &agentID, nil
}

// originalURLHeaders are the headers in which gateways send the URL of the original request, in
// order of precedence.
var originalURLHeaders = []string{"X-Original-Uri", "X-Original-Url", "X-Forwarded-Uri"}

const howToSendToken = "Send it as Authorization: Bearer <token>, or in the URL as access_token=<token>." //nolint:gosec // no credentials

var errNoToken error = problem.Unauthorized(problem.ReasonTokenMissing, "The request has no widget token. "+howToSendToken)

type widgetAuthorizationBody struct {
	AccountID uuid.UUID `json:"accountId"`
	AgentID   uuid.UUID `json:"agentId"`
	KeyID     uuid.UUID `json:"keyId"`
	ExpiresAt time.Time `json:"expiresAt"`

	*widget.Context
}

// authorize returns the account, the agent and the key of the request's widget token, also in
// headers, which gateways can copy. For a token that is not active it returns a 401, and for
// another agent than the token's a 403.
func (w *widgetTokens) authorize(c *gin.Context) error {
	c.Header("Cache-Control", "no-store")
	claims, err := w.authenticate(c)
	if err != nil {
		return err
	}
	middleware.SetCaller(c, middleware.Caller{Account: claims.AccountID, Key: claims.KeyID})
	wanted, err := wantedAgent(c.Request)
	if wanted != nil && *wanted != claims.AgentID {
		err = problem.AgentNotAllowed()
	}
	if err != nil {
		w.ofAccount.giveBack(claims.AccountID)
		w.countRefusal(err)
		return err
	}
	c.Header("X-Account-Id", claims.AccountID.String())
	c.Header("X-Agent-Id", claims.AgentID.String())
	c.Header("X-Key-Id", claims.KeyID.String())
	if claims.Context != nil && claims.User != nil {
		c.Header("X-User-Id", percentEncode(claims.User.ID))
	}
	c.PureJSON(http.StatusOK, widgetAuthorizationBody{
		AccountID: claims.AccountID, AgentID: claims.AgentID, KeyID: claims.KeyID,
		ExpiresAt: time.Unix(claims.ExpiresAt, 0).UTC(),
		Context:   claims.Context,
	})
	return nil
}

// percentEncode returns the text with every byte that is not visible ASCII, and %, as %XX.
func percentEncode(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c > ' ' && c <= '~' && c != '%' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// authenticate returns the claims of the request's widget token. It returns a 401 if the token is
// not active, a 429 beyond its limit, and [value.ErrUnavailable] if it cannot be checked.
func (w *widgetTokens) authenticate(c *gin.Context) (claims widget.Claims, err error) {
	token, err := widgetToken(c.Request)
	if err == nil {
		claims, err = w.tokens.Verify(token)
	}
	if err == nil || errors.Is(err, widget.ErrExpired) {
		if limited := w.ofToken.limit(c, claims.ID); limited != nil {
			return claims, limited
		}
	}
	if err == nil {
		err = w.checkLimited(c, claims)
	}
	if refused, known := tokenProblem(err); known {
		err = refused
	}
	if err != nil && w.countRefusal(err) {
		setChallenge(c, !errors.Is(err, errNoToken))
	}
	return claims, err
}

// checkLimited is checkActive for a token whose request counts for its account. The count comes
// first, because it protects the database. A token that is refused gives its request back, so that
// a client with old tokens of an account cannot use up its limit.
func (w *widgetTokens) checkLimited(c *gin.Context, claims widget.Claims) error {
	if err := w.ofAccount.limit(c, claims.AccountID); err != nil {
		return err
	}
	err := w.checkActive(c.Request.Context(), claims)
	if _, refused := tokenProblem(err); refused {
		w.ofAccount.giveBack(claims.AccountID)
	}
	return err
}

// widgetToken returns the token in the Authorization header. Without this header it returns the
// query parameter access_token (RFC 6750, section 2.3) of the request or, if it has none, of the
// original URL: a browser cannot set headers on a WebSocket. So it does for a header with another
// scheme, such as the password of a site, which a browser sends by itself. If there is not exactly
// one token, or it is an API key, it returns a 401.
func widgetToken(r *http.Request) (string, error) {
	tokens := tokensInURL(r)
	if len(r.Header.Values("Authorization")) > 0 && (len(tokens) == 0 || !otherScheme(r.Header)) {
		token, err := bearer(r.Header)
		if err != nil {
			return "", problem.Unauthorized(problem.ReasonTokenInvalid,
				"The Authorization header is not exactly one Bearer token. "+howToSendToken)
		}
		tokens = []string{token}
	}
	switch {
	case len(tokens) == 0:
		return "", errNoToken
	case len(tokens) > 1:
		return "", problem.Unauthorized(problem.ReasonTokenInvalid, "The URL has more than one widget token. Send exactly one.")
	case strings.HasPrefix(tokens[0], "nas_"):
		return "", problem.Unauthorized(problem.ReasonTokenInvalid,
			"This is an API key, not a widget token. Exchange it for a token at /api/widget/token.")
	}
	return strings.TrimSpace(tokens[0]), nil
}

// otherScheme reports whether the one Authorization header has credentials that are no Bearer
// token.
func otherScheme(h http.Header) bool {
	values := h.Values("Authorization")
	scheme, credentials, _ := strings.Cut(values[0], " ")
	return len(values) == 1 && credentials != "" && !strings.EqualFold(scheme, "Bearer")
}

// tokensInURL returns the tokens in the first URL that has any: that of the request, or that of a
// header with the original URL.
func tokensInURL(r *http.Request) []string {
	tokens := queryValues(r.URL.RawQuery, "access_token")
	for _, name := range originalURLHeaders {
		if len(tokens) > 0 {
			break
		}
		for _, original := range r.Header.Values(name) {
			_, query, _ := strings.Cut(original, "?")
			tokens = append(tokens, queryValues(query, "access_token")...)
		}
	}
	return tokens
}
