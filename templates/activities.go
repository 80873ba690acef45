package templates

import (
	"slices"
	"strings"

	"github.com/google/uuid"

	"portal/models/keys"
	"portal/models/people"
	"portal/models/record"
)

// ActivityPage is /activity.
type ActivityPage struct {
	Filter ActivityFilter
	Export string        // URL of the CSV export
	Days   []ActivityDay // newest first
	Newest string        // URL of the first page
	Older  string        // URL of the next page; empty on the last one
	Paged  bool          // this is not the first page
}

// ActivityDay is the activities of a UTC day.
type ActivityDay struct {
	Date       string // "14 Mar 2026"
	Activities []ActivityItem
}

// ActivityDays divides activities, which are sorted by time, into days.
func ActivityDays(activities []ActivityItem) (days []ActivityDay) {
	for _, activity := range activities {
		if last := len(days) - 1; last < 0 || days[last].Date != activity.When.Date {
			days = append(days, ActivityDay{Date: activity.When.Date})
		}
		last := &days[len(days)-1]
		last.Activities = append(last.Activities, activity)
	}
	return days
}

// Shown returns the number of activities on the page.
func (p ActivityPage) Shown() (n Count) {
	for _, day := range p.Days {
		n += Count(len(day.Activities))
	}
	return n
}

func (ActivityPage) screen() screen {
	return screen{file: "activities/index.html", section: SectionActivity}
}

func (ActivityPage) fragment() string { return "filtered-activity" }

// Filtered reports whether the page has only the activities that match a filter.
func (p ActivityPage) Filtered() bool { return p.Newest != "/activity" }

// ActivityFilter is the form that filters the activity log.
type ActivityFilter struct {
	Kind string // an action or the id of a group; empty if not set
	// A user's id, "operator", "visitor" or "system"; empty if not set.
	Who         string
	People      []people.User // to choose from
	Keys        []keys.Key    // active
	Revoked     []keys.Key    // the latest revocation first
	Key         uuid.UUID     // zero if not set
	From, Until string        // days, such as "2026-03-14"; empty if not set
	Search      string
	Features    []Feature // that the portal has

	FromOffset, UntilOffset string // of the days from UTC, in minutes; empty: UTC
}

// Groups returns the options of the kind. It leaves out what cannot happen here, unless it is
// chosen.
func (f ActivityFilter) Groups() (groups []ActionGroup) {
	offered := func(needs Feature, id string) bool {
		return needs == "" || id == f.Kind || slices.Contains(f.Features, needs)
	}
	for _, group := range ActionGroups {
		whole := offered(group.Needs, group.ID)
		group.Actions = slices.DeleteFunc(slices.Clone(group.Actions), func(text ActionText) bool {
			return !offered(text.Needs, string(text.Action)) || !whole && string(text.Action) != f.Kind
		})
		if len(group.Actions) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// ActivityItem is one entry of the activity log.
type ActivityItem struct {
	record.Activity

	KeyAddress string // URL of the activity of the key
	When       Moment
	Refusals   Count // requests with the revoked key that were refused in the last hour
}

// OnlyNote reports whether a change of restrictions has changed the note alone, which is the last
// line of the detail.
func (i ActivityItem) OnlyNote() bool { return strings.HasPrefix(i.Detail, "Note: ") }

// Text returns how the action is shown.
func (i ActivityItem) Text() ActionText { return textOf(i.Action) }

// Number returns the number of ended sessions or calls, or of attempts.
func (i ActivityItem) Number() Count { return Count(i.Count + i.Repeats) }

// Device returns the device that the label names.
func (i ActivityItem) Device() string { return Device(i.Label) }
