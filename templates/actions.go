package templates

import (
	"portal/models/record"
)

// ActionGroup is a group of actions in the filter of the activity page.
type ActionGroup struct {
	ID, Name string
	All      string // the option that selects the whole group
	Actions  []ActionText
	Needs    Feature // without it, no such action happens; empty: none
}

// Feature is a part of the portal that operators can leave out.
type Feature string

// The features that actions need.
const (
	FeatureCalls    Feature = "calls"
	FeatureProvider Feature = "provider" // of OpenID Connect
	FeatureWebhooks Feature = "webhooks"
)

// ActionText is how pages and emails show an action.
type ActionText struct {
	Action   record.Action
	Name     string // in the filter
	Icon     string // the name of its template after "icon-"
	Sentence Sentence
	NoActor  bool    // the sentence does not follow the actor
	Detail   string  // the text before the detail
	Needs    Feature // likewise
	// Changed is the sentence of the email that reports a change of how the recipient signs in.
	// Other emails have a file of their own.
	Changed string
	// Subject is the subject of that email.
	Subject string
}

// Sentence says what happened, after the name of the actor.
type Sentence []Part

// Part is a text, or one of the constants below, which the template "activity-sentence" fills in.
type Part string

const (
	theLabel    Part = "{label}"
	theFormer   Part = "{former}" // the former label
	theDevice   Part = "{device}" // that the label, a User-Agent, names
	theLeak     Part = "{leak}"
	theCalls    Part = "{calls}"    // such as "2 calls"
	theSessions Part = "{sessions}" // such as "signed out of 2 sessions"
	// restrictions is "changed the restrictions of the API key " or likewise for the note.
	restrictions Part = "{restrictions}"

	// These begin with a space, or are empty if there is no such thing.
	theKey      Part = "{key}"
	theReplaced Part = "{replaced}" // the key that a generated one replaces
	theMethod   Part = "{method}"   // of a sign-in
	times       Part = "{times}"    // such as "2 times"
)

