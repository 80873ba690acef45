package models_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/value"
)

// period is one row of usage: the requests with a key in an hour or on a day.
type period struct {
	Start              time.Time
	Requests, Refusals int64
}

func (f *fixture) hours(t *testing.T, key models.Key) []period {
	t.Helper()
	return f.periods(t, `SELECT hour AS start, requests, refusals FROM api_key_hourly_usage WHERE api_key_id = ?
		UNION ALL SELECT hour, requests, refusals FROM api_key_last_uses WHERE api_key_id = ? AND hour IS NOT NULL ORDER BY start`, key)
}

func (f *fixture) days(t *testing.T, key models.Key) []period {
	t.Helper()
	days := f.periods(t, `SELECT day AS start, requests, refusals FROM api_key_daily_usage WHERE api_key_id = ?
		UNION ALL SELECT hour, requests, refusals FROM api_key_last_uses WHERE api_key_id = ? AND hour IS NOT NULL ORDER BY start`, key)
	var sums []period
	for _, one := range days {
		one.Start = one.Start.Truncate(value.Day)
		if last := len(sums) - 1; last >= 0 && sums[last].Start.Equal(one.Start) {
			sums[last].Requests += one.Requests
			sums[last].Refusals += one.Refusals
		} else {
			sums = append(sums, one)
		}
	}
	return sums
}

func (f *fixture) periods(t *testing.T, query string, key models.Key) (periods []period) {
	t.Helper()
	must(t, f.db.NewRaw(query, key.ID, key.ID).Scan(t.Context(), &periods))
	for i := range periods {
		periods[i].Start = periods[i].Start.UTC()
	}
	return periods
}

// lastUse returns the stored time of the key's last use, or nil.
func (f *fixture) lastUse(t *testing.T, key models.Key) *time.Time {
	t.Helper()
	var at []time.Time
	must(t, f.db.NewRaw("SELECT used_at FROM api_key_last_uses WHERE api_key_id = ? AND used_at IS NOT NULL", key.ID).Scan(t.Context(), &at))
	if len(at) == 0 {
		return nil
	}
	return &at[0]
}

func use(t *testing.T, s *models.Store, secret string, times int) {
	t.Helper()
	for range times {
		must(t, errOf(s.API.Authenticate(t.Context(), secret, models.Source{})))
	}
}

func refuse(t *testing.T, s *models.Store, secret string, times int) {
	t.Helper()
	for range times {
		checkError(t, "a revoked key", errOf(s.API.Authenticate(t.Context(), secret, models.Source{})), value.ErrKeyRevoked)
	}
}

func TestListShowsAUseAtOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		key, secret := f.key(t, c)
		unused, _ := f.key(t, c)
		for range 3 {
			f.clock.Advance(time.Minute)
			use(t, f.Store, secret, 1)
			listed, err := f.Keys.Active(ctx, c.ID)
			if err != nil || len(listed) != 2 {
				t.Fatal(listed, err)
			}
			found := modelstest.Value(f.Keys.Find(ctx, c.ID, key.ID))(t)
			for _, k := range []models.Key{listed[1], found} {
				if k.ID != key.ID || k.LastUsedAt == nil || !k.LastUsedAt.Equal(f.clock.Now()) {
					t.Errorf("used at %v: %+v", f.clock.Now(), k)
				}
			}
			if listed[0].ID != unused.ID || listed[0].LastUsedAt != nil {
				t.Errorf("never used: %+v", listed[0])
			}
		}
		// A refused request does not count as a use.
		at := f.clock.Now()
		f.revoke(t, key)
		f.clock.Advance(time.Minute)
		refuse(t, f.Store, secret, 1)
		if found, err := f.Keys.Find(ctx, c.ID, key.ID); err != nil || found.LastUsedAt == nil || !found.LastUsedAt.Equal(at) {
			t.Errorf("after a refusal: %+v, %v", found, err)
		}
	})
}

