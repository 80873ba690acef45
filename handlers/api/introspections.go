package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"portal/handlers/problem"
	"portal/models/keys"
	"portal/models/value"
	"portal/models/widget"
)

// introspectionBody is the response of RFC 7662, section 2.2. Without claims it is
// {"active": false}.
type introspectionBody struct {
	Active bool `json:"active"`
	*widget.Claims
}

// accessIntrospectionBody is introspectionBody for an active access token.
type accessIntrospectionBody struct {
	Active bool `json:"active"`
	*widget.AccessClaims
}

// introspect reports whether a widget token or an access token is active, and returns its claims if
// it is.
// A token of another account is not active.
func (w *widgetTokens) introspect(c *gin.Context, caller keys.Principal) error {
	token, err := readToken(c)
	if err != nil {
		return err
	}
	ctx, cancel := w.withTimeout(c, caller.Waited())
	defer cancel()
	if access, err := w.tokens.VerifyAccess(token); err == nil && !w.issuers.Off && access.AccountID == caller.AccountID {
		return w.introspectAccess(ctx, c, access)
	}
	claims, err := w.tokens.Verify(token)
	if err == nil {
		err = w.checkActive(ctx, claims)
	}
	var body introspectionBody
	if _, inactive := tokenProblem(err); inactive {
		err = nil
	} else if claims.AccountID == caller.AccountID {
		body = introspectionBody{Active: true, Claims: &claims}
	}
	return send(c, http.StatusOK, body, err)
}

// introspectAccess is introspect for an access token of the caller's account.
func (w *widgetTokens) introspectAccess(ctx context.Context, c *gin.Context, claims widget.AccessClaims) error {
	err := w.api.CheckAccessToken(ctx, claims)
	if _, inactive := tokenProblem(err); inactive || errors.Is(err, value.ErrTrustChanged) {
		return send(c, http.StatusOK, introspectionBody{}, nil)
	}
	return send(c, http.StatusOK, accessIntrospectionBody{Active: true, AccessClaims: &claims}, err)
}

// readToken returns the form field token (RFC 7662, section 2.1). It returns the errors of
// [readBody], and a 400 if the token is missing, empty or repeated.
func readToken(c *gin.Context) (string, error) {
	body, err := readBody(c, formType)
	if err != nil {
		return "", err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", problem.InvalidRequest("The request body is not a valid form. Send token=<widget token>.")
	}
	tokens := form["token"]
	if len(tokens) != 1 || strings.TrimSpace(tokens[0]) == "" {
		return "", problem.InvalidRequest("The form field token must occur exactly once and contain the widget token. Send token=<widget token>.")
	}
	return strings.TrimSpace(tokens[0]), nil // a file ends in a line break
}
