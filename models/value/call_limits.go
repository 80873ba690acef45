package value

import (
	"cmp"
	"errors"
	"fmt"
)

// Limits are the limits of the calls of a key or an account; 0: none.
type Limits struct {
	Calls           int64 `json:"calls,omitempty"` // at a time
	MinutesPerCall  int64 `json:"minutesPerCall,omitempty"`
	MinutesPerMonth int64 `json:"minutesPerMonth,omitempty"` // of the calendar (UTC)
}

// IsZero reports whether there are no limits.
func (l Limits) IsZero() bool { return l == Limits{} }

// CheckLimits returns an [*InvalidError] for each limit that is not in its range, joined. The
// fields are "calls", "minutesPerCall" and "minutesPerMonth".
func CheckLimits(l Limits) error {
	var errs []error
	for _, limit := range []struct {
		field, title, maxText string
		value, max            int64
	}{
		{"calls", "Calls at a time", "10,000", l.Calls, 10_000},
		{"minutesPerCall", "Minutes a call", "1,440", l.MinutesPerCall, 1_440},
		{"minutesPerMonth", "Minutes a month", "10,000,000", l.MinutesPerMonth, 10_000_000},
	} {
		if limit.value < 0 || limit.value > limit.max {
			errs = append(errs, &InvalidError{limit.field, fmt.Sprintf("%s must be a whole number from 1 to %s, or have no limit.", limit.title, limit.maxText)})
		}
	}
	return errors.Join(errs...)
}

// String returns the limits for people, such as "5 calls at a time, 60 minutes a call", or "none".
func (l Limits) String() string {
	text := ""
	for _, limit := range []struct {
		n          int64
		unit, each string
	}{{l.Calls, "call", "at a time"}, {l.MinutesPerCall, "minute", "a call"}, {l.MinutesPerMonth, "minute", "a month"}} {
		if limit.n == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		if limit.n > 1 {
			limit.unit += "s"
		}
		text += fmt.Sprintf("%d %s %s", limit.n, limit.unit, limit.each)
	}
	return cmp.Or(text, "none")
}
