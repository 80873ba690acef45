package models

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// ActorKind is the kind of an [Actor].
type ActorKind string

// The kinds of actor.
const (
	ActorUser ActorKind = "user" // of the portal
	// Of the service, on the command line or by the operator API.
	ActorOperator ActorKind = "operator"
	ActorVisitor  ActorKind = "visitor" // a client without a session
)

// Actor identifies the person behind a recorded action.
type Actor struct {
	Kind    ActorKind
	ID      uuid.UUID // of the user; zero for an operator
	Address string    // the client's network address; empty for an operator
}

// UserActor returns the actor for a user at a network address.
func UserActor(userID uuid.UUID, address string) Actor {
	return Actor{ActorUser, userID, address}
}

func visitorActor(address string) Actor {
	return Actor{Kind: ActorVisitor, Address: address}
}

// Operator returns the actor for an operator.
func Operator() Actor { return Actor{Kind: ActorOperator} }

// Action is the kind of an [Activity].
type Action string

// The actions that are recorded.
const (
	ActionKeyGenerated  Action = "api_key.generated"
	ActionKeyRenamed    Action = "api_key.renamed"
	ActionKeyRestricted Action = "api_key.restricted"
	ActionKeyRevoked    Action = "api_key.revoked"
	ActionKeyLeaked     Action = "api_key.leaked" // revoked, because it was reported as leaked
	ActionAgentCreated  Action = "agent.created"
	ActionAgentRemoved  Action = "agent.removed"
	ActionCallsEnded    Action = "calls.ended" // because of a revocation, removal or disabling

	ActionSignedIn        Action = "session.created"
	ActionSignInFailed    Action = "session.refused" // a wrong password for a user of the account
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
	ActionAgentRenamed    Action = "agent.renamed"
	ActionUserAdded       Action = "user.added"
	ActionUserDisabled    Action = "user.disabled"
	ActionUserEnabled     Action = "user.enabled"
	ActionUserRemoved     Action = "user.removed"
	ActionUserMadeOwner   Action = "user.made_owner"
	ActionUserMadeMember  Action = "user.made_member"
	ActionLinkCreated     Action = "sign_in_link.created"

	ActionInvitationCreated   Action = "invitation.created"
	ActionInvitationCancelled Action = "invitation.cancelled"
	ActionInvitationAccepted  Action = "invitation.accepted" // by the new user

	ActionDatabaseRestored Action = "database.restored" // by an operator, from a backup
)

// Activity is one entry of an account's append-only activity log. Because the transaction of the
// action also writes the activity, neither exists without the other.
type Activity struct {
	bun.BaseModel `bun:"table:activities,alias:activity"`

	ID        uuid.UUID `bun:",pk"`
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

	// ActorName is the user's email, "Operator" or "Someone".
	ActorName string `bun:",scanonly"`

	// Repeats is the number of further wrong passwords of the same user, or of the same change,
	// in the same ten minutes. Elsewhere means that some of them came from another address.
	Repeats   int64 `bun:",scanonly"`
	Elsewhere bool  `bun:",scanonly"`

	// Position orders a list. It is the ID, or a later one if the activity was repeated.
	Position uuid.UUID `bun:",scanonly"`
	LastAt   time.Time `bun:",scanonly"` // replaces At in a list

	// NewDevice is the email of a user who has signed in on a new device; otherwise empty.
	NewDevice string `bun:"-"`
	// DeviceHash is the hash of its address and browser. Repeated sign-ins from there share a
	// mail.
	DeviceHash []byte `bun:"-"`

	// KeyLastFour is the end of the subject, if it is a key. ReplacedLastFour is the end of the
	// key that a generated key replaces. Both are empty if there is no such key or it was
	// deleted.
	KeyLastFour      string `bun:",scanonly"`
	ReplacedLastFour string `bun:",scanonly"`

	// LeakSource and LeakURL are those of the subject, if it is a key that was reported as
	// leaked.
	LeakSource LeakSource `bun:",scanonly"`
	LeakURL    string     `bun:"leak_url,scanonly"`
}

// Leak returns the report of the key that is the subject.
func (a Activity) Leak() Leak { return Leak{a.LeakSource, a.LeakURL} }

// repeatPeriod is how long one activity counts the wrong passwords of a user, or the same change by
// a user. Otherwise an attacker or a member could fill the activity log.
const repeatPeriod = 10 * time.Minute

// repeatable are the changes that a user can repeat without an end.
var repeatable = []Action{
	ActionKeyRenamed, ActionKeyRestricted, ActionAgentRenamed, ActionAccountRenamed,
	ActionUserMadeOwner, ActionUserMadeMember, ActionSecondFactorRequired, ActionSecondFactorOptional,
}

// activityRepeat counts what one activity records.
type activityRepeat struct {
	bun.BaseModel `bun:"table:activity_repeats,alias:repeated"`

	UserID    uuid.UUID `bun:",pk"`
	Action    Action    `bun:",pk"`
	AccountID uuid.UUID
	Period    time.Time `bun:",pk"` // start of the period
	// The subject, its names and values before and after; empty for a wrong password.
	Change     string `bun:",pk"`
	ActivityID uuid.UUID
	Address    string // of the first one
	Repeats    int64  // after the first one
	Elsewhere  bool   // one of them came from another address

	// LastID is the place of the activity in the list, and LastAt its time. Both are NULL
	// without a repeat.
	LastID *uuid.UUID
	LastAt *time.Time
}

// MaskedKey returns the masked key that is the subject, or "" if there is none.
func (a Activity) MaskedKey() string { return maskedIfKnown(a.KeyLastFour) }

