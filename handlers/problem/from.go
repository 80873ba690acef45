package problem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"portal/models/calls"
	"portal/models/value"
)

// accountDisabled is the message for the keys and users of a disabled account.
const accountDisabled = "This account is disabled. Contact the operator."

// table maps the errors of package models that a handler can return, by the first matching row.
var table = []struct {
	err     error
	problem Problem
}{
	{value.ErrUnavailable, Unavailable(nil)},
	{context.DeadlineExceeded, Unavailable(nil)},
	// The client has disconnected, which the log and the metrics show as 499.
	{context.Canceled, Unavailable(nil)},

	{value.ErrKeyMissingPrefix, Unauthorized(ReasonPrefix, "This is not an API key: API keys begin with nas_. "+
		"Send the whole key as it was shown when it was generated.")},
	{value.ErrKeyMalformed, Unauthorized(ReasonMalformed, "The API key is malformed: it is incomplete or mistyped. "+
		"Copy the whole key again, or generate a new one on the API Keys page.")},
	{value.ErrKeyUnknown, Unauthorized(ReasonUnknown, "The API key is unknown. "+
		"Check that it belongs to this service, or generate a new one on the API Keys page.")},
	{value.ErrKeyRevoked, Unauthorized(ReasonRevoked, "The API key has been revoked. "+
		"Generate a new one on the API Keys page and use that.")},
	{value.ErrAccountDisabled, Unauthorized(ReasonAccountDisabled, accountDisabled)},
	{value.ErrTrustChanged, Unauthorized(ReasonTrustChanged, "The trust rule of the API key has changed since this access token was issued. "+
		"Exchange the token of your platform for a new one at /oauth/token.")},
	{value.ErrAgentNotAllowed, AgentNotAllowed()},
	{value.ErrAgentPaused, Problem{
		Status: http.StatusForbidden, Code: CodeAgentPaused, Reason: ReasonAgentPaused,
		Message: "The agent is paused. Resume it on the Agents page, or use another one.",
	}},
	{value.ErrAddressNotAllowed, Problem{
		Status: http.StatusForbidden, Code: CodeAddressNotAllowed, Reason: ReasonAddress,
		Message: "The API key is not accepted from the address of this request. " +
			"Send it from an allowed network, or change the restrictions of the key on the API Keys page.",
	}},
	{value.ErrWebhookNotFound, missing("", "Webhook not found in this account.")},
	{value.ErrAgentNotFound, missing(CodeAgentNotFound,
		"Agent not found in this account. GET /api/agents lists the account's agents.")},

	{value.ErrAccountNotFound, missing(CodeAccountNotFound, "Account not found. GET /operator/accounts lists all accounts.")},
	{value.ErrCallNotFound, missing(CodeCallNotFound, "Call not found. Calls are kept for 90 days.")},
	{value.ErrUserNotFound, missing(CodeUserNotFound, "User not found in this account.")},
	{value.ErrKeyNotFound, missing(CodeKeyNotFound, "API key not found.")},
	{value.ErrAgentIDTaken, Conflict("An agent of another account has this id. Choose another id.")},
	{value.ErrKeyIDTaken, Conflict("The id is that of another account's API key, of one with a secret, or of one that was revoked or has expired. Choose another id.")},
	{value.ErrKeyWithoutSecret, portalOnly(http.StatusConflict, "This key has no secret to rotate. Change its trust rule instead.")},
	{value.ErrLastOwner, Conflict("The account must have an owner who can sign in. Add another one first.")},

	{value.ErrAgentLimit, portalOnly(http.StatusUnprocessableEntity,
		fmt.Sprintf("This account has reached its limit of %d agents. Remove one you no longer use, then try again.", value.MaxAgents))},
	{value.ErrNoFactor, portalOnly(http.StatusConflict,
		"Set up two-step verification or a passkey for yourself first, on the Account page.")},
	{value.ErrLastFactor, portalOnly(http.StatusConflict,
		"This account requires two-step verification, and this is your only factor. Add another one first.")},
	{value.ErrNotOwner, portalOnly(http.StatusForbidden,
		"Only owners can change the people and the settings of this account. Ask an owner, or reload the page if you are one.")},
	{value.ErrRoleFromProvider, portalOnly(http.StatusConflict,
		"The identity provider decides whether this person is an owner or a member. Change it there.")},
	{value.ErrInvitationNotFound, portalOnly(http.StatusNotFound,
		"Invitation not found. It may have been used or cancelled. Reload the page to see the pending invitations.")},
	{value.ErrInvitationExpired, portalOnly(http.StatusGone,
		"This invitation is no longer valid, because it has expired. Ask the person who invited you for a new one.")},
	{value.ErrInvitationInvalid, portalOnly(http.StatusGone,
		"This invitation is no longer valid. It may have been used or cancelled. Ask the person who invited you for a new one.")},
	{value.ErrInvitationLimit, portalOnly(http.StatusUnprocessableEntity,
		fmt.Sprintf("This account has reached its limit of %d pending invitations. Cancel one, then try again.", value.MaxInvitations))},
	{value.ErrEmailInvited, portalOnly(http.StatusUnprocessableEntity,
		"This person has already been invited. For a new link, cancel the pending invitation first.")},
	{value.ErrEmailTaken, portalOnly(http.StatusUnprocessableEntity, "This email is already in use.")},
	{value.ErrSessionNotFound, portalOnly(http.StatusUnauthorized,
		"You are not signed in, or your session has ended. Sign in again.")},
	{value.ErrPasswordsOff, portalOnly(http.StatusForbidden,
		"Sign-in with a password is turned off. The sign-in page shows the other ways.")},
	{value.ErrOnlyByProvider, portalOnly(http.StatusUnprocessableEntity,
		"Your organization decides who has access, so you can only sign in through it. Your own password or passkeys don’t work here.")},
	{value.ErrOnlySignIn, portalOnly(http.StatusConflict, "This is your only way to sign in.")},
	{value.ErrKeyLimit, portalOnly(http.StatusUnprocessableEntity,
		fmt.Sprintf("This account has reached its limit of %d active API keys. Revoke one you no longer use, then try again.", value.MaxActiveKeys))},
	{value.ErrLinkInvalid, portalOnly(http.StatusGone,
		"This sign-in link has already been used or has expired. Ask the person who sent it for a new one.")},
	{value.ErrMailLinkInvalid, portalOnly(http.StatusGone,
		"This link has already been used or has expired. Send yourself a new one.")},
	{value.ErrSignInTooOld, portalOnly(http.StatusUnprocessableEntity,
		"You signed in more than 10 minutes ago. Sign in with a new sign-in link, then try again.")},
	{value.ErrSignInDisabled, portalOnly(http.StatusUnprocessableEntity, accountDisabled)},
	{value.ErrWrongCode, portalOnly(http.StatusUnprocessableEntity,
		"Incorrect code. Enter the current code from your app. Each code works only once. If none works, check the clock of your phone.")},
	{value.ErrWrongCredentials, portalOnly(http.StatusUnprocessableEntity, "Incorrect email or password.")},
}