func TestUseIsStoredWithinASecond(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		key, secret := f.key(t, c)
		reader := f.open(t, models.Options{})
		best := time.Hour
		// Every round except the first begins right after a flush, so its wait is the
		// longest possible. Other load on the machine can delay many rounds.
		for round := 0; round < 3 || best > time.Second && round < 60; round++ {
			f.clock.Advance(time.Minute)
			used := time.Now()
			use(t, f.Store, secret, 1)
			eventually(t, "another instance shows the use", func() bool {
				found, err := reader.Keys.Find(t.Context(), c.ID, key.ID)
				return err == nil && found.LastUsedAt != nil && found.LastUsedAt.Equal(f.clock.Now())
			})
			if round > 0 {
				best = min(best, time.Since(used))
			}
		}
		if best > time.Second {
			t.Errorf("the fastest write took %s", best)
		}
	})
}

func TestUsageIsCountedByHourAndDay(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		key, secret := f.key(t, c)
		other, otherSecret := f.key(t, c)
		hour := func(day, hour int) time.Time { return time.Date(2026, time.March, day, hour, 0, 0, 0, time.UTC) }
		f.briefly(t, models.Options{}, func(s *models.Store) {
			use(t, s, secret, 3) // 15:09:26 on the 14th
			use(t, s, otherSecret, 1)
			f.clock.Advance(hour(14, 16).Sub(f.clock.Now()) - time.Microsecond)
			use(t, s, secret, 2) // 15:59:59.999999
			f.clock.Advance(time.Microsecond)
			use(t, s, secret, 4) // 16:00:00
			f.clock.Advance(hour(15, 0).Sub(f.clock.Now()) - time.Microsecond)
			use(t, s, secret, 1) // 23:59:59.999999
			f.clock.Advance(time.Microsecond)
			use(t, s, secret, 5) // midnight
			f.revoke(t, key)
			refuse(t, s, secret, 6)
		})
		// Another instance adds to the same rows.
		f.briefly(t, models.Options{}, func(s *models.Store) {
			refuse(t, s, secret, 1)
			use(t, s, otherSecret, 1)
		})
		wantHours := []period{{hour(14, 15), 5, 0}, {hour(14, 16), 4, 0}, {hour(14, 23), 1, 0}, {hour(15, 0), 5, 7}}
		if hours := f.hours(t, key); !slices.Equal(hours, wantHours) {
			t.Errorf("hours %v, want %v", hours, wantHours)
		}
		wantDays := []period{{hour(14, 0), 10, 0}, {hour(15, 0), 5, 7}}
		if days := f.days(t, key); !slices.Equal(days, wantDays) {
			t.Errorf("days %v, want %v", days, wantDays)
		}
		wantOther := []period{{hour(14, 0), 1, 0}, {hour(15, 0), 1, 0}}
		if days := f.days(t, other); !slices.Equal(days, wantOther) {
			t.Errorf("the other key's days %v, want %v", days, wantOther)
		}
		if at := f.lastUse(t, key); at == nil || !at.Equal(hour(15, 0)) {
			t.Errorf("last use %v", at)
		}
	})
}

func TestUnknownKeysAreNotCounted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.briefly(t, models.Options{}, func(s *models.Store) {
			for _, key := range []string{unknownKey, unknownKey[:39], ""} {
				if _, err := s.API.Authenticate(t.Context(), key, models.Source{}); err == nil {
					t.Error("accepted")
				}
			}
		})
		for _, table := range []string{"api_key_last_uses", "api_key_hourly_usage", "api_key_daily_usage"} {
			f.checkCount(t, 0, "SELECT count(*) FROM "+table)
		}
	})
}

