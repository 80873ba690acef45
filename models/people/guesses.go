package people

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"portal/models/internal/db"
	"portal/models/internal/throttle"
	"portal/models/record"
	"portal/models/value"
)

// guesses limits and records wrong passwords, codes and invitations.
type guesses struct {
	*throttle.Limiter
	db         *db.DB
	refused    refusals
	background *sync.WaitGroup
}

// record records a wrong password or code in the account's activity log. Because the response would
// otherwise take longer for a known email, record works in the background. It records nothing about
// a user who was removed meanwhile, whose data may have been erased.
func (g *guesses) record(user User, actor record.Actor, action record.Action) {
	g.background.Go(func() {
		err := g.db.InTx(context.Background(), "record a wrong password or code", func(ctx context.Context, tx db.Tx) error {
			if err := tx.LockAccountsTable(ctx, user.AccountID); err != nil {
				return err
			}
			if err := lockUser(ctx, tx, user.AccountID, user.ID); err != nil {
				return value.Except(err, value.ErrWrongCredentials)
			}
			return record.Add(ctx, tx, actor, user.activity(action))
		})
		if err != nil {
			g.db.Logger.Error("background write failed", slog.Any("error", err))
		}
	})
}

// refusals are the counters of [Services.Refused].
type refusals struct{ wrong, limited, disabled atomic.Uint64 }

// count counts the outcome of a sign-in.
func (c *refusals) count(err error) {
	_, limited := errors.AsType[*value.SignInLimitError](err)
	switch {
	case limited:
		c.limited.Add(1)
	case errors.Is(err, value.ErrWrongCredentials), errors.Is(err, value.ErrWrongCode):
		c.wrong.Add(1)
	case errors.Is(err, value.ErrSignInDisabled):
		c.disabled.Add(1)
	}
}
