package templates

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"portal/models/agents"
	"portal/models/calls"
	"portal/models/keys"
	"portal/models/value"
)

// CallsPage is /calls.
type CallsPage struct {
	Limits value.Limits // of the account
	Used   calls.Used

	Agents  []agents.Agent // to choose from
	Keys    []keys.Key
	Revoked []keys.Key // the last ones that were revoked or have expired
	Agent   uuid.UUID  // zero: all
	Key     uuid.UUID

	Calls   []CallRow
	Older   string // URL of the next page; empty on the last one
	Newest  string // URL of the first page
	Paged   bool   // this is not the first page
	Export  string // URL of the CSV file
	Refresh string // URL of the page for a refresh; empty: none
}

func (p CallsPage) screen() screen {
	return screen{file: "calls/index.html", section: SectionCalls, refresh: p.Refresh}
}

func (CallsPage) fragment() string { return "calls" }

// CallsRefreshed is the rows of a page that loads them again, without the choices of its filter.
type CallsRefreshed struct{ CallsPage }

func (CallsRefreshed) fragment() string { return "calls-refreshed" }

// Now says how many calls go on, and the minutes of the month, as far as they are limited.
func (p CallsPage) Now() string {
	calls := Count(p.Used.Calls).String()
	if p.Limits.Calls > 0 {
		calls += " of " + Count(p.Limits.Calls).String()
	}
	switch {
	case p.Limits.Calls > 0:
		calls += " calls"
	case p.Used.Calls == 0:
		calls = "No calls"
	case p.Used.Calls == 1:
		calls = "1 call"
	default:
		calls += " calls"
	}
	return fmt.Sprintf("%s right now. %s this month.", calls, minutesOf(p.Used, p.Limits))
}

// UsedLimits says how much of its limits a key uses, such as "3 of 5 calls, 412 of 1,000 minutes",
// or "" without these limits.
func UsedLimits(used calls.Used, limits value.Limits) string {
	text := ""
	if limits.Calls > 0 {
		text = fmt.Sprintf("%s of %s calls", Count(used.Calls), Count(limits.Calls))
	}
	if limits.MinutesPerMonth > 0 {
		if text != "" {
			text += ", "
		}
		text += minutesOf(used, limits)
	}
	if limits.MinutesPerCall > 0 && text == "" {
		text = minutes(limits.MinutesPerCall) + " a call"
	}
	return text
}

func minutesOf(used calls.Used, limits value.Limits) string {
	if limits.MinutesPerMonth > 0 {
		return fmt.Sprintf("%s of %s minutes", Count(used.Minutes()), Count(limits.MinutesPerMonth))
	}
	return minutes(used.Minutes())
}

func minutes(n int64) string {
	if n == 1 {
		return "1 minute"
	}
	return Count(n).String() + " minutes"
}

// CallRow is a call in the table.
type CallRow struct {
	calls.Call

	Started    Moment
	Ended      *Moment // nil: in progress
	Confirming bool    // the row asks whether to end the call
	Focused    bool    // the End call button takes the focus
	Seconds    int64   // so far
}

// Duration returns the duration, such as "4:12" or "1:04:12".
func (r CallRow) Duration() string {
	d := time.Duration(r.Seconds) * time.Second
	if d >= time.Hour {
		return fmt.Sprintf("%d:%02d:%02d", d/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d:%02d", d/time.Minute, d%time.Minute/time.Second)
}

// endReasons are the reasons for the end of a call in words.
var endReasons = map[calls.EndReason]string{
	calls.EndVisitorLeft:     "Visitor left",
	calls.EndConnectionLost:  "Connection lost",
	calls.EndAgentError:      "Agent error",
	calls.EndServerShutdown:  "Server shut down",
	calls.EndKeyRevoked:      "Key revoked",
	calls.EndKeyExpired:      "Key expired",
	calls.EndKeyRestricted:   "Key restricted",
	calls.EndAgentRemoved:    "Agent removed",
	calls.EndAgentPaused:     "Agent paused",
	calls.EndAccountDisabled: "Account disabled",
	calls.EndLimitCalls:      "Too many calls at a time",
	calls.EndLimitPerCall:    "Longest call reached",
	calls.EndLimitPerMonth:   "Minutes of the month used up",
	calls.EndedInPortal:      "Ended here",
	calls.EndedByOperator:    "Ended by the operator",
	calls.EndUnknown:         "Ended",
}

// Reason returns why the call has ended.
func (r CallRow) Reason() string {
	if text, ok := endReasons[r.EndReason]; ok {
		return text
	}
	return string(r.EndReason)
}
