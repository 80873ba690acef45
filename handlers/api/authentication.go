package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"portal/handlers/middleware"
	"portal/handlers/problem"
	"portal/models/agents"
	"portal/models/calls"
	"portal/models/keys"
	"portal/models/record"
	"portal/models/usage"
	"portal/models/value"
	"portal/models/widget"
)

const howToSend = "Send it as: Authorization: Bearer <API_KEY>."

// customers have the endpoints for customers' backends, which send an API key.
type customers struct {
	*site

	api      *keys.API
	usage    *keys.Usage
	agents   *agents.Agents
	calls    *calls.Calls
	activity *record.ActivityLog
	tokens   *widget.Tokens

	limit     *rateLimiter        // of each key; nil: none
	ofReports *rateLimiter        // of the reports of each account
	reports   *middleware.SlotsOf // of each account
}

// authenticate returns the caller, whose request comes from this address. It returns a 401 if the
// credentials are missing, malformed or refused, and [value.ErrUnavailable] if a well-formed key
// cannot be checked.
func (cs *customers) authenticate(c *gin.Context, address netip.Addr) (keys.Principal, error) {
	caller, err := cs.principal(c, address)
	if err != nil && cs.countRefusal(err) {
		setChallenge(c, len(c.Request.Header.Values("Authorization")) > 0)
	}
	return caller, err
}

func (cs *customers) principal(c *gin.Context, address netip.Addr) (keys.Principal, error) {
	key, err := bearer(c.Request.Header)
	if err != nil {
		return keys.Principal{}, err
	}
	from := usage.NewSource(address, c.Request.UserAgent())
	var caller keys.Principal
	if looksLikeJWT(key) && !cs.issuers.Off {
		caller, err = cs.accessPrincipal(c, key, from)
	} else {
		caller, err = cs.api.Authenticate(c.Request.Context(), key, from)
	}
	if at := caller.ExpiresAt(); !at.IsZero() {
		c.Header("X-Key-Expires-At", at.UTC().Format(time.RFC3339))
	}
	if err == nil {
		middleware.SetCaller(c, middleware.Caller{Account: caller.AccountID, Key: caller.KeyID})
	}
	return caller, err
}

// looksLikeJWT reports whether a credential begins like a JWT, whose header is a JSON object.
func looksLikeJWT(credential string) bool { return strings.HasPrefix(credential, "eyJ") }

// accessPrincipal returns the caller of an access token.
func (cs *customers) accessPrincipal(c *gin.Context, token string, from keys.Source) (keys.Principal, error) {
	claims, err := cs.tokens.VerifyAccess(token)
	if err != nil {
		return keys.Principal{}, accessProblem(err)
	}
	caller, err := cs.api.AuthenticateAccessToken(c.Request.Context(), claims, from)
	return caller, accessProblem(err)
}

// accessProblem returns the 401 for an access token that is invalid or has expired, and any other
// error as it is.
func accessProblem(err error) error {
	switch {
	case errors.Is(err, widget.ErrWidgetToken):
		return value.ErrKeyMissingPrefix
	case errors.Is(err, widget.ErrExpired):
		return problem.Unauthorized(problem.ReasonTokenExpired, "The access token has expired. Exchange the token of your platform for a new one at /oauth/token.")
	case errors.Is(err, widget.ErrInvalid):
		return problem.Unauthorized(problem.ReasonTokenInvalid, "The access token is malformed or was not issued by this service. "+
			"Exchange the token of your platform for a new one at /oauth/token.")
	}
	return err
}

// bearer returns the Bearer credential of the one Authorization header, whose scheme is
// case-insensitive (RFC 9110, section 11.6.2).
func bearer(h http.Header) (string, error) {
	values := h.Values("Authorization")
	if len(values) == 0 && h.Get("X-Api-Key") != "" {
		return "", problem.Unauthorized(problem.ReasonMissing, "The X-API-Key header is not supported. "+howToSend)
	}
	if len(values) == 0 {
		return "", problem.Unauthorized(problem.ReasonMissing, "The request has no API key. "+howToSend)
	}
	if len(values) > 1 {
		return "", problem.Unauthorized(problem.ReasonScheme, "The request has more than one Authorization header. Send exactly one.")
	}
	scheme, credential, _ := strings.Cut(values[0], " ")
	if scheme == "" {
		return "", problem.Unauthorized(problem.ReasonMissing, "The Authorization header is empty. "+howToSend)
	}
	if strings.EqualFold(scheme, "Basic") {
		return "", problem.Unauthorized(problem.ReasonScheme, "Basic authentication is not supported: an API key is neither a user name nor a password. "+howToSend)
	}
	if !strings.EqualFold(scheme, "Bearer") {
		return "", problem.Unauthorized(problem.ReasonScheme, "The Authorization header does not use the Bearer scheme. "+howToSend)
	}
	if credential = strings.Trim(credential, " "); credential == "" {
		return "", problem.Unauthorized(problem.ReasonMissing, "The Authorization header has no API key after Bearer. "+howToSend)
	}
	return credential, nil
}