// ActionGroups has each action once, in the order of the filter.
var ActionGroups = []ActionGroup{
	{ID: "keys", Name: "Keys", All: "All key events", Actions: []ActionText{
		{Action: record.ActionKeyGenerated, Name: "New keys", Icon: "key", Sentence: Sentence{"generated the API key ", theLabel, theKey, theReplaced}},
		{Action: record.ActionKeyRenamed, Name: "Renamed keys", Icon: "pencil", Sentence: Sentence{"renamed ", theFormer, " to ", theLabel, theKey}},
		{Action: record.ActionKeyRestricted, Name: "Changed restrictions", Icon: "pencil", Sentence: Sentence{restrictions, theLabel, theKey}},
		{Action: record.ActionKeyTrusted, Name: "Changed trust rules", Icon: "pencil", Sentence: Sentence{"saved the trust rule of the API key ", theLabel, theKey}},
		{Action: record.ActionKeyRevoked, Name: "Revoked keys", Icon: "ban", Sentence: Sentence{"revoked the API key ", theLabel, theKey}, Detail: "Reason: "},
		{Action: record.ActionKeyLeaked, Name: "Keys reported as leaked", Icon: "ban", Sentence: Sentence{"The API key ", theLabel, theKey, " was revoked. ", theLeak}, NoActor: true},
		{Action: record.ActionKeyExpiring, Name: "Keys that expire soon", Icon: "warning", Sentence: Sentence{"The API key ", theLabel, theKey, " expires soon"}, Detail: "Expires ", NoActor: true},
		{Action: record.ActionKeyExpired, Name: "Expired keys", Icon: "ban", Sentence: Sentence{"The API key ", theLabel, theKey, " expired"}, Detail: "Expired ", NoActor: true},
		{Action: record.ActionCallEnded, Name: "Calls ended by hand", Icon: "ban", Sentence: Sentence{"ended a call of ", theLabel, theKey}, Needs: FeatureCalls},
		{Action: record.ActionLimitApproaching, Name: "Limits approached", Icon: "warning", Sentence: Sentence{theLabel, theKey, " has nearly used its minutes of the month"}, NoActor: true, Needs: FeatureCalls},
		{Action: record.ActionLimitReached, Name: "Limits reached", Icon: "warning", Sentence: Sentence{theLabel, theKey, " has used its minutes of the month"}, NoActor: true, Needs: FeatureCalls},
		{Action: record.ActionCallsEnded, Name: "Ended calls", Icon: "ban", Sentence: Sentence{"ended ", theCalls, " of ", theLabel, theKey}, Needs: FeatureCalls},
	}},
	{ID: "agents", Name: "Agents", All: "All agent events", Actions: []ActionText{
		{Action: record.ActionAgentCreated, Name: "New agents", Icon: "agent", Sentence: Sentence{"created the agent ", theLabel}},
		{Action: record.ActionAgentRenamed, Name: "Renamed agents", Icon: "agent", Sentence: Sentence{"renamed the agent ", theFormer, " to ", theLabel}},
		{Action: record.ActionAgentPaused, Name: "Paused agents", Icon: "agent", Sentence: Sentence{"paused the agent ", theLabel}},
		{Action: record.ActionAgentResumed, Name: "Resumed agents", Icon: "agent", Sentence: Sentence{"resumed the agent ", theLabel}},
		{Action: record.ActionAgentRemoved, Name: "Removed agents", Icon: "agent", Sentence: Sentence{"removed the agent ", theLabel}},
	}},
	{ID: "sessions", Name: "Sign-ins and sessions", All: "All sign-in events", Actions: []ActionText{
		{Action: record.ActionSignedIn, Name: "Sign-ins", Icon: "enter", Sentence: Sentence{"signed in", theMethod}},
		{Action: record.ActionSignInFailed, Name: "Incorrect passwords", Icon: "warning", Sentence: Sentence{"entered an incorrect password for ", theLabel, times}},
		{Action: record.ActionSignedOut, Name: "Sign-outs", Icon: "leave", Sentence: Sentence{"signed out"}},
		{Action: record.ActionSessionRevoked, Name: "Sessions ended remotely", Icon: "device", Sentence: Sentence{"ended another session of ", theDevice}},
		{Action: record.ActionSessionsRevoked, Name: "All other sessions ended", Icon: "device", Sentence: Sentence{theSessions}},
	}},
	{ID: "credentials", Name: "Email and password", All: "All email and password events", Actions: []ActionText{
		{Action: record.ActionEmailChanged, Name: "Email changes", Icon: "mail", Sentence: Sentence{"changed the email of ", theFormer, " to ", theLabel}},
		{Action: record.ActionPasswordRefused, Name: "Incorrect current passwords", Icon: "warning", Sentence: Sentence{"entered an incorrect current password", times}},
		{Action: record.ActionPasswordChanged, Name: "Password changes", Icon: "lock", Sentence: Sentence{"changed the password of ", theLabel}},
		{Action: record.ActionPasswordReset, Name: "Password resets", Icon: "lock", Sentence: Sentence{"reset the password of ", theLabel}},
	}},
	{ID: "factors", Name: "Two-step verification", All: "All two-step events", Actions: []ActionText{
		{Action: record.ActionTOTPOn, Name: "Two-step verification turned on", Icon: "lock", Sentence: Sentence{"turned on two-step verification"}, Changed: "Two-step verification was turned on", Subject: "Two-step verification turned on"},
		{Action: record.ActionTOTPOff, Name: "Two-step verification turned off", Icon: "lock", Sentence: Sentence{"turned off two-step verification"}, Changed: "Two-step verification was turned off", Subject: "Two-step verification turned off"},
		{Action: record.ActionCodeRefused, Name: "Incorrect codes", Icon: "warning", Sentence: Sentence{"entered an incorrect code for ", theLabel, times}},
		{Action: record.ActionCodesRefused, Name: "Many incorrect codes", Icon: "warning", Sentence: Sentence{"entered the password of ", theLabel, " and then 10 incorrect codes within 24 hours"}},
		{Action: record.ActionRecoveryCodeUsed, Name: "Used recovery codes", Icon: "lock", Sentence: Sentence{"used a recovery code"}, Changed: "A recovery code was used to sign in", Subject: "Recovery code used", Detail: "Recovery codes: "},
		{Action: record.ActionRecoveryCodesRenewed, Name: "New recovery codes", Icon: "lock", Sentence: Sentence{"generated new recovery codes"}, Changed: "The recovery codes were replaced", Subject: "Recovery codes replaced"},
		{Action: record.ActionPasskeyAdded, Name: "New passkeys", Icon: "lock", Sentence: Sentence{"added the passkey ", theLabel}, Changed: "A passkey was added", Subject: "Passkey added"},
		{Action: record.ActionPasskeyRemoved, Name: "Removed passkeys", Icon: "lock", Sentence: Sentence{"removed the passkey ", theLabel}, Changed: "A passkey was removed", Subject: "Passkey removed"},
		{Action: record.ActionSecondFactorRequired, Name: "Two-step verification required", Icon: "lock", Sentence: Sentence{"required two-step verification"}},
		{Action: record.ActionSecondFactorOptional, Name: "Two-step verification no longer required", Icon: "lock", Sentence: Sentence{"stopped requiring two-step verification"}},
		{Action: record.ActionSecondFactorReset, Name: "Resets by an operator", Icon: "lock", Sentence: Sentence{"reset the two-step verification of ", theLabel}, Changed: "Two-step verification and all passkeys were removed", Subject: "Two-step verification reset"},
	}},
	{ID: "identities", Name: "Sign-in with a provider", All: "All provider events", Needs: FeatureProvider, Actions: []ActionText{
		{Action: record.ActionIdentityConnected, Name: "Connected providers", Icon: "lock", Sentence: Sentence{"connected ", theLabel, " for signing in"}, Changed: "Sign-in with another provider was connected", Subject: "Sign-in with a provider connected"},
		{Action: record.ActionIdentityDisconnected, Name: "Disconnected providers", Icon: "lock", Sentence: Sentence{"disconnected ", theLabel}, Changed: "Sign-in with another provider was disconnected", Subject: "Sign-in with a provider disconnected"},
	}},
	{ID: "users", Name: "People", All: "All people events", Actions: []ActionText{
		{Action: record.ActionInvitationCreated, Name: "New invitations", Icon: "mail", Sentence: Sentence{"invited ", theLabel}},
		{Action: record.ActionInvitationCancelled, Name: "Cancelled invitations", Icon: "mail", Sentence: Sentence{"cancelled the invitation for ", theLabel}},
		{Action: record.ActionInvitationAccepted, Name: "Accepted invitations", Icon: "people", Sentence: Sentence{"accepted the invitation to this account"}},
		{Action: record.ActionUserMadeOwner, Name: "Members made owners", Icon: "people", Sentence: Sentence{"made ", theLabel, " an owner"}},
		{Action: record.ActionUserMadeMember, Name: "Owners made members", Icon: "people", Sentence: Sentence{"made ", theLabel, " a member"}},
		{Action: record.ActionRoleKept, Name: "Last owners kept", Icon: "people", Sentence: Sentence{theLabel, " stayed an owner, because the account has no other one, although the identity provider says member", times}, NoActor: true, Needs: FeatureProvider},
		{Action: record.ActionUserAdded, Name: "New users", Icon: "people", Sentence: Sentence{"added the user ", theLabel}},
		{Action: record.ActionUserDisabled, Name: "Disabled users", Icon: "people", Sentence: Sentence{"disabled the user ", theLabel}},
		{Action: record.ActionUserEnabled, Name: "Enabled users", Icon: "people", Sentence: Sentence{"enabled the user ", theLabel}},
		{Action: record.ActionUserRemoved, Name: "Removed users", Icon: "people", Sentence: Sentence{"removed the user ", theLabel}},
		{Action: record.ActionLinkCreated, Name: "Sign-in links", Icon: "enter", Sentence: Sentence{"created a sign-in link for ", theLabel}},
	}},
	{ID: "account", Name: "Account", All: "All account events", Actions: []ActionText{
		{Action: record.ActionAccountCreated, Name: "Account created", Icon: "activity", Sentence: Sentence{"created the account"}},
		{Action: record.ActionAccountRenamed, Name: "Account renamed", Icon: "activity", Sentence: Sentence{"renamed the account from ", theFormer, " to ", theLabel}},
		{Action: record.ActionAccountDisabled, Name: "Account disabled", Icon: "activity", Sentence: Sentence{"disabled the account"}},
		{Action: record.ActionAccountLimited, Name: "Changed limits", Icon: "activity", Sentence: Sentence{"changed the limits of the account’s calls"}, Needs: FeatureCalls},
		{Action: record.ActionUnusedKeysSet, Name: "Changed lifetime of unused keys", Icon: "activity", Sentence: Sentence{"changed when unused API keys are revoked"}},
		{Action: record.ActionAccountEnabled, Name: "Account enabled", Icon: "activity", Sentence: Sentence{"enabled the account"}},
	}},
	{ID: "webhooks", Name: "Webhooks", All: "All webhook events", Needs: FeatureWebhooks, Actions: []ActionText{
		{Action: record.ActionWebhookAdded, Name: "New webhooks", Icon: "activity", Sentence: Sentence{"added the webhook ", theLabel}},
		{Action: record.ActionWebhookRemoved, Name: "Removed webhooks", Icon: "activity", Sentence: Sentence{"removed the webhook ", theLabel}},
		{Action: record.ActionWebhookChanged, Name: "Changed webhooks", Icon: "activity", Sentence: Sentence{"changed the events of the webhook ", theLabel}},
		{Action: record.ActionWebhookRotated, Name: "New webhook secrets", Icon: "activity", Sentence: Sentence{"replaced the secret of the webhook ", theLabel}},
		{Action: record.ActionWebhookEnabled, Name: "Enabled webhooks", Icon: "activity", Sentence: Sentence{"enabled the webhook ", theLabel}},
		{Action: record.ActionWebhookDisabled, Name: "Disabled webhooks", Icon: "warning", Sentence: Sentence{"disabled the webhook ", theLabel}, Detail: "Reason: "},
	}},
	{ID: "database", Name: "Database", All: "All database events", Actions: []ActionText{
		{Action: record.ActionDatabaseRestored, Name: "Restored backups", Icon: "activity", Sentence: Sentence{"restored the database from a backup"}},
	}},
}

var actionTexts = func() map[record.Action]ActionText {
	texts := map[record.Action]ActionText{}
	for _, group := range ActionGroups {
		for _, text := range group.Actions {
			texts[text.Action] = text
		}
	}
	return texts
}()

// textOf returns the text of an action. One that only a later version knows is shown by its code.
func textOf(action record.Action) ActionText {
	if text, ok := actionTexts[action]; ok {
		return text
	}
	return ActionText{Action: action, Icon: "activity", Sentence: Sentence{Part(action) + " ", theLabel}}
}
