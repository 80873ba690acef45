package models

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/widget"
)

const (
	// HangUpLife is how long the portal ends the calls of a key, agent or account. After that,
	// no token can open another call, even if the clocks of the portal and of LiveKit differ.
	HangUpLife = widget.MaxTTL + 2*time.Minute
	// hangUpKept is how much longer the portal tries to reach LiveKit, because calls outlive
	// their tokens.
	hangUpKept = 24 * time.Hour
	// hangUpInterval is the time between two searches for the same calls. A client with a valid
	// token can join its room again.
	hangUpInterval = 2 * time.Second
	// hangUpLease is how long claimed work belongs to one instance. It is longer than a search,
	// so that two instances do not count the same calls. It also limits how long an instance
	// that has stopped delays the work.
	hangUpLease = 10 * time.Second
	// maxHangUps limits how many entries an instance works on at once.
	maxHangUps = 1000
)

// hangUp is the work to end the calls that were opened with the tokens of a key, an agent or an
// account.
type hangUp struct {
	bun.BaseModel `bun:"table:hang_ups"`

	ActivityID uuid.UUID `bun:",pk"` // of the revocation, removal or disabling
	SubjectID  uuid.UUID
	DueAt      time.Time
	ExpiresAt  time.Time
	Ended      int64      // calls that are in no activity yet
	RecordedAt *time.Time // the last activity about ended calls
}

// Enabled reports whether the store ends calls.
func (c *Calls) Enabled() bool { return c.liveKit != nil }

// EndingFor returns the time since the oldest revocation whose calls are still being ended, or 0 if
// there is none. The error may be [ErrUnavailable].
func (c *Calls) EndingFor(ctx context.Context) (time.Duration, error) {
	var oldest hangUp
	err := c.db.NewSelect().Model(&oldest).Column("expires_at").OrderExpr("expires_at").Limit(1).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return c.db.Now().Sub(oldest.ExpiresAt.Add(-HangUpLife)), failed("find the oldest hang-up", err)
}

// allowCalls cancels the end of calls of an agent or account that exists or is enabled again.
func allowCalls(ctx context.Context, tx Tx, subjectID uuid.UUID) error {
	return tx.Delete(ctx, (*hangUp)(nil), "subject_id = ?", subjectID)
}

// claim returns the work that is due. No other instance gets it before it is released or
// [hangUpLease] has passed.
func (c *Calls) claim(ctx context.Context) ([]hangUp, error) {
	now := c.db.Now()
	due := c.db.NewSelect().Model((*hangUp)(nil)).Column("activity_id").
		Where("due_at <= ?", now).OrderExpr("due_at").Limit(maxHangUps)
	// Without work, SQLite is not locked for writing.
	if found, err := due.Exists(ctx); err != nil || !found {
		return nil, err
	}
	due = c.db.locked(due, "UPDATE SKIP LOCKED")
	var claimed []hangUp
	err := c.db.NewUpdate().Model(&claimed).Set("due_at = ?", now.Add(hangUpLease)).Where("activity_id IN (?)", due).
		Returning("activity_id, subject_id, due_at, expires_at, ended, recorded_at").Scan(ctx)
	return claimed, err
}

// release makes claimed work due again. It deletes the work that had expired before the
// search, unless the search failed.
func (c *Calls) release(ctx context.Context, claimed []hangUp, searchFailed bool) error {
	var again, done []uuid.UUID
	for _, work := range claimed {
		if work.hadExpired() && !searchFailed {
			done = append(done, work.ActivityID)
		} else {
			again = append(again, work.ActivityID)
		}
	}
	if len(done) > 0 {
		_, err := c.db.NewDelete().Model((*hangUp)(nil)).Where("activity_id IN (?)", bun.List(done)).Exec(ctx)
		if err != nil {
			return err
		}
	}
	if len(again) == 0 {
		return nil
	}
	lease := claimed[0].DueAt
	_, err := c.db.NewUpdate().Model((*hangUp)(nil)).Set("due_at = ?", lease.Add(hangUpInterval-hangUpLease)).
		Where("activity_id IN (?)", bun.List(again)).Where("due_at = ?", lease).Exec(ctx)
	return err
}

// hadExpired reports whether no token was valid any more when the work was claimed.
func (h hangUp) hadExpired() bool { return !h.ExpiresAt.After(h.DueAt.Add(-hangUpLease)) }
