// Package value is the ground on which the subjects of package models stand: errors, ids, limits,
// pages, and the readers of texts and addresses that come from outside.
package value

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"portal/models/authn"
	"portal/models/database"
)

// Reasons to refuse a key.
var (
	ErrKeyMissingPrefix  = errors.New("the API key does not start with nas_")
	ErrKeyMalformed      = errors.New("the API key is malformed")
	ErrKeyUnknown        = errors.New("the API key is unknown")
	ErrKeyRevoked        = errors.New("the API key is revoked")
	ErrKeyExpired        = errors.New("the API key has expired")
	ErrTrustChanged      = errors.New("the trust rule of the API key has changed")
	ErrAccountDisabled   = errors.New("the account of the API key is disabled")
	ErrAgentNotAllowed   = errors.New("the agent is not one of the agents of the API key")
	ErrAgentPaused       = errors.New("the agent is paused")
	ErrAddressNotAllowed = errors.New("the address is in none of the networks of the API key")
)

// The object does not exist, or it belongs to another account.
var (
	ErrAccountNotFound    = errors.New("account not found")
	ErrAgentNotFound      = errors.New("agent not found")
	ErrCallNotFound       = errors.New("call not found")
	ErrIdentityNotFound   = errors.New("identity not found")
	ErrKeyNotFound        = errors.New("API key not found")
	ErrInvitationNotFound = errors.New("invitation not found")
	ErrSessionNotFound    = errors.New("session not found")
	ErrWebhookNotFound    = errors.New("webhook not found")
	ErrUserNotFound       = errors.New("user not found")
)

// The input is valid, but the operation is not possible.
var (
	ErrAccountEnabled    = errors.New("the account is not disabled")
	ErrAgentLimit        = fmt.Errorf("the account has reached its limit of %d agents", MaxAgents)
	ErrAgentRemoved      = errors.New("the agent of this form was removed")
	ErrAgentIDTaken      = errors.New("an agent with this ID already exists")
	ErrChallengeUsed     = errors.New("the challenge has been answered before")
	ErrNoAccess          = errors.New("the identity provider gives no access to this portal")
	ErrRoleFromProvider  = errors.New("the identity provider decides about the role")
	ErrOnlyByProvider    = errors.New("the identity provider decides about the access, so the user signs in there alone")
	ErrPasskeyLimit      = fmt.Errorf("the user has reached the limit of %d passkeys", MaxPasskeys)
	ErrPasskeyNotFound   = errors.New("passkey not found")
	ErrPasskeyTaken      = errors.New("the passkey exists already")
	ErrTOTPOff           = errors.New("two-step verification is off")
	ErrTOTPOn            = errors.New("two-step verification is already on")
	ErrEmailInvited      = errors.New("this email has a pending invitation")
	ErrEmailTaken        = errors.New("a user with this email already exists")
	ErrIdentityTaken     = errors.New("the identity has another user, or the user another identity")
	ErrInvitationInvalid = errors.New("the invitation is no longer valid")
	ErrInvitationExpired = fmt.Errorf("%w: it has expired", ErrInvitationInvalid)
	ErrInvitationLimit   = fmt.Errorf("the account has reached its limit of %d pending invitations", MaxInvitations)
	ErrKeyIDTaken        = errors.New("the ID is that of another account's API key, or of one with a secret")
	ErrKeyWithoutSecret  = errors.New("the API key has no secret")
	ErrKeyAlreadyRevoked = errors.New("the API key is already revoked or has expired")
	ErrKeyRestricted     = errors.New("the restrictions or the note of the API key have changed")
	ErrLastFactor        = errors.New("the account requires a second factor, and the user has no other")
	ErrLastOwner         = errors.New("the user is the account's last owner who can sign in")
	ErrLinkInvalid       = errors.New("the sign-in link has been used or has expired")
	ErrNoFactor          = errors.New("the user has no second factor")
	ErrNotOwner          = errors.New("the user is not an owner of the account")
	ErrKeyLimit          = fmt.Errorf("the account has reached its limit of %d active API keys", MaxActiveKeys)
	ErrOnlySignIn        = errors.New("the user could not sign in any more")
	ErrPasswordsOff      = errors.New("sign-in with a password is turned off")
	ErrMailLinkInvalid   = errors.New("the link in the email has been used or has expired")
	ErrNoDelivery        = errors.New("no delivery is due")
	ErrNoEmailChange     = errors.New("no change of email is pending")
	ErrNoMail            = errors.New("no mail is due")
	ErrSignInDisabled    = errors.New("the user or the account is disabled")
	ErrSignInNotPending  = errors.New("no sign-in waits for its second step")
	ErrSignInTooOld      = errors.New("the sign-in is too old for this change")
	ErrWrongCode         = errors.New("incorrect code")
	ErrWrongCredentials  = errors.New("incorrect email or password")
)

// ErrBusy means that a request was refused because too many others were waiting. Errors that wrap
// it cause a 503.
var ErrBusy = authn.ErrBusy

// KeyExpiredError is [ErrKeyExpired], the reason to refuse an expired key.
type KeyExpiredError struct{ At time.Time }

// Is implements the interface of [errors.Is].
func (e *KeyExpiredError) Is(target error) bool { return target == ErrKeyExpired }

func (e *KeyExpiredError) Error() string {
	return "the API key expired at " + e.At.UTC().Format(time.RFC3339)
}

// SignInLimitError reports a sign-in that was refused without checking the password or the code,
// because there were too many before.
type SignInLimitError struct {
	RetryAfter time.Duration
	Right      bool // they were right passwords
	Codes      bool // they were codes, not passwords
	AppCodes   bool // only codes of the authenticator app are refused, not recovery codes
}

func (e *SignInLimitError) Error() string {
	return fmt.Sprintf("too many passwords or codes, try again in %s", e.RetryAfter)
}

// ErrUnavailable is [database.ErrUnavailable].
var ErrUnavailable = database.ErrUnavailable

// Failed is [database.Failed], and also knows the errors of the authenticator.
func Failed(operation string, err error) error {
	if errors.Is(err, authn.ErrStandby) || errors.Is(err, authn.ErrNoEpoch) || errors.Is(err, authn.ErrBusy) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return database.Failed(operation, err)
}

// Affected returns the number of rows that a statement has changed.
func Affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// UnlessAffected returns the error of a statement, or otherwise if the statement changed no row.
func UnlessAffected(result sql.Result, err, otherwise error) error {
	if n, err := Affected(result, err); err != nil || n > 0 {
		return err
	}
	return otherwise
}

// NoRows returns missing in place of [sql.ErrNoRows].
func NoRows(err, missing error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return missing
	}
	return err
}

// NotFound returns missing in place of [sql.ErrNoRows], and otherwise the error of [Failed].
func NotFound(operation string, err, missing error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return missing
	}
	return Failed(operation, err)
}

// Except returns err unless it is the expected one.
func Except(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// RefusedIf returns err or, if refused, the refusal.
func RefusedIf(refused bool, err, refusal error) error {
	if err == nil && refused {
		return refusal
	}
	return err
}

// DisabledIfWrong returns [ErrSignInDisabled] in place of [ErrWrongCredentials], for users who have
// not entered a password.
func DisabledIfWrong(err error) error {
	if errors.Is(err, ErrWrongCredentials) {
		return ErrSignInDisabled
	}
	return err
}

// InvalidError reports input that breaks a rule.
type InvalidError struct {
	Field   string // the input's name, such as "label"
	Message string // for the user; says what to do
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Message }
