package calls

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/uptrace/bun"

	"portal/models/record"
	"portal/models/value"
)

// RunRegularly runs rounds until ctx ends. Because the next round tries again, it logs only the
// first of several failures in a row.
func (c *Calls) RunRegularly(ctx context.Context) {
	tick := time.Tick(roundTick)
	early, failing := false, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		case <-c.wake:
			early = true
		}
		ran, err := c.RunRound(ctx, early)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.failures.Add(1)
			if !failing {
				c.db.Logger.ErrorContext(ctx, "cannot list or end calls; retrying", slog.Any("error", err))
			}
			failing, early = true, false
		case ran:
			if failing {
				c.db.Logger.InfoContext(ctx, "calls are listed and ended again")
			}
			failing, early = false, false
		}
	}
}

// RunRound runs a round if one is due, or if early, and reports whether it did. While LiveKit lists
// its rooms, which can take long, calls that may not go on are ended.
func (c *Calls) RunRound(ctx context.Context, early bool) (ran bool, err error) {
	started := time.Now()
	round, due, err := c.beginRound(ctx, early)
	if err != nil || !due {
		return false, value.Failed("begin a round of calls", err)
	}
	next := callRound{
		Round: round.Round, CheckedAt: round.Now, Epoch: round.CurrentEpoch, ListedAt: round.ListedAt, WatchUntil: round.WatchUntil,
		DueAt: round.Now.Add(busyInterval - roundEarly), LeaseUntil: round.Now,
	}
	if round.Withdrawn {
		next.WatchUntil = round.Now.Add(watchLife)
	}
	stop := c.keepEnding(ctx, round, started)
	list, listErr := c.mergeList(ctx, round, started)
	more, endErr := stop()
	now := round.Now.Add(time.Since(started))
	if list.begun && endErr == nil {
		more, endErr = c.endOpen(ctx, round, now)
	}
	err = errors.Join(listErr, endErr)
	switch {
	case list.at.IsZero(): // LiveKit is away
	case err != nil || more:
		next.DueAt = now.Add(roundTick)
	case !list.busy && !now.Before(next.WatchUntil):
		next.DueAt = list.at.Add(idleInterval - roundEarly)
	}
	if !list.at.IsZero() {
		next.ListedAt = &list.at
	}
	return true, errors.Join(err, c.endRound(ctx, next))
}

// keepEnding ends the calls that may not go on, again and again, until stop is called. It does not
// wait for LiveKit's list, which grows with the rooms of all accounts. stop returns the result of
// the last time.
func (c *Calls) keepEnding(ctx context.Context, round callRound, started time.Time) (stop func() (more bool, err error)) {
	stopping, stopped := make(chan struct{}), make(chan struct{})
	var more bool
	var err error
	go func() {
		defer close(stopped)
		tick := time.Tick(roundTick)
		for {
			more, err = c.endOpen(ctx, round, round.Now.Add(time.Since(started)))
			select {
			case <-stopping:
				return
			case <-ctx.Done():
				return
			case <-tick:
			}
			err = c.renewLease(ctx, round, round.Now.Add(time.Since(started)))
		}
	}()
	return func() (bool, error) {
		close(stopping)
		<-stopped
		return more, err
	}
}

// renewLease lets a round go on for as long as a new one, unless another instance has begun a later
// one.
func (c *Calls) renewLease(ctx context.Context, round callRound, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, c.db.Timeout)
	defer cancel()
	_, err := c.db.NewUpdate().Model(&round).Set("lease_until = ?", now.Add(roundLease)).Where("round = ?", round.Round).Exec(ctx)
	return value.Failed("renew the lease of a round of calls", err)
}

// beginRound takes the lease if a round is due. One statement says whether it is and, if access has
// changed, another one whether it was withdrawn: a new key, agent or account is no reason.
func (c *Calls) beginRound(ctx context.Context, early bool) (round callRound, due bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.db.Timeout)
	defer cancel()
	expired := c.db.NewSelect().Table("api_keys").ColumnExpr("1").
		Where("revoked_at IS NULL AND expires_at IS NOT NULL AND expires_at > r.checked_at AND expires_at <= ?", c.db.ClockExpr())
	query := c.db.NewSelect().Model(&round).ColumnExpr("?TableColumns").
		ColumnExpr("? AS now, e.value AS current_epoch, EXISTS (?) AS withdrawn", c.db.ClockExpr(), expired).
		ColumnExpr("EXISTS (?) AS open", c.db.NewSelect().Table("calls").ColumnExpr("1").Where("NOT final")).
		Join("CROSS JOIN auth_epoch AS e")
	if err := c.db.OnPrimary(query).Scan(ctx); err != nil {
		return round, false, value.NoRows(err, nil) // a standby
	}
	if !round.Withdrawn && !bytes.Equal(round.Epoch, round.CurrentEpoch) {
		var err error
		round.Withdrawn, err = c.db.NewSelect().Model((*record.Activity)(nil)).
			Where("activity.id > ? AND activity.action IN (?)", value.LowestID(round.CheckedAt.Add(-activityDelay)), bun.List(record.EndingActions)).Exists(ctx)
		if err != nil {
			return round, false, err
		}
	}
	if begun := round.LeaseUntil.Add(busyInterval - roundEarly); round.Open && begun.Before(round.DueAt) {
		round.DueAt = begun // an event has begun a call since the last round
	}
	due = early || round.Withdrawn || !round.Now.Before(round.DueAt)
	leased := round.Now.Before(round.LeaseUntil) && round.LeaseUntil.Sub(round.Now) <= roundLease
	justListed := round.ListedAt != nil && round.Now.Sub(*round.ListedAt) < minInterval && !round.Now.Before(*round.ListedAt)
	if !due || leased || justListed {
		return round, false, nil
	}
	taken, err := value.Affected(c.db.NewUpdate().Model(&round).Set("round = round + 1, lease_until = ?", round.Now.Add(roundLease)).
		Where("round = ?", round.Round).Exec(ctx))
	round.Round++
	return round, taken > 0, err
}

// endRound writes the result of a round, unless another instance has begun a later one.
func (c *Calls) endRound(ctx context.Context, next callRound) error {
	// The calls have ended, even if the portal is stopping.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.db.Timeout)
	defer cancel()
	_, err := c.db.NewUpdate().Model(&next).Column("lease_until", "due_at", "listed_at", "checked_at", "epoch", "watch_until").
		Where("round = ?", next.Round).Exec(ctx)
	return value.Failed("end a round of calls", err)
}