// Because instances' clocks differ, the later time is kept, whichever instance writes last.
func TestLastUsesNeverMoveBack(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		key, secret := f.key(t, c)
		agent, latest := f.agent(t, c), f.clock.Now()
		work := func(s *models.Store) {
			use(t, s, secret, 1)
			s.Agents.Used(c.ID, agent.ID, key.ID)
		}
		// SQLite compares fractions of a second as text.
		for _, step := range []time.Duration{
			// A whole second.
			90 * time.Second, time.Hour - time.Duration(latest.Nanosecond()),
			100 * time.Millisecond, 20 * time.Millisecond, time.Microsecond, 2 * time.Second,
		} {
			latest = latest.Add(step)
			at := latest
			f.briefly(t, models.Options{Now: func() time.Time { return at.Add(-time.Microsecond) }}, func(slow *models.Store) {
				f.briefly(t, models.Options{Now: func() time.Time { return at }}, work)
				work(slow)
				if found, err := slow.Keys.Find(t.Context(), c.ID, key.ID); err != nil || !found.LastUsedAt.Equal(latest) {
					t.Errorf("shown before the write: %+v, %v", found, err)
				}
				checkLastUsed(t, "in memory and stored", slow, agent, latest)
			})
			if used := f.lastUse(t, key); !used.Equal(latest) || !f.storedUse(t, agent, key).Equal(latest) {
				t.Errorf("stored %v and %v, not %v", used, f.storedUse(t, agent, key), latest)
			}
		}
	})
}

// Instances that write the usage of the same keys concurrently do not deadlock, and count each
// request once.
func TestInstancesWriteTheSameKeysConcurrently(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		const keys, rounds, instances = 60, 6, 3
		c, logged := f.customer(t), &modelstest.LogBuffer{}
		var used [keys]atomic.Int64
		var generated [keys]models.Key
		var secrets [keys]string
		for i := range keys {
			generated[i], secrets[i] = f.key(t, c)
		}
		var running sync.WaitGroup
		for range rounds {
			var stores [instances]*models.Store
			for i := range stores {
				var err error
				stores[i], err = models.Open(t.Context(), f.url, models.Options{Now: f.clock.Now, Logger: logged.Logger()})
				must(t, err)
			}
			for _, store := range stores {
				running.Go(func() {
					for _, i := range rand.Perm(keys) {
						if _, err := store.API.Authenticate(t.Context(), secrets[i], models.Source{}); err != nil {
							t.Error(err)
							continue
						}
						used[i].Add(1)
					}
				})
			}
			running.Wait()
			f.clock.Advance(20 * time.Minute)
			_, errs := atOnce(instances, func(i int) error { return stores[i].Close(t.Context()) })
			for _, err := range errs {
				t.Errorf("the last write: %v", err)
			}
		}
		if text := logged.String(); text != "" {
			t.Errorf("logged: %s", text)
		}
		for i, key := range generated {
			want := used[i].Load()
			if hours, days := sum(f.hours(t, key)), sum(f.days(t, key)); hours != want || days != want {
				t.Errorf("%s: %d requests, %d by the hour, %d by the day", key.ID, want, hours, days)
			}
		}
	})
}

func sum(periods []period) (requests int64) {
	for _, p := range periods {
		requests += p.Requests
	}
	return requests
}

func (f *fixture) refusals(t *testing.T, key models.Key) (refusals int64) {
	t.Helper()
	for _, day := range f.days(t, key) {
		refusals += day.Refusals
	}
	return refusals
}

