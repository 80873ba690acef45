// Package problem maps errors to HTTP responses: status, code and message. The JSON API and the
// portal share its one table. For the API, a [Problem] becomes the error body, and for the portal a
// page or an alert.
//
// The message of a 5xx never contains the underlying error; the log has it, with the request id.
package problem

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"portal/models/keys"
)

// The codes of the JSON API. They are part of its contract.
const (
	CodeUnauthorized         = "UNAUTHORIZED"
	CodeInvalidRequest       = "INVALID_REQUEST"
	CodeAgentNotAllowed      = "AGENT_NOT_ALLOWED"
	CodeAgentPaused          = "AGENT_PAUSED"
	CodeCallNotFound         = "CALL_NOT_FOUND"
	CodeLimitReached         = "LIMIT_REACHED"
	CodeAddressNotAllowed    = "ADDRESS_NOT_ALLOWED"
	CodeAccessNotAllowed     = "ACCESS_NOT_ALLOWED"
	CodeAgentNotFound        = "AGENT_NOT_FOUND"
	CodeAccountNotFound      = "ACCOUNT_NOT_FOUND"
	CodeKeyNotFound          = "KEY_NOT_FOUND"
	CodeUserNotFound         = "USER_NOT_FOUND"
	CodeConflict             = "CONFLICT"
	CodeNotFound             = "NOT_FOUND"
	CodeMethodNotAllowed     = "METHOD_NOT_ALLOWED"
	CodePayloadTooLarge      = "PAYLOAD_TOO_LARGE"
	CodeUnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
	CodeRateLimited          = "RATE_LIMITED"
	CodeUnavailable          = "UNAVAILABLE"
	CodeInternal             = "INTERNAL"
)

// The reasons of a 401 or a 403 in the header X-Error-Reason. They are part of the contract of the
// JSON API, because a program cannot tell causes apart by the message.
const (
	ReasonMissing         = "missing"   // no credential
	ReasonScheme          = "scheme"    // not exactly one Bearer credential
	ReasonPrefix          = "prefix"    // no nas_
	ReasonMalformed       = "malformed" // wrong checksum
	ReasonUnknown         = "unknown"
	ReasonRevoked         = "revoked"
	ReasonExpired         = "expired"
	ReasonAccountDisabled = "account_disabled"
	ReasonAgent           = "agent" // not an agent of the credentials
	ReasonAgentPaused     = "agent_paused"
	ReasonAddress         = "address" // in no network of the key
	ReasonAccess          = "access"  // the key is for something else
	ReasonTokenMissing    = "token_missing"
	ReasonTokenInvalid    = "token_invalid"
	ReasonTokenExpired    = "token_expired"
	ReasonTokenRevoked    = "token_revoked"
	ReasonTrustChanged    = "trust_changed" // the rule of the key of an access token
)

// Problem is an error response, and itself an error, so that a handler can return one.
//
//nolint:errname // mainly a response
type Problem struct {
	Status     int           // HTTP status, 400 to 599
	Code       string        // for API clients; empty if only the portal returns the problem
	Reason     string        // of a 401, a 403 or a LIMIT_REACHED of the JSON API
	Message    string        // for users; never contains the cause of a 5xx
	RetryAfter time.Duration // zero: no Retry-After header
	Cause      error         // for the log only; may be nil
}

func (p Problem) Error() string {
	if p.Cause != nil {
		return p.Cause.Error()
	}
	return p.Message
}

// Unwrap returns the cause, or nil.
func (p Problem) Unwrap() error { return p.Cause }

// RetryAfterSeconds returns the value of the Retry-After header (RFC 9110, section 10.2.3): whole
// seconds, rounded up, or "" if RetryAfter is not positive.
func (p Problem) RetryAfterSeconds() string {
	if p.RetryAfter <= 0 {
		return ""
	}
	return strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10)
}

// Unauthorized returns a 401 for refused credentials. message says what is wrong and what to do.
func Unauthorized(reason, message string) Problem {
	return Problem{Status: http.StatusUnauthorized, Code: CodeUnauthorized, Reason: reason, Message: message}
}

// InvalidRequest returns a 400. message says what the request should contain.
func InvalidRequest(message string) Problem {
	return Problem{Status: http.StatusBadRequest, Code: CodeInvalidRequest, Message: message}
}

// AgentNotAllowed returns a 403 for a gateway that asks for an agent outside the credentials.
func AgentNotAllowed() Problem {
	return Problem{
		Status: http.StatusForbidden, Code: CodeAgentNotAllowed, Reason: ReasonAgent,
		Message: "The agent in agentId does not belong to this API key or widget token. " +
			"Use an agent that GET /api/agents lists or, with a widget token, the agent that it was issued for.",
	}
}

// AccessNotAllowed returns a 403 for an API key with the other access than the endpoint's.
func AccessNotAllowed(endpoint keys.Access) Problem {
	message := "This key is for reports and can’t call this endpoint. Generate one with the access “Agents and tokens”."
	if endpoint == keys.AccessReports {
		message = "This key is for agents and tokens and can’t call this endpoint. Generate one with the access “Reports only”."
	}
	return Problem{Status: http.StatusForbidden, Code: CodeAccessNotAllowed, Reason: ReasonAccess, Message: message}
}

