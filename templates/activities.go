package templates

import (
	"github.com/google/uuid"

	"portal/models"
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
	Kind        string        // an action or the id of a group; empty if not set
	Who         string        // a user's id, "operator" or "visitor"; empty if not set
	People      []models.User // to choose from
	Keys        []models.Key  // active
	Revoked     []models.Key  // the latest revocation first
	Key         uuid.UUID     // zero if not set
	From, Until string        // days, such as "2026-03-14"; empty if not set
	Search      string

	FromOffset, UntilOffset string // of the days from UTC, in minutes; empty: UTC
}

// Groups returns the options of the kind.
func (ActivityFilter) Groups() []ActivityGroup { return ActivityGroups }

// ActivityGroup is a group of actions.
type ActivityGroup struct {
	ID, Name string
	All      string // the option that selects the whole group
	Actions  []NamedAction
}

// NamedAction is an action with its name in the filter.
type NamedAction struct {
	Action models.Action
	Name   string
}

// ActivityGroups are the options of the kind, in order.
var ActivityGroups = []ActivityGroup{
	{"keys", "Keys", "All key events", []NamedAction{
		{models.ActionKeyGenerated, "New keys"},
		{models.ActionKeyRenamed, "Renamed keys"},
		{models.ActionKeyRestricted, "Changed restrictions"},
		{models.ActionKeyRevoked, "Revoked keys"},
		{models.ActionKeyLeaked, "Keys reported as leaked"},
		{models.ActionCallsEnded, "Ended calls"},
	}},
	{"agents", "Agents", "All agent events", []NamedAction{
		{models.ActionAgentCreated, "New agents"},
		{models.ActionAgentRenamed, "Renamed agents"},
		{models.ActionAgentRemoved, "Removed agents"},
	}},
	{"sessions", "Sign-ins and sessions", "All sign-in events", []NamedAction{
		{models.ActionSignedIn, "Sign-ins"},
		{models.ActionSignInFailed, "Incorrect passwords"},
		{models.ActionSignedOut, "Sign-outs"},
		{models.ActionSessionRevoked, "Sessions ended remotely"},
		{models.ActionSessionsRevoked, "All other sessions ended"},
	}},
	{"credentials", "Email and password", "All email and password events", []NamedAction{
		{models.ActionEmailChanged, "Email changes"},
		{models.ActionPasswordRefused, "Incorrect current passwords"},
		{models.ActionPasswordChanged, "Password changes"},
		{models.ActionPasswordReset, "Password resets"},
	}},
	{"factors", "Two-step verification", "All two-step events", []NamedAction{
		{models.ActionTOTPOn, "Two-step verification turned on"},
		{models.ActionTOTPOff, "Two-step verification turned off"},
		{models.ActionCodeRefused, "Incorrect codes"},
		{models.ActionCodesRefused, "Many incorrect codes"},
		{models.ActionRecoveryCodeUsed, "Used recovery codes"},
		{models.ActionRecoveryCodesRenewed, "New recovery codes"},
		{models.ActionPasskeyAdded, "New passkeys"},
		{models.ActionPasskeyRemoved, "Removed passkeys"},
		{models.ActionSecondFactorRequired, "Two-step verification required"},
		{models.ActionSecondFactorOptional, "Two-step verification no longer required"},
		{models.ActionSecondFactorReset, "Resets by an operator"},
	}},
	{"identities", "Sign-in with a provider", "All provider events", []NamedAction{
		{models.ActionIdentityConnected, "Connected providers"},
		{models.ActionIdentityDisconnected, "Disconnected providers"},
	}},
	{"users", "People", "All people events", []NamedAction{
		{models.ActionInvitationCreated, "New invitations"},
		{models.ActionInvitationCancelled, "Cancelled invitations"},
		{models.ActionInvitationAccepted, "Accepted invitations"},
		{models.ActionUserMadeOwner, "Members made owners"},
		{models.ActionUserMadeMember, "Owners made members"},
		{models.ActionUserAdded, "New users"},
		{models.ActionUserDisabled, "Disabled users"},
		{models.ActionUserEnabled, "Enabled users"},
		{models.ActionUserRemoved, "Removed users"},
		{models.ActionLinkCreated, "Sign-in links"},
	}},
	{"account", "Account", "All account events", []NamedAction{
		{models.ActionAccountCreated, "Account created"},
		{models.ActionAccountRenamed, "Account renamed"},
		{models.ActionAccountDisabled, "Account disabled"},
		{models.ActionAccountEnabled, "Account enabled"},
	}},
	{"database", "Database", "All database events", []NamedAction{
		{models.ActionDatabaseRestored, "Restored backups"},
	}},
}

// ActivityItem is one entry of the activity log. For an ended session, the label is its device.
type ActivityItem struct {
	models.Activity

	KeyAddress string // URL of the activity of the key
	When       Moment
	Number     Count // of ended sessions or attempts
	Refusals   Count // requests with the revoked key that were refused in the last hour
}
