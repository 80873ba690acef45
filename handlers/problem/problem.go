// Package problem says how each error is told to whoever sent the request: its
// status, its code and a message for people. There is one table, and both
// voices speak from it: the JSON API renders a [Problem] as its error body, the
// portal as a page or an alert.
//
// A message never carries the text of an underlying error: what went wrong
// inside belongs in the log, beside the request id.
package problem

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// The codes that the JSON API answers with. They are part of its contract.
const (
	CodeUnauthorized         = "UNAUTHORIZED"
	CodeInvalidRequest       = "INVALID_REQUEST"
	CodeAgentNotFound        = "AGENT_NOT_FOUND"
	CodeNotFound             = "NOT_FOUND"
	CodeMethodNotAllowed     = "METHOD_NOT_ALLOWED"
	CodePayloadTooLarge      = "PAYLOAD_TOO_LARGE"
	CodeUnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
	CodeRateLimited          = "RATE_LIMITED"
	CodeUnavailable          = "UNAVAILABLE"
	CodeInternal             = "INTERNAL"
)

// The codes that only the portal meets: input that breaks a rule, a deed that
// cannot be done as things stand, and a form that another site has sent.
const (
	CodeInvalidInput = "INVALID_INPUT"
	CodeConflict     = "CONFLICT"
	CodeCrossOrigin  = "CROSS_ORIGIN"
)

// Problem is an error as it is told to whoever sent the request. It is an error
// itself, so that a handler can return one.
//
//nolint:errname // it is what a caller is told first, and an error only on the way there
type Problem struct {
	Status     int           // HTTP status, 400 to 599
	Code       string        // stable, for programs
	Message    string        // sentences for people; says nothing of the cause of a 5xx
	RetryAfter time.Duration // when to try again; zero: not said
	Cause      error         // for the log alone; may be nil
}

func (p Problem) Error() string {
	if p.Cause != nil {
		return p.Cause.Error()
	}
	return p.Message
}

// Unwrap returns the cause, or nil.
func (p Problem) Unwrap() error { return p.Cause }

// RetryAfterSeconds is the value of the Retry-After header (RFC 9110, section
// 10.2.3): whole seconds, rounded up, so that nobody is asked back too early.
// It is empty when there is nothing to say.
func (p Problem) RetryAfterSeconds() string {
	if p.RetryAfter <= 0 {
		return ""
	}
	return strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10)
}

// Unauthorized returns a 401 for credentials that were refused; message says
// what is wrong with them and what to do.
func Unauthorized(message string) Problem {
	return Problem{Status: http.StatusUnauthorized, Code: CodeUnauthorized, Message: message}
}

// InvalidRequest returns a 400 for a request that cannot be understood; message
// says what was expected.
func InvalidRequest(message string) Problem {
	return Problem{Status: http.StatusBadRequest, Code: CodeInvalidRequest, Message: message}
}

// NotFound returns a 404 for an address that nothing answers to.
func NotFound() Problem {
	return Problem{Status: http.StatusNotFound, Code: CodeNotFound, Message: "There is nothing at this address."}
}

// MethodNotAllowed returns a 405. Whoever renders it sends Allow beside it.
func MethodNotAllowed() Problem {
	return Problem{
		Status: http.StatusMethodNotAllowed, Code: CodeMethodNotAllowed,
		Message: "This address does not answer to this method. The Allow header lists those it answers to.",
	}
}

// PayloadTooLarge returns a 413 for a body of more than limit bytes.
func PayloadTooLarge(limit int64) Problem {
	return Problem{
		Status: http.StatusRequestEntityTooLarge, Code: CodePayloadTooLarge,
		Message: fmt.Sprintf("The request body is larger than %d bytes.", limit),
	}
}

// UnsupportedMediaType returns a 415 for a body of another type than want.
func UnsupportedMediaType(want string) Problem {
	return Problem{
		Status: http.StatusUnsupportedMediaType, Code: CodeUnsupportedMediaType,
		Message: fmt.Sprintf("Send the body as %s, and name that type in the Content-Type header.", want),
	}
}

// RateLimited returns a 429 for an API key that has no request left until wait is
// over. Whoever renders it sends RateLimit and RateLimit-Policy beside it.
func RateLimited(wait time.Duration) Problem {
	return Problem{
		Status: http.StatusTooManyRequests, Code: CodeRateLimited,
		Message: "Too many requests with this API key. Wait for as many seconds as the Retry-After header says, " +
			"then send the request again; the RateLimit-Policy header says what pace to keep.",
		RetryAfter: wait,
	}
}

// CrossOrigin returns a 403 for a form that another site has sent.
func CrossOrigin(cause error) Problem {
	return Problem{
		Status: http.StatusForbidden, Code: CodeCrossOrigin,
		Message: "This request came from another site and was refused. Go to the portal and try again from there.",
		Cause:   cause,
	}
}

// Unavailable returns a 503 that asks the caller back soon: a database that fails
// over is away for seconds.
func Unavailable(cause error) Problem {
	return Problem{
		Status: http.StatusServiceUnavailable, Code: CodeUnavailable,
		Message:    "The service cannot answer at the moment. Nothing is wrong with your request: try it again shortly.",
		RetryAfter: time.Second,
		Cause:      cause,
	}
}

// Internal returns a 500 that says nothing of its cause.
func Internal(cause error) Problem {
	return Problem{
		Status: http.StatusInternalServerError, Code: CodeInternal,
		Message: "Something went wrong on our side. If it happens again, tell support the request id.",
		Cause:   cause,
	}
}