// MaskedReplaced returns the masked key that the subject replaces, or "" if there is none.
func (a Activity) MaskedReplaced() string { return maskedIfKnown(a.ReplacedLastFour) }

func maskedIfKnown(lastFour string) string {
	if lastFour == "" {
		return ""
	}
	return masked(lastFour)
}

// ActivityPage selects a page of the activity log.
type ActivityPage struct {
	Before uuid.UUID // return only activities before this Position; zero for the first page
	Limit  int       // the maximum number of activities

	// Only activities that match all of these are returned. A zero value matches every
	// activity.
	Actions     []Action
	ActorKind   ActorKind
	ActorID     uuid.UUID // the user
	KeyID       uuid.UUID // the key that is the subject
	From, Until time.Time // Until is exclusive
	Search      string    // part of a label, user or address, or the last four characters of a key
}

// ActivityLog is the append-only log of what users, operators and visitors did in an account.
type ActivityLog struct{ db *DB }

// List returns a page of the account's activity log, the newest first. A repeated activity has the
// place and time of its last repeat.
func (l *ActivityLog) List(ctx context.Context, accountID uuid.UUID, page ActivityPage) ([]Activity, error) {
	// Two queries, because each of them has an index for its order.
	once, err := l.list(ctx, accountID, page, "activity.id", "activity.at", func(query *bun.SelectQuery) *bun.SelectQuery {
		return query.Join("LEFT JOIN activity_repeats AS r ON r.activity_id = activity.id").Where("r.last_id IS NULL")
	})
	if err != nil {
		return nil, err
	}
	repeated, err := l.list(ctx, accountID, page, "r.last_id", "r.last_at", func(query *bun.SelectQuery) *bun.SelectQuery {
		return query.Join("JOIN activity_repeats AS r ON r.activity_id = activity.id").
			Where("r.account_id = ? AND r.last_id IS NOT NULL", accountID)
	})
	if err != nil {
		return nil, err
	}
	once = slices.DeleteFunc(once, func(a Activity) bool { // repeated between the two queries
		return slices.ContainsFunc(repeated, func(b Activity) bool { return a.ID == b.ID })
	})
	activities := once
	activities = append(activities, repeated...)
	// Positions are UUIDv7, so they sort by time.
	slices.SortFunc(activities, func(a, b Activity) int { return bytes.Compare(b.Position[:], a.Position[:]) })
	return activities[:min(page.Limit, len(activities))], nil
}

// list returns a page of the activities that join selects, without an order, with these columns as
// their position and time.
func (l *ActivityLog) list(
	ctx context.Context, accountID uuid.UUID, page ActivityPage, position, at bun.Ident, join func(*bun.SelectQuery) *bun.SelectQuery,
) ([]Activity, error) {
	activities := []Activity{}
	query := l.db.NewSelect().Model(&activities).ColumnExpr("?TableColumns").
		ColumnExpr("COALESCE(u.email, CASE activity.actor_kind WHEN ? THEN 'Operator' ELSE 'Someone' END) AS actor_name", ActorOperator).
		ColumnExpr("COALESCE(k.last_four, '') AS key_last_four, COALESCE(replaced.last_four, '') AS replaced_last_four").
		ColumnExpr("COALESCE(k.leak_source, '') AS leak_source, COALESCE(k.leak_url, '') AS leak_url").
		ColumnExpr("COALESCE(r.repeats, 0) AS repeats, COALESCE(r.elsewhere, FALSE) AS elsewhere").
		ColumnExpr("? AS position, ? AS last_at", position, at).
		Join("LEFT JOIN users AS u ON u.id = activity.actor_id").
		Join("LEFT JOIN api_keys AS k ON k.id = activity.subject_id AND k.account_id = activity.account_id").
		Join("LEFT JOIN api_keys AS replaced ON replaced.id = k.replaces_id AND replaced.account_id = activity.account_id AND activity.action = ?", ActionKeyGenerated).
		Apply(join).
		Where("activity.account_id = ?", accountID).
		OrderExpr("? DESC", position).Limit(int64(page.Limit))
	if page.Before != uuid.Nil {
		query = query.Where("? < ?", position, page.Before)
	}
	if err := page.filter(query, at).Scan(ctx); err != nil {
		return nil, failed("list activity", err)
	}
	for i := range activities {
		activities[i].At = activities[i].LastAt
	}
	return activities, nil
}

func (p ActivityPage) filter(query *bun.SelectQuery, at bun.Ident) *bun.SelectQuery {
	if len(p.Actions) > 0 {
		query = query.Where("activity.action IN (?)", bun.List(p.Actions))
	}
	if p.ActorKind != "" {
		query = query.Where("activity.actor_kind = ?", p.ActorKind)
	}
	if p.ActorID != uuid.Nil {
		query = query.Where("activity.actor_id = ?", p.ActorID)
	}
	if p.KeyID != uuid.Nil {
		query = query.Where("activity.subject_id = ?", p.KeyID)
	}
	if !p.From.IsZero() {
		query = query.Where("? >= ?", at, p.From)
	}
	if !p.Until.IsZero() {
		query = query.Where("? < ?", at, p.Until)
	}
	if p.Search != "" {
		pattern := "%" + likeEscaper.Replace(p.Search) + "%"
		query = query.WhereGroup(" AND ", func(query *bun.SelectQuery) *bun.SelectQuery {
			for _, column := range []string{"activity.label", "activity.former_label", "u.email", "activity.address"} {
				query = query.WhereOr("LOWER(?) LIKE LOWER(?) ESCAPE '!'", bun.Ident(column), pattern)
			}
			return query.WhereOr("k.last_four = ?", p.Search)
		})
	}
	return query
}

var likeEscaper = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")
