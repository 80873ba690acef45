package models

import (
	"errors"
	"fmt"
	"time"
)

// Why a key was refused (spec section 5.7). ErrKeyRevoked also stands for a key
// whose account is disabled: the two are refused alike.
var (
	ErrKeyMissingPrefix = errors.New("the API key does not start with nas_")
	ErrKeyMalformed     = errors.New("the API key is malformed")
	ErrKeyUnknown       = errors.New("the API key is unknown")
	ErrKeyRevoked       = errors.New("the API key is revoked")
)

// What was asked for is not there, or is another account's, which is the same.
var (
	ErrAccountNotFound = errors.New("account not found")
	ErrAgentNotFound   = errors.New("agent not found")
	ErrKeyNotFound     = errors.New("API key not found")
	ErrSessionNotFound = errors.New("session not found")
)

// What cannot be done as things stand.
var (
	ErrAgentIDTaken      = errors.New("an agent with this id exists already")
	ErrEmailTaken        = errors.New("a user with this e-mail exists already")
	ErrKeyAlreadyRevoked = errors.New("the API key is revoked already")
	ErrKeyLimit          = fmt.Errorf("the account has %d active API keys, the most it can have", MaxActiveKeys)
	ErrTokenInvalid      = errors.New("the widget token is invalid")
	ErrWrongCredentials  = errors.New("e-mail or password is wrong")
)

// ErrUnavailable means that the database did not answer, so that nothing is
// known. It comes joined with its cause.
var ErrUnavailable = errors.New("the database does not answer")

// InvalidError is input that breaks a rule.
type InvalidError struct {
	Field   string // the input's name, such as "label"
	Message string // a sentence for people that says what to do
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Message }

// RepeatedFormError is a form of generation that has made its key already.
type RepeatedFormError struct {
	Key APIKey // what it made; may have been revoked since
}

func (e *RepeatedFormError) Error() string { return "this form has already made a key" }

// SignInLimitError is a sign-in refused unseen, because too many wrong
// passwords came before it.
type SignInLimitError struct {
	RetryAfter time.Duration
}

func (e *SignInLimitError) Error() string {
	return fmt.Sprintf("too many wrong passwords, try again in %s", e.RetryAfter)
}
