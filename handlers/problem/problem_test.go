package problem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"portal/handlers/problem"
	"portal/models/value"
)

func TestModelErrorsMapToStatusAndCode(t *testing.T) {
	for _, known := range []struct {
		err    error
		status int
		code   string
	}{
		{value.ErrSignInDisabled, http.StatusUnprocessableEntity, ""},
		{value.ErrSessionNotFound, http.StatusUnauthorized, ""},
		{value.ErrKeyLimit, http.StatusUnprocessableEntity, ""},
		{value.ErrWrongCredentials, http.StatusUnprocessableEntity, ""},
		{&value.InvalidError{Field: "label", Message: "Too long."}, http.StatusUnprocessableEntity, ""},
		{value.ErrUnavailable, http.StatusServiceUnavailable, "UNAVAILABLE"},
		{context.DeadlineExceeded, http.StatusServiceUnavailable, "UNAVAILABLE"},
		{context.Canceled, http.StatusServiceUnavailable, "UNAVAILABLE"},
		{errors.New("relation does not exist"), http.StatusInternalServerError, "INTERNAL"},
	} {
		wrapped := fmt.Errorf("look up: %w", known.err)
		got := problem.From(wrapped)
		if got.Status != known.status || got.Code != known.code || got.Message == "" {
			t.Errorf("%v: %d %s %q, want %d %s", known.err, got.Status, got.Code, got.Message, known.status, known.code)
		}
		if got.Cause != wrapped { //nolint:errorlint // identity, not equivalence
			t.Errorf("%v: the cause is %v", known.err, got.Cause)
		}
	}
}

func TestLimitOfSignInsSaysWhatWasWrongAndHowLongToWait(t *testing.T) {
	for message, limit := range map[string]value.SignInLimitError{
		"Too many incorrect passwords. Wait 60 seconds, then try again.":      {RetryAfter: time.Minute},
		"Too many incorrect codes. Wait 2 seconds, then try again.":           {RetryAfter: time.Second + 1, Codes: true},
		"Too many sign-ins or confirmations. Wait 1 seconds, then try again.": {RetryAfter: time.Second, Right: true},
		"Too many incorrect codes. The codes of your app are refused for the next 24 hours. Enter a recovery code instead.": {
			RetryAfter: 23*time.Hour + 1, Codes: true, AppCodes: true,
		},
		"Too many incorrect codes. The codes of your app are refused for the next hour. Enter a recovery code instead.": {
			RetryAfter: time.Hour, Codes: true, AppCodes: true,
		},
	} {
		got := problem.From(&limit)
		if !strings.HasPrefix(got.Message, message) || got.Status != http.StatusTooManyRequests || got.RetryAfter != limit.RetryAfter {
			t.Errorf("%d after %s %q, want %q", got.Status, got.RetryAfter, got.Message, message)
		}
	}
}

func TestServerErrorMessageDoesNotDependOnTheCause(t *testing.T) {
	for _, pair := range [][2]error{
		{value.ErrUnavailable, fmt.Errorf("ping: %w: %w", value.ErrUnavailable, errors.New("dial tcp 10.0.0.7:5432"))},
		{errors.New("a"), errors.New("b")},
		{problem.Internal(nil), problem.Internal(errors.New("b"))},
	} {
		if one, other := problem.From(pair[0]).Message, problem.From(pair[1]).Message; one != other {
			t.Errorf("messages %q and %q", one, other)
		}
	}
}

func TestWrappedProblemIsUnchanged(t *testing.T) {
	want := problem.PayloadTooLarge(512)
	if got := problem.From(fmt.Errorf("read the form: %w", want)); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRetryAfterIsRoundedUpToSeconds(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0:                           "",
		-time.Second:                "",
		time.Millisecond:            "1",
		time.Second:                 "1",
		1001 * time.Millisecond:     "2",
		time.Minute:                 "60",
		time.Hour - time.Nanosecond: "3600",
	} {
		if got := (problem.Problem{RetryAfter: wait}).RetryAfterSeconds(); got != want {
			t.Errorf("%v: %q, want %q", wait, got, want)
		}
	}
}