// From returns the problem for err, which must not be nil. If the chain of err has a [Problem],
// From returns it unchanged. Otherwise the cause of the result is err, and an error without a row
// in the table becomes a 500.
func From(err error) Problem {
	if p, ok := errors.AsType[Problem](err); ok {
		return p
	}
	p := fromModels(err)
	p.Cause = err
	return p
}

func fromModels(err error) Problem {
	if invalid, ok := errors.AsType[*value.InvalidError](err); ok {
		return portalOnly(http.StatusUnprocessableEntity, invalid.Message)
	}
	if expired, ok := errors.AsType[*value.KeyExpiredError](err); ok {
		return keyExpired(expired.At)
	}
	if limit, ok := errors.AsType[*calls.LimitError](err); ok {
		return limitReached(limit)
	}
	if limit, ok := errors.AsType[*value.SignInLimitError](err); ok {
		p := portalOnly(http.StatusTooManyRequests, "")
		p.RetryAfter = limit.RetryAfter
		if limit.AppCodes {
			p.Message = fmt.Sprintf("Too many incorrect codes. The codes of your app are refused for the next %s. "+
				"Enter a recovery code instead. If the incorrect codes were not yours, someone knows your password: change it.",
				hours(limit.RetryAfter))
			return p
		}
		inputs := "incorrect passwords"
		switch {
		case limit.Codes:
			inputs = "incorrect codes"
		case limit.Right:
			inputs = "sign-ins or confirmations"
		}
		p.Message = fmt.Sprintf("Too many %s. Wait %s seconds, then try again.", inputs, p.RetryAfterSeconds())
		return p
	}
	for _, row := range table {
		if errors.Is(err, row.err) {
			return row.problem
		}
	}
	return Internal(nil)
}

// limitReached returns the 429 for a token that could open a call beyond a limit.
func limitReached(limit *calls.LimitError) Problem {
	message := "The API key or its account has as many calls as it may have at a time. Wait until one ends, then try again."
	if limit.Reason == calls.EndLimitPerMonth {
		message = "The minutes of this month are used up. Wait until the next month begins (UTC), or raise the limit."
	}
	return Problem{
		Status: http.StatusTooManyRequests, Code: CodeLimitReached, Reason: string(limit.Reason), Message: message, RetryAfter: limit.Wait,
	}
}

// hours returns a duration in whole hours, rounded up, as it follows "the next": "3 hours" or
// "hour".
func hours(d time.Duration) string {
	if n := (d + time.Hour - 1) / time.Hour; n != 1 {
		return fmt.Sprintf("%d hours", n)
	}
	return "hour"
}

// portalOnly returns a problem without a code, because the JSON API never returns it.
func portalOnly(status int, message string) Problem {
	return Problem{Status: status, Message: message}
}