func TestOldRowsArePurged(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		key, _ := f.key(t, c)
		token := modelstest.Value(f.SignIn.Start(ctx, c.user, people.Client{}))(t).Token
		now := f.clock.Now()
		for _, age := range []time.Duration{47 * time.Hour, 49 * time.Hour} {
			f.exec(t, "INSERT INTO api_key_hourly_usage (api_key_id, hour) VALUES (?, ?)", key.ID, now.Add(-age))
		}
		for _, age := range []time.Duration{399 * 24 * time.Hour, 401 * 24 * time.Hour} {
			f.exec(t, "INSERT INTO api_key_daily_usage (api_key_id, day) VALUES (?, ?)", key.ID, now.Add(-age))
		}
		for _, age := range []time.Duration{89 * 24 * time.Hour, 91 * 24 * time.Hour} {
			f.exec(t, "INSERT INTO api_key_sources VALUES (?, ?, '192.0.2.7', 'client/1.0', 1, ?, ?)", key.ID, now.Add(-age), now, now)
		}
		for _, age := range []time.Duration{59 * time.Second, 61 * time.Second} {
			f.exec(t, "INSERT INTO sign_in_failures (id, subject, at) VALUES (?, ?, ?)", newID(), []byte{1}, now.Add(-age))
		}
		for _, left := range []time.Duration{-time.Minute, time.Minute} {
			f.exec(t, `INSERT INTO sessions (id, user_id, token_hash, created_at, last_seen_at, authenticated_at, expires_at, first_address, last_address, user_agent)
				VALUES (?, ?, ?, ?, ?, ?, ?, '', '', '')`, newID(), c.user.ID, randomHash(), now, now, now, now.Add(left))
		}
		for range 2 {
			must(t, f.Erasures.Purge(ctx))
		}
		for table, want := range map[string]int{
			"api_key_hourly_usage": 1, "api_key_daily_usage": 1, "api_key_sources": 1, "sign_in_failures": 1, "sessions": 2, "api_keys": 1, "activities": 2,
		} {
			f.checkCount(t, want, "SELECT count(*) FROM "+table)
		}
		checkError(t, "an open session", errOf(f.Sessions.Find(ctx, token, people.Client{})), nil)
	})
}

func randomHash() []byte {
	a, b := uuid.New(), uuid.New()
	return append(a[:], b[:]...)
}

// The first purge is soon after the start, and it deletes everything that a week away has left.
func TestPurgeCatchesUpAfterTheStart(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		old := f.clock.Now().Add(-9 * value.Day)
		rows := make([]struct {
			bun.BaseModel `bun:"table:api_key_hourly_usage"`

			APIKeyID uuid.UUID
			Hour     time.Time
		}, 2500)
		for i := range rows {
			rows[i].APIKeyID, rows[i].Hour = newID(), old
		}
		must(t, errOf(f.db.NewInsert().Model(&rows).Exec(t.Context())))
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { f.PurgeRegularly(ctx, time.Millisecond) })
		eventually(t, "the old rows are deleted", func() bool { return f.count(t, "SELECT count(*) FROM api_key_hourly_usage") == 0 })
		stop()
		running.Wait()
	})
}

// Another session holds the counts of one key. Pages do not wait for it, and no use is lost.
func TestLockedCountsDelayNoPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{})
	ctx, c := t.Context(), f.customer(t)
	locked, lockedSecret := f.key(t, c)
	key, secret := f.key(t, c)
	use(t, f.Store, lockedSecret, 1)
	eventually(t, "the first use is written", func() bool { return f.lastUse(t, locked) != nil })
	tx := modelstest.Value(f.db.BeginTx(ctx, nil))(t)
	defer func() { _ = tx.Rollback() }()
	must(t, errOf(tx.ExecContext(ctx, "UPDATE api_key_last_uses SET requests = requests WHERE api_key_id = ?", locked.ID)))
	f.clock.Advance(time.Second)
	use(t, f.Store, lockedSecret, 1)
	use(t, f.Store, secret, 1)
	waiting := func() (since string) {
		f.scan(t, "SELECT COALESCE(max(query_start)::text, '') FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'", nil, &since)
		return since
	}
	eventually(t, "a page is read while a flush waits for the lock", func() bool {
		since := waiting()
		keys := modelstest.Value(f.Keys.Active(ctx, c.ID))(t)
		report := modelstest.Value(f.Keys.ActiveUsage(ctx, c.ID, models.Days(1)))(t)
		if len(keys) != 2 || !keys[1].LastUsedAt.Equal(f.clock.Now()) || report[1].Requests[0] != 2 {
			t.Errorf("keys %+v, usage %v", keys, report)
		}
		return since != "" && waiting() == since
	})
	if n := f.hours(t, locked); len(n) != 1 || n[0].Requests != 1 {
		t.Errorf("the locked row has %v", n)
	}
	must(t, tx.Rollback())
	eventually(t, "all uses are written", func() bool {
		return sum(f.hours(t, locked)) == 2 && sum(f.hours(t, key)) == 1
	})
}
