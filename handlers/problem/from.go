package problem

import (
	"context"
	"errors"
	"net/http"

	"portal/models"
)

// table is every error of the models that a request can meet, with what is said
// of it. Where an error matches several rows the first one counts.
var table = []struct {
	err error
	is  Problem
}{
	{models.ErrUnavailable, Unavailable(nil)},
	// A missed deadline, or a caller who has left and reads no answer (the log
	// and the metrics do not take that for a fault).
	{context.DeadlineExceeded, Unavailable(nil)},
	{context.Canceled, Unavailable(nil)},

	{models.ErrKeyMissingPrefix, Unauthorized("This is not an API key: API keys begin with nas_. " +
		"Send the whole key as it was shown when it was generated.")},
	{models.ErrKeyMalformed, Unauthorized("The API key is malformed: it is cut short or mistyped. " +
		"Copy the whole key again, or generate a new one on the API Keys page.")},
	{models.ErrKeyUnknown, Unauthorized("The API key is unknown. " +
		"Check that it belongs to this service, or generate a new one on the API Keys page.")},
	{models.ErrKeyRevoked, Unauthorized("The API key has been revoked. " +
		"Generate a new one on the API Keys page and use that.")},
	{models.ErrSessionNotFound, Unauthorized("You are not signed in, or your session has ended. Sign in again.")},

	{models.ErrAgentNotFound, row(http.StatusNotFound, CodeAgentNotFound, "There is no such agent in this account.")},
	{models.ErrKeyNotFound, row(http.StatusNotFound, CodeNotFound, "There is no such API key in this account.")},
	{models.ErrAccountNotFound, row(http.StatusNotFound, CodeNotFound, "There is no such account.")},

	{models.ErrKeyAlreadyRevoked, row(http.StatusConflict, CodeConflict, "This API key is revoked already.")},
	{models.ErrKeyLimit, row(http.StatusConflict, CodeConflict,
		"This account has as many active API keys as it can have. Revoke one that is no longer used, then generate a new one.")},
	{models.ErrAgentIDTaken, row(http.StatusConflict, CodeConflict, "An agent with this id exists already.")},
	{models.ErrEmailTaken, row(http.StatusConflict, CodeConflict, "A user with this e-mail exists already.")},

	{models.ErrWrongCredentials, row(http.StatusUnprocessableEntity, CodeInvalidInput, "The e-mail or the password is wrong.")},
}

// From returns what is said of err, which must not be nil. A [Problem] in its
// chain is returned as it is; an error that is not in the table is a 500 that
// says nothing of the cause. Cause is err itself, for the log.
func From(err error) Problem {
	if p, ok := errors.AsType[Problem](err); ok {
		return p
	}
	if invalid, ok := errors.AsType[*models.InvalidError](err); ok {
		return because(err, row(http.StatusUnprocessableEntity, CodeInvalidInput, invalid.Message))
	}
	if _, ok := errors.AsType[*models.RepeatedFormError](err); ok {
		return because(err, row(http.StatusConflict, CodeConflict,
			"This form has already made its API key, whose value cannot be shown again."))
	}
	if limit, ok := errors.AsType[*models.SignInLimitError](err); ok {
		p := row(http.StatusTooManyRequests, CodeRateLimited, "Too many wrong passwords. Wait a little, then try again.")
		p.RetryAfter = limit.RetryAfter
		return because(err, p)
	}
	for _, known := range table {
		if errors.Is(err, known.err) {
			return because(err, known.is)
		}
	}
	return Internal(err)
}

func row(status int, code, message string) Problem {
	return Problem{Status: status, Code: code, Message: message}
}

func because(err error, p Problem) Problem {
	p.Cause = err
	return p
}
