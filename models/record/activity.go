package record

import (
	"cmp"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/value"
)

// ActorKind is the kind of an [Actor].
type ActorKind string

// The kinds of actor.
const (
	ActorUser ActorKind = "user" // of the portal
	// Of the service, on the command line or by the operator API.
	ActorOperator ActorKind = "operator"
	ActorVisitor  ActorKind = "visitor" // a client without a session
	ActorSystem   ActorKind = "system"  // the portal itself
)

// Actor identifies the person behind a recorded action.
type Actor struct {
	Kind    ActorKind
	ID      uuid.UUID // of the user; zero for an operator
	Address string    // the client's network address; empty for an operator
}

// UserActor returns the actor for a user at a network address.
func UserActor(userID uuid.UUID, address string) Actor {
	return Actor{Kind: ActorUser, ID: userID, Address: address}
}

// VisitorActor returns a visitor without a session at this address.
func VisitorActor(address string) Actor {
	return Actor{Kind: ActorVisitor, Address: address}
}

// System is the actor for what nobody does.
var System = Actor{Kind: ActorSystem}

// Operator returns the actor for an operator.
func Operator() Actor { return Actor{Kind: ActorOperator} }

// Action is the kind of an [Activity].
type Action string

// The actions that are recorded.
const (
	ActionKeyGenerated  Action = "api_key.generated"
	ActionKeyRenamed    Action = "api_key.renamed"
	ActionKeyRestricted Action = "api_key.restricted"
	ActionKeyTrusted    Action = "api_key.trust_changed" // its trust rule was saved
	ActionKeyRevoked    Action = "api_key.revoked"
	ActionKeyLeaked     Action = "api_key.leaked" // revoked, because it was reported as leaked
	ActionKeyExpiring   Action = "api_key.expiring"
	ActionKeyExpired    Action = "api_key.expired"
	ActionAgentCreated  Action = "agent.created"
	ActionAgentRemoved  Action = "agent.removed"
	ActionAgentPaused   Action = "agent.paused"
	ActionAgentResumed  Action = "agent.resumed"
	// Calls ended because of a revocation, removal, pause or disabling.
	ActionCallsEnded Action = "calls.ended"
	ActionCallEnded  Action = "call.ended_by_hand"

	// 80 % of the minutes of a month are used.
	ActionLimitApproaching Action = "limit.approaching"
	ActionLimitReached     Action = "limit.reached"

	ActionSignedIn Action = "session.created"
	// A wrong password for a user of the account.
	ActionSignInFailed    Action = "session.refused"
	ActionSignedOut       Action = "session.ended"
	ActionSessionRevoked  Action = "session.revoked"  // ended from another session
	ActionSessionsRevoked Action = "sessions.revoked" // all others of a user at once
	ActionPasswordRefused Action = "password.refused" // a wrong current password in a form
	ActionPasswordChanged Action = "password.changed"
	ActionPasswordReset   Action = "password.reset" // by an operator
	ActionEmailChanged    Action = "email.changed"

	ActionIdentityConnected    Action = "identity.connected"
	ActionIdentityDisconnected Action = "identity.disconnected"

	ActionTOTPOn               Action = "authenticator.enabled"
	ActionTOTPOff              Action = "authenticator.disabled"
	ActionCodeRefused          Action = "code.refused"  // a wrong code after the right password
	ActionCodesRefused         Action = "codes.refused" // ten wrong codes within a day
	ActionRecoveryCodeUsed     Action = "recovery_code.used"
	ActionRecoveryCodesRenewed Action = "recovery_codes.renewed"
	ActionPasskeyAdded         Action = "passkey.added"
	ActionPasskeyRemoved       Action = "passkey.removed"
	ActionSecondFactorRequired Action = "second_factor.required" // of everyone in the account
	ActionSecondFactorOptional Action = "second_factor.optional"
	ActionSecondFactorReset    Action = "second_factor.reset" // by an operator

	ActionAccountCreated  Action = "account.created"
	ActionAccountRenamed  Action = "account.renamed"
	ActionAccountDisabled Action = "account.disabled"
	ActionAccountEnabled  Action = "account.enabled"
	ActionAccountLimited  Action = "account.limited" // the limits of its calls were changed
	// The time after which unused keys are revoked was changed.
	ActionUnusedKeysSet  Action = "account.unused_keys"
	ActionAgentRenamed   Action = "agent.renamed"
	ActionUserAdded      Action = "user.added"
	ActionUserDisabled   Action = "user.disabled"
	ActionUserEnabled    Action = "user.enabled"
	ActionUserRemoved    Action = "user.removed"
	ActionUserMadeOwner  Action = "user.made_owner"
	ActionUserMadeMember Action = "user.made_member"
	ActionRoleKept       Action = "user.role_kept" // the last owner stays an owner
	ActionLinkCreated    Action = "sign_in_link.created"

	ActionInvitationCreated   Action = "invitation.created"
	ActionInvitationCancelled Action = "invitation.cancelled"
	ActionInvitationAccepted  Action = "invitation.accepted" // by the new user

	ActionWebhookAdded    Action = "webhook.added"
	ActionWebhookRemoved  Action = "webhook.removed"
	ActionWebhookChanged  Action = "webhook.changed" // its events
	ActionWebhookRotated  Action = "webhook.rotated" // its secret was replaced
	ActionWebhookEnabled  Action = "webhook.enabled"
	ActionWebhookDisabled Action = "webhook.disabled" // by an owner, or because it failed

	ActionDatabaseRestored Action = "database.restored" // by an operator, from a backup
)

