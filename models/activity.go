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

	// ActorName is the user's e-mail, "Operator" or "Visitor".
	ActorName string `bun:",scanonly"`
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
	query := s.db.NewSelect().Model(&activities).ColumnExpr("activity.*").
		ColumnExpr("COALESCE(u.email, CASE activity.actor_kind WHEN ? THEN 'Operator' ELSE 'Visitor' END) AS actor_name", ActorOperator).
		Join("LEFT JOIN users AS u ON u.id = activity.actor_id").
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
	activity := Activity{
		ID: newID(), AccountID: accountID, ActorKind: actor.Kind, Action: action,
		SubjectID: &subjectID, Label: label, Address: actor.Address, At: s.clock(),
	}
	if actor.Kind == ActorUser {
		activity.ActorID = &actor.ID
	}
	_, err := tx.NewInsert().Model(&activity).Exec(ctx)
	return err
}