// keyExpired returns the 401 for an API key that expired at a time.
func keyExpired(at time.Time) Problem {
	return Unauthorized(ReasonExpired, "The API key expired on "+at.UTC().Format("2 January 2006 at 15:04:05 UTC")+". "+
		"Generate a new one on the API Keys page and use that.")
}

// Conflict returns a 409 for a request that the current state does not allow. message says why.
func Conflict(message string) Problem {
	return Problem{Status: http.StatusConflict, Code: CodeConflict, Message: message}
}

// NotFound returns a 404 for a path without a route.
func NotFound() Problem {
	return missing(CodeNotFound, "There is no page or endpoint at this address.")
}

func missing(code, message string) Problem {
	return Problem{Status: http.StatusNotFound, Code: code, Message: message}
}

// MethodNotAllowed returns a 405, for which the caller sets the Allow header.
func MethodNotAllowed() Problem {
	return Problem{
		Status: http.StatusMethodNotAllowed, Code: CodeMethodNotAllowed,
		Message: "This address does not support this method. The Allow header lists the supported methods.",
	}
}

// PayloadTooLarge returns a 413 for a body of more than limit bytes.
func PayloadTooLarge(limit int64) Problem {
	return Problem{
		Status: http.StatusRequestEntityTooLarge, Code: CodePayloadTooLarge,
		Message: fmt.Sprintf("The request body is larger than %d bytes.", limit),
	}
}

// UnsupportedMediaType returns a 415 for a body that is not of the type want.
func UnsupportedMediaType(want string) Problem {
	return Problem{
		Status: http.StatusUnsupportedMediaType, Code: CodeUnsupportedMediaType,
		Message: fmt.Sprintf("Send the body as %s and set the Content-Type header to that type.", want),
	}
}

// UnsupportedCoding returns a 415 for a body that is compressed. The caller sets the
// Accept-Encoding header.
func UnsupportedCoding() Problem {
	return Problem{
		Status: http.StatusUnsupportedMediaType, Code: CodeUnsupportedMediaType,
		Message: "The body has a Content-Encoding. Send it as it is, without compression.",
	}
}

// RateLimited returns a 429 for a caller whose next request is allowed after wait. The phrase
// in the message that names the limit is which, such as "with this API key". The caller sets the
// RateLimit and RateLimit-Policy headers.
func RateLimited(which string, wait time.Duration) Problem {
	return Problem{
		Status: http.StatusTooManyRequests, Code: CodeRateLimited,
		Message: "Too many requests " + which + ". Wait the number of seconds in the Retry-After header, " +
			"then try again. The RateLimit-Policy header has the allowed rate.",
		RetryAfter: wait,
	}
}

// AnotherUser returns a 403 for a page that was opened before another user signed in, in another
// tab of the browser.
func AnotherUser(email string) Problem {
	return Problem{Status: http.StatusForbidden, Message: "You’re now signed in as " + email + ", so this page is out of date and nothing was changed. Reload the page."}
}

// TooManyChanges returns a 429 for a user of the portal whose next change is allowed after wait.
func TooManyChanges(wait time.Duration) Problem { return tooMany("changes", wait) }

// TooManyGenerations returns a 429 for an account whose next key can be generated after wait.
func TooManyGenerations(wait time.Duration) Problem { return tooMany("new keys in this account", wait) }

func tooMany(what string, wait time.Duration) Problem {
	limited := Problem{Status: http.StatusTooManyRequests, RetryAfter: wait}
	limited.Message = "Too many " + what + ". Wait " + limited.RetryAfterSeconds() + " second, then try again."
	return limited
}

// TooManyExports returns a 429 for a user of the portal with two running exports, who may try again
// after wait.
func TooManyExports(wait time.Duration) Problem {
	return Problem{
		Status: http.StatusTooManyRequests, RetryAfter: wait,
		Message: "Two of your exports are still running. Wait until one of them is complete, then try again.",
	}
}

// TooManyAtOnce returns a 429 for a user of the portal whose other requests take too long.
func TooManyAtOnce() Problem {
	return Problem{
		Status:     http.StatusTooManyRequests,
		Message:    "Too many of your pages are loading at the same time. Wait a moment, then try again.",
		RetryAfter: time.Second,
	}
}

// TooManyReports returns a 429 for an account whose other reports take too long.
func TooManyReports() Problem {
	return Problem{
		Status: http.StatusTooManyRequests, Code: CodeRateLimited,
		Message:    "Two reports of this account are still running. Wait the number of seconds in the Retry-After header, then try again.",
		RetryAfter: time.Second,
	}
}

// CrossOrigin returns a 403 for a form from another site.
func CrossOrigin(cause error) Problem {
	return Problem{
		Status:  http.StatusForbidden,
		Message: "This request came from another site and was refused. Open the portal and try again there.",
		Cause:   cause,
	}
}

// Unavailable returns a 503 with a short Retry-After, because a database failover takes seconds.
func Unavailable(cause error) Problem {
	return Problem{
		Status: http.StatusServiceUnavailable, Code: CodeUnavailable,
		Message:    "The service is temporarily unavailable. Your request wasn’t the problem. Try again in a moment.",
		RetryAfter: time.Second,
		Cause:      cause,
	}
}

// Internal returns a 500 whose message does not contain cause.
func Internal(cause error) Problem {
	return Problem{
		Status: http.StatusInternalServerError, Code: CodeInternal,
		Message: "Something went wrong on our side. If it happens again, contact support with the request ID.",
		Cause:   cause,
	}
}
