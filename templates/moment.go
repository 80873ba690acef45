package templates

import (
	"fmt"
	"strings"
	"time"
)

// Moment is a point in time, formatted for users. Its JSON, from which versions of pages are made,
// has no relative time, because pages update that themselves.
type Moment struct {
	Machine string // RFC 3339, UTC
	Exact   string // "14 Mar 2026, 09:26:53 UTC"
	Date    string // "14 Mar 2026"
	Words   string `json:"-"` // relative time: "just now", "3 minutes ago", "2 years ago"
}

// NewMoment formats at relative to now. A time in the future, from a clock that is ahead, is
// "just now".
func NewMoment(at, now time.Time) Moment {
	at = at.UTC()
	return Moment{
		Machine: at.Format(time.RFC3339),
		Exact:   at.Format("2 Jan 2006, 15:04:05 MST"),
		Date:    at.Format("2 Jan 2006"),
		Words:   ago(now.Sub(at)),
	}
}

// ShortDate returns the date of at, without the year if it is that of now: "14 Mar".
func ShortDate(at, now time.Time) string {
	if at.UTC().Year() == now.UTC().Year() {
		return at.UTC().Format("2 Jan")
	}
	return at.UTC().Format("2 Jan 2006")
}

// LastDay returns the UTC day on which something that ends at a time is last valid. What ends at
// midnight is last valid on the day before.
func LastDay(end time.Time) time.Time { return end.UTC().Add(-time.Microsecond).Truncate(day) }

// Clock returns the time of day: "09:26:53 UTC".
func (m Moment) Clock() string {
	_, clock, _ := strings.Cut(m.Exact, ", ")
	return clock
}

const day = 24 * time.Hour

func ago(elapsed time.Duration) string {
	switch {
	case elapsed < time.Minute:
		return "just now"
	case elapsed < time.Hour:
		return unitsAgo(elapsed, time.Minute, "minute")
	case elapsed < day:
		return unitsAgo(elapsed, time.Hour, "hour")
	case elapsed < 30*day:
		return unitsAgo(elapsed, day, "day")
	case elapsed < 365*day:
		return unitsAgo(elapsed, 30*day, "month")
	default:
		return unitsAgo(elapsed, 365*day, "year")
	}
}

func unitsAgo(elapsed, unit time.Duration, name string) string {
	n := int(elapsed / unit)
	if n == 1 {
		return fmt.Sprintf("1 %s ago", name)
	}
	return fmt.Sprintf("%d %ss ago", n, name)
}
