package templates_test

import (
	"testing"
	"time"

	"portal/templates"
)

func TestMomentHasRelativeWords(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)
	for elapsed, want := range map[time.Duration]string{
		-time.Hour:                      "just now",
		0:                               "just now",
		59 * time.Second:                "just now",
		time.Minute:                     "1 minute ago",
		119 * time.Second:               "1 minute ago",
		2 * time.Minute:                 "2 minutes ago",
		59*time.Minute + 59*time.Second: "59 minutes ago",
		time.Hour:                       "1 hour ago",
		23 * time.Hour:                  "23 hours ago",
		day:                             "1 day ago",
		29 * day:                        "29 days ago",
		30 * day:                        "1 month ago",
		364 * day:                       "12 months ago",
		365 * day:                       "1 year ago",
		800 * day:                       "2 years ago",
	} {
		if got := templates.NewMoment(now.Add(-elapsed), now).Words; got != want {
			t.Errorf("after %v: %q, want %q", elapsed, got, want)
		}
	}
}

func TestMomentIsExactInUTC(t *testing.T) {
	at := time.Date(2026, 3, 14, 1, 26, 53, 0, time.FixedZone("", -8*3600))
	got := templates.NewMoment(at, at)
	want := templates.Moment{
		Machine: "2026-03-14T09:26:53Z", Exact: "14 Mar 2026, 09:26:53 UTC", Date: "14 Mar 2026", Words: "just now",
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
