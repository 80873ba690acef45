package models

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// repeatPeriod is how long one activity counts the wrong passwords for a user. Otherwise an
// attacker could fill the activity log.
const repeatPeriod = 10 * time.Minute

// activityRepeat counts the wrong passwords that one activity records.
type activityRepeat struct {
	bun.BaseModel `bun:"table:activity_repeats,alias:repeated"`

	UserID     uuid.UUID `bun:",pk"`
	Action     Action    `bun:",pk"`
	Period     time.Time `bun:",pk"` // start of the period
	ActivityID uuid.UUID
	Address    string // of the first one
	Repeats    int64  // after the first one
	Elsewhere  bool   // one of them came from another address
}

// recordRefusal records a wrong password in the account's activity log. It does so in the
// background, because the response would otherwise take longer for a known email.
func (g *guesses) recordRefusal(user User, actor Actor, action Action) {
	g.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), g.db.timeout)
		defer cancel()
		if err := g.recordRepeatable(ctx, user, actor, action); err != nil {
			g.db.logger.Error("cannot record a wrong password", slog.Any("error", err))
		}
	})
}

// recordRepeatable records an activity about a user. A repeat in the same period is only counted.
func (g *guesses) recordRepeatable(ctx context.Context, user User, actor Actor, action Action) error {
	repeat := activityRepeat{
		UserID: user.ID, Action: action, Period: g.db.Now().Truncate(repeatPeriod),
		ActivityID: newID(), Address: actor.Address,
	}
	return g.db.InTx(ctx, "record a wrong password or code", func(ctx context.Context, tx Tx) error {
		var recorded uuid.UUID
		err := tx.NewInsert().Model(&repeat).On("CONFLICT (user_id, action, period) DO UPDATE").
			Set("repeats = repeated.repeats + 1").
			Set("elsewhere = repeated.elsewhere OR repeated.address <> EXCLUDED.address").
			Returning("activity_id").Scan(ctx, &recorded)
		if err != nil || recorded != repeat.ActivityID {
			return err
		}
		return tx.RecordActivity(ctx, actor, Activity{
			ID: recorded, AccountID: user.AccountID, Action: action, SubjectID: &user.ID, Label: user.Email,
		})
	})
}
