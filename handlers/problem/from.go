package problem

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"portal/models"
)

// accountDisabled is the message for the keys and users of a disabled account.
const accountDisabled = "This account is disabled. Contact the operator."

// table maps the errors of package models that a handler can return. The first matching row
// applies.
var table = []struct {
	err     error
	problem Problem
}{
	{models.ErrUnavailable, Unavailable(nil)},
	{context.DeadlineExceeded, Unavailable(nil)},
	// The client has disconnected. The log and the metrics show this as 499.
	{context.Canceled, Unavailable(nil)},

	{models.ErrKeyMissingPrefix, Unauthorized("This is not an API key: API keys begin with nas_. " +
		"Send the whole key as it was shown when it was generated.")},
	{models.ErrKeyMalformed, Unauthorized("The API key is malformed: it is incomplete or mistyped. " +
		"Copy the whole key again, or generate a new one on the API Keys page.")},
	{models.ErrKeyUnknown, Unauthorized("The API key is unknown. " +
		"Check that it belongs to this service, or generate a new one on the API Keys page.")},
	{models.ErrKeyRevoked, Unauthorized("The API key has been revoked. " +
		"Generate a new one on the API Keys page and use that.")},
	{models.ErrAccountDisabled, Unauthorized(accountDisabled)},
	{models.ErrAgentNotFound, Problem{
		Status: http.StatusNotFound, Code: CodeAgentNotFound,
		Message: "Agent not found in this account. GET /api/agents lists the account's agents.",
	}},

	{models.ErrEmailTaken, portalOnly(http.StatusUnprocessableEntity, "This email is already in use.")},
	{models.ErrSessionNotFound, portalOnly(http.StatusUnauthorized,
		"You are not signed in, or your session has ended. Sign in again.")},
	{models.ErrKeyNotFound, portalOnly(http.StatusNotFound, "API key not found in this account.")},
	{models.ErrKeyLimit, portalOnly(http.StatusUnprocessableEntity,
		fmt.Sprintf("This account has reached its limit of %d active API keys. Revoke one you no longer use, then try again.", models.MaxActiveKeys))},
	{models.ErrSignInDisabled, portalOnly(http.StatusUnprocessableEntity, accountDisabled)},
	{models.ErrWrongCredentials, portalOnly(http.StatusUnprocessableEntity, "Incorrect email or password.")},
}

// From returns the problem for err, which must not be nil. It returns a [Problem] in the chain of
// err unchanged. An error that it does not know becomes a 500. Cause is err, for the log.
func From(err error) Problem {
	if p, ok := errors.AsType[Problem](err); ok {
		return p
	}
	p := fromModels(err)
	p.Cause = err
	return p
}

func fromModels(err error) Problem {
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		return portalOnly(http.StatusUnprocessableEntity, invalid.Message)
	}
	if limit, ok := errors.AsType[*models.SignInLimitError](err); ok {
		p := portalOnly(http.StatusTooManyRequests, "")
		p.RetryAfter = limit.RetryAfter
		p.Message = fmt.Sprintf("Too many incorrect passwords. Wait %s seconds, then try again.", p.RetryAfterSeconds())
		return p
	}
	for _, row := range table {
		if errors.Is(err, row.err) {
			return row.problem
		}
	}
	return Internal(nil)
}

// portalOnly returns a problem without a code, because the JSON API never returns it.
func portalOnly(status int, message string) Problem {
	return Problem{Status: status, Message: message}
}