// Activity is one entry of an account's append-only activity log. Because the transaction of the
// action also writes the activity, neither exists without the other.
type Activity struct {
	bun.BaseModel `bun:"table:activities,alias:activity"`

	ID        uuid.UUID `bun:",pk,type:uuid"`
	AccountID uuid.UUID
	ActorKind ActorKind
	ActorID   *uuid.UUID // nil unless a user
	Action    Action
	SubjectID *uuid.UUID // the key, agent, session, user or account
	Label     string     // the name of the subject at that time
	Address   string     // the actor's network address
	At        time.Time  // in a list, the time of the last repeat
	Count     int64      // number of sessions or calls that were ended; otherwise 1

	// FormerLabel is the name of a key, agent or account before it was renamed, or the email
	// before it was changed. For other actions and old activities, it is empty.
	FormerLabel string `bun:",nullzero"`

	// Detail has the old and new restrictions of a key, one in each line, or the reason of its
	// revocation, and is often empty.
	Detail string `bun:",nullzero"`

	// ActorName is the user's email, "Operator", "Someone" or "The portal".
	ActorName string `bun:",scanonly"`

	// ActorThen is the user's email at that time, or empty if it has not been changed since.
	// Only a list has it.
	ActorThen string `bun:",scanonly"`

	// Repeats is the number of further wrong passwords or codes of the same user in the same
	// ten minutes. Elsewhere means that some of them came from another address.
	Repeats   int64 `bun:",scanonly"`
	Elsewhere bool  `bun:",scanonly"`

	// Position orders a list. It is the ID, or a later one if the activity was repeated.
	Position uuid.UUID `bun:",scanonly"`
	LastAt   time.Time `bun:",scanonly"` // replaces At in a list

	// KeyLastFour is the end of the subject, if it is a key. ReplacedLastFour is the end of the
	// key that a generated key replaces. Both are empty if there is no such key or it was
	// deleted.
	KeyLastFour      string `bun:",scanonly"`
	ReplacedLastFour string `bun:",scanonly"`

	// LeakReporter and LeakURL are those of the subject, if it is a key that was reported as
	// leaked.
	LeakReporter LeakReporter `bun:",scanonly"`
	LeakURL      string       `bun:"leak_url,scanonly"`
}

// EntryID returns the id of the row, for pages of a list.
func (a Activity) EntryID() uuid.UUID { return a.ID }

// NamedActor returns the name of the actor, and the one at that time if it has been changed.
func (a Activity) NamedActor() string {
	if a.ActorThen == "" || a.ActorThen == a.ActorName { // an erased user has one name
		return a.ActorName
	}
	return a.ActorName + " (then " + a.ActorThen + ")"
}

// RevokesKey reports whether the subject is a key, which the activity revoked.
func (a Activity) RevokesKey() bool {
	return a.Action == ActionKeyRevoked || a.Action == ActionKeyLeaked
}

// Leak returns the report of the key that is the subject.
func (a Activity) Leak() Leak { return Leak{a.LeakReporter, a.LeakURL} }

// ActivityRepeat counts the wrong passwords or codes that one activity records.
type ActivityRepeat struct {
	bun.BaseModel `bun:"table:activity_repeats,alias:repeated"`

	UserID     uuid.UUID `bun:",pk"`
	Action     Action    `bun:",pk"`
	Period     time.Time `bun:",pk"` // start of the period
	AccountID  uuid.UUID
	ActivityID uuid.UUID
	Address    string // of the first one
	Repeats    int64  // after the first one
	Elsewhere  bool   // one of them came from another address

	// LastID is the place of the activity in the list, and LastAt its time.
	LastID uuid.UUID
	LastAt time.Time
}

// ActivityElement is an activity as programs get it: in reports and webhooks.
type ActivityElement struct {
	ID      uuid.UUID       `json:"id"`
	At      time.Time       `json:"at"`
	Action  Action          `json:"action"`
	Actor   ActivityActor   `json:"actor"`
	Subject ActivitySubject `json:"subject"`
	Detail  *string         `json:"detail"`
	Count   int64           `json:"count"`
}

// ActivityActor is who acted. What is unknown is nil.
type ActivityActor struct {
	Kind    ActorKind  `json:"kind"`
	ID      *uuid.UUID `json:"id"`
	Email   *string    `json:"email"`
	Address *string    `json:"address"`
}

// ActivitySubject is what an activity is about. What is unknown is nil.
type ActivitySubject struct {
	ID    *uuid.UUID `json:"id"`
	Label *string    `json:"label"`
}

// Element returns the activity as programs get it.
func (a Activity) Element() ActivityElement {
	element := ActivityElement{
		ID: a.ID, At: a.At.UTC(), Action: a.Action,
		Actor:   ActivityActor{Kind: a.ActorKind, ID: a.ActorID, Address: unlessEmpty(a.Address)},
		Subject: ActivitySubject{a.SubjectID, unlessEmpty(a.Label)},
		// A leak has no other detail.
		Detail: unlessEmpty(cmp.Or(a.Detail, a.Leak().String())),
		Count:  a.Count + a.Repeats,
	}
	if a.ActorKind == ActorUser {
		element.Actor.Email = unlessEmpty(a.ActorName)
	}
	if element.Detail == nil && a.FormerLabel != "" {
		element.Detail = new(a.FormerLabel + " → " + a.Label)
	}
	return element
}

func unlessEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// MaskedKey returns the masked key that is the subject, or "" if there is none.
func (a Activity) MaskedKey() string { return value.MaskIfKnown(a.KeyLastFour) }

// MaskedReplaced returns the masked key that the subject replaces, or "" if there is none.
func (a Activity) MaskedReplaced() string { return value.MaskIfKnown(a.ReplacedLastFour) }