// keyedHandler is a handler that requires an API key. Only authentication returns a Principal, so
// no route can skip authentication.
type keyedHandler func(*gin.Context, keys.Principal) error

// handle adapts a handler that requires an active API key with this access, or any if it is empty.
// Because a caller without the key must
// neither use nor see its limit, the rate limit comes after authentication.
func (cs *customers) handle(access keys.Access, h keyedHandler) gin.HandlerFunc {
	return handle(func(c *gin.Context) error {
		c.Header("Cache-Control", "no-store")
		address := middleware.ClientOf(c).Address
		caller, err := cs.authenticate(c, address)
		if err != nil {
			cs.noteRefusal(c, caller, address, err)
			return err
		}
		err = cs.serve(c, caller, address, access, h)
		if err != nil {
			switch refused := problem.From(err); {
			case refused.Status == http.StatusForbidden:
				cs.countRefusal(err)
				cs.api.CountRefusal(caller)
				cs.noteRefusal(c, caller, address, err)
			case refused.Code == problem.CodeLimitReached:
				cs.api.CountRefusal(caller)
				cs.noteRefusal(c, caller, address, err)
			}
		}
		return err
	})
}

// noteRefusal keeps a refused request for the page of the caller's key, if it has one.
func (cs *customers) noteRefusal(c *gin.Context, caller keys.Principal, address netip.Addr, err error) {
	route := methodOf(c) + " " + c.FullPath()
	switch path, anything := strings.CutSuffix(c.FullPath(), "/*rest"); {
	case c.FullPath() == "":
		route = methodOf(c) + " unknown path"
	case anything || AnyMethod(path):
		route = path // the router sees every request to it as a GET
	}
	cs.api.NoteRefusal(caller, keys.Refusal{
		Reason: problem.From(err).Reason, Route: route, RequestID: middleware.RequestIDOf(c),
		From: usage.NewSource(address, c.Request.UserAgent()),
	})
}

// methodOf returns the method of a request, without a long one that a client made up.
func methodOf(c *gin.Context) string {
	if len(c.Request.Method) > len(http.MethodOptions) {
		return "Other"
	}
	return c.Request.Method
}

// serve calls h if the key is accepted from the address, has not reached its limit and has the
// access.
func (cs *customers) serve(c *gin.Context, caller keys.Principal, address netip.Addr, access keys.Access, h keyedHandler) error {
	if !caller.AllowsAddress(address) {
		return value.ErrAddressNotAllowed
	}
	if err := cs.limit.limit(c, caller.KeyID); err != nil {
		return err
	}
	if access != "" && !caller.Allows(access) {
		return problem.AccessNotAllowed(access)
	}
	return h(c, caller)
}

// sharedToken is the hash of a token that callers share with the configuration. Guesses are not
// limited: a token has at least 32 bytes.
type sharedToken [][sha256.Size]byte

// newSharedToken returns nil for an empty token. The previous one, unless it is empty, is accepted
// too.
func newSharedToken(token, previous string) sharedToken {
	if token == "" {
		return nil
	}
	hashes := sharedToken{sha256.Sum256([]byte(token))}
	if previous != "" {
		hashes = append(hashes, sha256.Sum256([]byte(previous)))
	}
	return hashes
}

// check accepts one Authorization header with the token after Bearer. For any other it returns a
// 401, with these messages for no header and for a wrong one.
func (t sharedToken) check(c *gin.Context, missing, wrong string) error {
	values := c.Request.Header.Values("Authorization")
	if len(values) == 1 {
		scheme, token, _ := strings.Cut(values[0], " ")
		if strings.EqualFold(scheme, "Bearer") && t.is(strings.Trim(token, " ")) {
			return nil
		}
	}
	setChallenge(c, len(values) > 0)
	if len(values) == 0 {
		return problem.Unauthorized(problem.ReasonMissing, missing)
	}
	return problem.Unauthorized(problem.ReasonUnknown, wrong)
}

// is reports whether text is one of the tokens, in a time that does not depend on it.
func (t sharedToken) is(text string) bool {
	hash, equal := sha256.Sum256([]byte(text)), 0
	for _, token := range t {
		equal |= subtle.ConstantTimeCompare(hash[:], token[:])
	}
	return equal == 1
}
