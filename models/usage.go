package models

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// How long counts of requests are kept.
const (
	hourlyUsageKept = 48 * time.Hour
	dailyUsageKept  = 400 * 24 * time.Hour
)

// usageRecorder counts requests in memory, so that a request costs no write.
// What it holds is bounded by the number of keys that exist and the hours since
// the database last took it.
type usageRecorder struct {
	// moving is held while counts move from memory to the database, and for
	// reading by who adds the two up: they would be in both, or in neither.
	moving sync.RWMutex

	mu sync.Mutex
	// pending is what no flush has taken yet; writing is what a flush is
	// writing now, which lists show all the same. written is what the flush
	// before wrote: a list that read the database just before it did, and
	// looks here just after, must not miss it.
	pending, writing, written map[uuid.UUID]*keyUsage
}

type keyUsage struct {
	last  time.Time // of the latest accepted request; zero if there was none
	hours map[time.Time]requestCounts
}

type requestCounts struct{ requests, refusals int64 }

func newUsageRecorder() *usageRecorder {
	return &usageRecorder{pending: map[uuid.UUID]*keyUsage{}}
}

func (r *usageRecorder) accepted(keyID uuid.UUID, at time.Time) {
	r.count(keyID, at, at, requestCounts{requests: 1})
}

func (r *usageRecorder) refused(keyID uuid.UUID, at time.Time) {
	r.count(keyID, at, time.Time{}, requestCounts{refusals: 1})
}

func (r *usageRecorder) count(keyID uuid.UUID, at, last time.Time, n requestCounts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usageOf(keyID).add(at.Truncate(time.Hour), last, n)
}

func (r *usageRecorder) usageOf(keyID uuid.UUID) *keyUsage {
	usage := r.pending[keyID]
	if usage == nil {
		usage = &keyUsage{hours: map[time.Time]requestCounts{}}
		r.pending[keyID] = usage
	}
	return usage
}

func (u *keyUsage) add(hour, last time.Time, n requestCounts) {
	if last.After(u.last) {
		u.last = last
	}
	sum := u.hours[hour]
	sum.requests += n.requests
	sum.refusals += n.refusals
	u.hours[hour] = sum
}

// latest returns the later of what is stored and what is in memory.
func (r *usageRecorder) latest(keyID uuid.UUID, stored *time.Time) *time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, usages := range []map[uuid.UUID]*keyUsage{r.written, r.writing, r.pending} {
		if usage := usages[keyID]; usage != nil && !usage.last.IsZero() && (stored == nil || usage.last.After(*stored)) {
			last := usage.last
			stored = &last
		}
	}
	return stored
}

// each calls report with what is in memory of a key, hour by hour. The caller
// holds moving.
func (r *usageRecorder) each(keyID uuid.UUID, report func(hour time.Time, n requestCounts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, usages := range []map[uuid.UUID]*keyUsage{r.writing, r.pending} {
		if usage := usages[keyID]; usage != nil {
			for hour, n := range usage.hours {
				report(hour, n)
			}
		}
	}
}

// flush hands what has gathered to write, and keeps it if that fails. One flush
// runs at a time.
func (r *usageRecorder) flush(write func(map[uuid.UUID]*keyUsage) error) error {
	r.moving.Lock()
	defer r.moving.Unlock()
	r.mu.Lock()
	if len(r.pending) == 0 {
		r.mu.Unlock()
		return nil
	}
	r.writing, r.pending = r.pending, map[uuid.UUID]*keyUsage{}
	r.mu.Unlock()

	// Only this goroutine's flush changes writing, and nobody its contents.
	err := write(r.writing)

	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.written = r.writing
	} else {
		for keyID, usage := range r.writing {
			for hour, n := range usage.hours {
				r.usageOf(keyID).add(hour, usage.last, n)
			}
		}
	}
	r.writing = nil
	return err
}

type lastUse struct {
	bun.BaseModel `bun:"table:api_key_last_uses"`

	APIKeyID uuid.UUID
	UsedAt   time.Time
}

type hourlyUsage struct {
	bun.BaseModel `bun:"table:api_key_hourly_usage"`

	APIKeyID           uuid.UUID
	Hour               time.Time
	Requests, Refusals int64
}

type dailyUsage struct {
	bun.BaseModel `bun:"table:api_key_daily_usage"`

	APIKeyID           uuid.UUID
	Day                time.Time
	Requests, Refusals int64
}

// writeUsage adds usage to the database in one transaction. Rows are taken
// table by table and in the order of their keys, by every instance alike, so
// that two instances which flush the same keys wait for each other and never
// deadlock.
func (s *Store) writeUsage(ctx context.Context, usages map[uuid.UUID]*keyUsage) error {
	var lasts []lastUse
	var hours []hourlyUsage
	var days []dailyUsage
	keyIDs := slices.SortedFunc(maps.Keys(usages), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	for _, keyID := range keyIDs {
		usage := usages[keyID]
		if !usage.last.IsZero() {
			lasts = append(lasts, lastUse{APIKeyID: keyID, UsedAt: usage.last})
		}
		for _, hour := range slices.SortedFunc(maps.Keys(usage.hours), time.Time.Compare) {
			n := usage.hours[hour]
			hours = append(hours, hourlyUsage{APIKeyID: keyID, Hour: hour, Requests: n.requests, Refusals: n.refusals})
			// One row a day, however many hours fall into it: a statement
			// cannot update the same row twice.
			day := hour.Truncate(24 * time.Hour)
			if end := len(days) - 1; end >= 0 && days[end].APIKeyID == keyID && days[end].Day.Equal(day) {
				days[end].Requests += n.requests
				days[end].Refusals += n.refusals
			} else {
				days = append(days, dailyUsage{APIKeyID: keyID, Day: day, Requests: n.requests, Refusals: n.refusals})
			}
		}
	}
	return s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		err := inChunks(lasts, func(rows []lastUse) error {
			_, err := tx.NewInsert().Model(&rows).On("CONFLICT (api_key_id) DO UPDATE").
				Set("used_at = excluded.used_at").
				Where("last_use.used_at < excluded.used_at").Exec(ctx)
			return err
		})
		if err != nil {
			return err
		}
		err = inChunks(hours, func(rows []hourlyUsage) error { return addCounts(ctx, tx, &rows, "hour") })
		if err != nil {
			return err
		}
		return inChunks(days, func(rows []dailyUsage) error { return addCounts(ctx, tx, &rows, "day") })
	})
}

func addCounts(ctx context.Context, tx bun.Tx, rows any, period string) error {
	_, err := tx.NewInsert().Model(rows).On("CONFLICT (api_key_id, ?) DO UPDATE", bun.Ident(period)).
		Set("requests = ?TableAlias.requests + excluded.requests").
		Set("refusals = ?TableAlias.refusals + excluded.refusals").Exec(ctx)
	return err
}

// inChunks keeps a statement to a size that every database takes.
func inChunks[T any](rows []T, write func([]T) error) error {
	for chunk := range slices.Chunk(rows, 1000) {
		if err := write(chunk); err != nil {
			return err
		}
	}
	return nil
}
