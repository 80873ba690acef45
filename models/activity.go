package models

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// ActorKind tells users of the portal from operators of the service.
type ActorKind string

// The kinds of actor.
const (
	ActorUser     ActorKind = "user"
	ActorOperator ActorKind = "operator"
	ActorVisitor  ActorKind = "visitor" // somebody who has not signed in
)

// Actor is who does something, for the record.
type Actor struct {
	Kind    ActorKind
	ID      uuid.UUID // of the user; zero for an operator
	Address string    // the client's network address; empty for an operator
}

// UserActor is a user of the portal at a network address.
func UserActor(userID uuid.UUID, address string) Actor {
	return Actor{ActorUser, userID, address}
}

func visitorActor(address string) Actor {
	return Actor{Kind: ActorVisitor, Address: address}
}

// Operator is whoever runs the service's commands.
func Operator() Actor { return Actor{Kind: ActorOperator} }

// Action is what was done.
type Action string

// The actions that are recorded.
const (
	ActionKeyGenerated Action = "api_key.generated"
	ActionKeyRenamed   Action = "api_key.renamed"
	ActionKeyRevoked   Action = "api_key.revoked"
	ActionAgentCreated Action = "agent.created"
	ActionAgentRemoved Action = "agent.removed"

	ActionSignedIn        Action = "session.created"
	ActionSignInFailed    Action = "session.refused" // a wrong password for a user of the account
	ActionSignedOut       Action = "session.ended"
	ActionSessionRevoked  Action = "session.revoked" // ended from another session
	ActionPasswordChanged Action = "password.changed"
	ActionPasswordReset   Action = "password.reset" // by an operator
)

// Activity is one line of an account's append-only record. It is written in
// the transaction of the deed, so that neither is ever there without the other.
type Activity struct {
	bun.BaseModel `bun:"table:activities,alias:activity"`

	ID        uuid.UUID `bun:",pk"`
	AccountID uuid.UUID
	ActorKind ActorKind
	ActorID   *uuid.UUID // nil unless a user
	Action    Action
	SubjectID *uuid.UUID // the key, agent or session
	Label     string     // what the subject was called at the time
	Address   string     // the actor's network address
	At        time.Time

	// FormerLabel is what a key was called before it was renamed; empty for
	// every other action, and where that was not recorded yet.
	FormerLabel string `bun:",nullzero"`

	// ActorName is the user's e-mail, "Operator" or "Visitor".
	ActorName string `bun:",scanonly"`

	// KeyLastFour is the end of the key that is the subject, and
	// ReplacedLastFour that of the key which a generated one takes the place of;
	// empty where there is no such key, or an operator has deleted it.
	KeyLastFour      string `bun:",scanonly"`
	ReplacedLastFour string `bun:",scanonly"`
}

// MaskedKey returns the key that is the subject as lists show it, or nothing
// where it is not known.
func (a Activity) MaskedKey() string { return maskedUnlessUnknown(a.KeyLastFour) }

// MaskedReplaced returns the key that the subject takes the place of as lists
// show it, or nothing where there is none.
func (a Activity) MaskedReplaced() string { return maskedUnlessUnknown(a.ReplacedLastFour) }

func maskedUnlessUnknown(lastFour string) string {
	if lastFour == "" {
		return ""
	}
	return masked(lastFour)
}

// ActivityPage is a part of the record.
type ActivityPage struct {
	Before uuid.UUID // only what is older than this activity; zero: from the newest on
	Limit  int       // how many at the most
	Action Action    // only such; empty: all
}

// Activities returns a page of the account's record, newest first; the error
// may be [ErrUnavailable].
func (s *Store) Activities(ctx context.Context, accountID uuid.UUID, page ActivityPage) ([]Activity, error) {
	activities := []Activity{}
	query := s.db.NewSelect().Model(&activities).ColumnExpr("?TableColumns").
		ColumnExpr("COALESCE(u.email, CASE activity.actor_kind WHEN ? THEN 'Operator' ELSE 'Visitor' END) AS actor_name", ActorOperator).
		ColumnExpr("COALESCE(k.last_four, '') AS key_last_four, COALESCE(replaced.last_four, '') AS replaced_last_four").
		Join("LEFT JOIN users AS u ON u.id = activity.actor_id").
		Join("LEFT JOIN api_keys AS k ON k.id = activity.subject_id AND k.account_id = activity.account_id").
		Join("LEFT JOIN api_keys AS replaced ON replaced.id = k.replaces_id AND replaced.account_id = activity.account_id AND activity.action = ?", ActionKeyGenerated).
		Where("activity.account_id = ?", accountID).
		// Ids are UUIDv7: their order is that of time.
		OrderExpr("activity.id DESC").Limit(int64(page.Limit))
	if page.Before != uuid.Nil {
		query = query.Where("activity.id < ?", page.Before)
	}
	if page.Action != "" {
		query = query.Where("activity.action = ?", page.Action)
	}
	if err := query.Scan(ctx); err != nil {
		return nil, failed("list activity", err)
	}
	return activities, nil
}

func (s *Store) record(ctx context.Context, tx bun.IDB, accountID uuid.UUID, actor Actor, action Action, subjectID uuid.UUID, label string) error {
	return s.recordActivity(ctx, tx, actor, Activity{AccountID: accountID, Action: action, SubjectID: &subjectID, Label: label})
}

// recordActivity adds who and when to the activity.
func (s *Store) recordActivity(ctx context.Context, tx bun.IDB, actor Actor, activity Activity) error {
	activity.ID, activity.At = newID(), s.clock()
	activity.ActorKind, activity.Address = actor.Kind, actor.Address
	if actor.Kind == ActorUser {
		activity.ActorID = &actor.ID
	}
	_, err := tx.NewInsert().Model(&activity).Exec(ctx)
	return err
}
