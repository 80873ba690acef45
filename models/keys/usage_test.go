package keys_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
)

// lastUse returns the stored time of the key's last use, or nil.
func (f *fixture) lastUse(t *testing.T, key keys.Key) *time.Time {
	t.Helper()
	var at []time.Time
	must(t, f.DB.NewRaw("SELECT used_at FROM api_key_last_uses WHERE api_key_id = ? AND used_at IS NOT NULL", key.ID).Scan(t.Context(), &at))
	if len(at) == 0 {
		return nil
	}
	return &at[0]
}

func TestListShowsAUseAtOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		key, secret := f.Key(t, c)
		unused, _ := f.Key(t, c)
		for range 3 {
			f.Clock.Advance(time.Minute)
			modelstest.Use(t, f.Store, secret, 1)
			listed, err := f.Keys.Active(ctx, c.ID)
			if err != nil || len(listed) != 2 {
				t.Fatal(listed, err)
			}
			found := modelstest.Value(f.Keys.Find(ctx, c.ID, key.ID))(t)
			for _, k := range []keys.Key{listed[1], found} {
				if k.ID != key.ID || k.LastUsedAt == nil || !k.LastUsedAt.Equal(f.Clock.Now()) {
					t.Errorf("used at %v: %+v", f.Clock.Now(), k)
				}
			}
			if listed[0].ID != unused.ID || listed[0].LastUsedAt != nil {
				t.Errorf("never used: %+v", listed[0])
			}
		}
		// A refused request does not count as a use.
		at := f.Clock.Now()
		f.Revoke(t, key)
		f.Clock.Advance(time.Minute)
		modelstest.Refuse(t, f.Store, secret, 1)
		if found, err := f.Keys.Find(ctx, c.ID, key.ID); err != nil || found.LastUsedAt == nil || !found.LastUsedAt.Equal(at) {
			t.Errorf("after a refusal: %+v, %v", found, err)
		}
	})
}

func TestUseIsStoredWithinASecond(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, secret := f.Key(t, c)
		reader := f.Open(t, models.Options{})
		best := time.Hour
		// Every round except the first begins right after a flush, so its wait is the
		// longest possible. Other load on the machine can delay many rounds.
		for round := 0; round < 3 || best > time.Second && round < 60; round++ {
			f.Clock.Advance(time.Minute)
			used := time.Now()
			modelstest.Use(t, f.Store, secret, 1)
			eventually(t, "another instance shows the use", func() bool {
				found, err := reader.Keys.Find(t.Context(), c.ID, key.ID)
				return err == nil && found.LastUsedAt != nil && found.LastUsedAt.Equal(f.Clock.Now())
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
		c := f.Customer(t)
		key, secret := f.Key(t, c)
		other, otherSecret := f.Key(t, c)
		hour := func(day, hour int) time.Time { return time.Date(2026, time.March, day, hour, 0, 0, 0, time.UTC) }
		f.Briefly(t, models.Options{}, func(s *models.Store) {
			modelstest.Use(t, s, secret, 3) // 15:09:26 on the 14th
			modelstest.Use(t, s, otherSecret, 1)
			f.Clock.Advance(hour(14, 16).Sub(f.Clock.Now()) - time.Microsecond)
			modelstest.Use(t, s, secret, 2) // 15:59:59.999999
			f.Clock.Advance(time.Microsecond)
			modelstest.Use(t, s, secret, 4) // 16:00:00
			f.Clock.Advance(hour(15, 0).Sub(f.Clock.Now()) - time.Microsecond)
			modelstest.Use(t, s, secret, 1) // 23:59:59.999999
			f.Clock.Advance(time.Microsecond)
			modelstest.Use(t, s, secret, 5) // midnight
			f.Revoke(t, key)
			modelstest.Refuse(t, s, secret, 6)
		})
		// Another instance adds to the same rows.
		f.Briefly(t, models.Options{}, func(s *models.Store) {
			modelstest.Refuse(t, s, secret, 1)
			modelstest.Use(t, s, otherSecret, 1)
		})
		wantHours := []modelstest.Period{{Start: hour(14, 15), Requests: 5, Refusals: 0}, {Start: hour(14, 16), Requests: 4, Refusals: 0}, {Start: hour(14, 23), Requests: 1, Refusals: 0}, {Start: hour(15, 0), Requests: 5, Refusals: 7}}
		if hours := f.Hours(t, key); !slices.Equal(hours, wantHours) {
			t.Errorf("hours %v, want %v", hours, wantHours)
		}
		wantDays := []modelstest.Period{{Start: hour(14, 0), Requests: 10, Refusals: 0}, {Start: hour(15, 0), Requests: 5, Refusals: 7}}
		if days := f.Days(t, key); !slices.Equal(days, wantDays) {
			t.Errorf("days %v, want %v", days, wantDays)
		}
		wantOther := []modelstest.Period{{Start: hour(14, 0), Requests: 1, Refusals: 0}, {Start: hour(15, 0), Requests: 1, Refusals: 0}}
		if days := f.Days(t, other); !slices.Equal(days, wantOther) {
			t.Errorf("the other key's days %v, want %v", days, wantOther)
		}
		if at := f.lastUse(t, key); at == nil || !at.Equal(hour(15, 0)) {
			t.Errorf("last use %v", at)
		}
	})
}

func TestUnknownKeysAreNotCounted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		f.Briefly(t, models.Options{}, func(s *models.Store) {
			for _, key := range []string{modelstest.UnknownKey, modelstest.UnknownKey[:39], ""} {
				if _, err := s.API.Authenticate(t.Context(), key, keys.Source{}); err == nil {
					t.Error("accepted")
				}
			}
		})
		for _, table := range []string{"api_key_last_uses", "api_key_hourly_usage", "api_key_daily_usage"} {
			f.CheckCount(t, 0, "SELECT count(*) FROM "+table)
		}
	})
}

// Because instances' clocks differ, the later time is kept, whichever instance writes last.
func TestLastUsesNeverMoveBack(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		key, secret := f.Key(t, c)
		agent, latest := f.Agent(t, c), f.Clock.Now()
		work := func(s *models.Store) {
			modelstest.Use(t, s, secret, 1)
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
			f.Briefly(t, models.Options{Now: func() time.Time { return at.Add(-time.Microsecond) }}, func(slow *models.Store) {
				f.Briefly(t, models.Options{Now: func() time.Time { return at }}, work)
				work(slow)
				if found, err := slow.Keys.Find(t.Context(), c.ID, key.ID); err != nil || !found.LastUsedAt.Equal(latest) {
					t.Errorf("shown before the write: %+v, %v", found, err)
				}
				modelstest.CheckLastUsed(t, "in memory and stored", slow, agent, latest)
			})
			if used := f.lastUse(t, key); !used.Equal(latest) || !f.StoredUse(t, agent, key).Equal(latest) {
				t.Errorf("stored %v and %v, not %v", used, f.StoredUse(t, agent, key), latest)
			}
		}
	})
}

// Instances that write the usage of the same keys concurrently do not deadlock, and count each
// request once.
func TestInstancesWriteTheSameKeysConcurrently(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		const ofAccount, rounds, instances = 60, 3, 3
		c, logged := f.Customer(t), &modelstest.LogBuffer{}
		var used [ofAccount]atomic.Int64
		var generated [ofAccount]keys.Key
		var secrets [ofAccount]string
		for i := range ofAccount {
			generated[i], secrets[i] = f.Key(t, c)
		}
		var running sync.WaitGroup
		for range rounds {
			var stores [instances]*models.Store
			for i := range stores {
				var err error
				stores[i], err = models.Open(t.Context(), f.URL, models.Options{Now: f.Clock.Now, Logger: logged.Logger()})
				must(t, err)
			}
			for _, store := range stores {
				running.Go(func() {
					for _, i := range rand.Perm(ofAccount) {
						if _, err := store.API.Authenticate(t.Context(), secrets[i], keys.Source{}); err != nil {
							t.Error(err)
							continue
						}
						used[i].Add(1)
					}
				})
			}
			running.Wait()
			f.Clock.Advance(20 * time.Minute)
			_, errs := modelstest.AtOnce(instances, func(i int) error { return stores[i].Close(t.Context()) })
			for _, err := range errs {
				t.Errorf("the last write: %v", err)
			}
		}
		if text := logged.String(); text != "" {
			t.Errorf("logged: %s", text)
		}
		for i, key := range generated {
			want := used[i].Load()
			if hours, days := modelstest.Sum(f.Hours(t, key)), modelstest.Sum(f.Days(t, key)); hours != want || days != want {
				t.Errorf("%s: %d requests, %d by the hour, %d by the day", key.ID, want, hours, days)
			}
		}
	})
}

func TestOldRowsArePurged(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.Customer(t)
		key, _ := f.Key(t, c)
		token := modelstest.Value(f.SignIn.Start(ctx, c.User, people.Client{}))(t).Token
		now := f.Clock.Now()
		for _, age := range []time.Duration{47 * time.Hour, 49 * time.Hour} {
			f.Exec(t, "INSERT INTO api_key_hourly_usage (api_key_id, hour) VALUES (?, ?)", key.ID, now.Add(-age))
		}
		for _, age := range []time.Duration{399 * 24 * time.Hour, 401 * 24 * time.Hour} {
			f.Exec(t, "INSERT INTO api_key_daily_usage (api_key_id, day) VALUES (?, ?)", key.ID, now.Add(-age))
		}
		for _, age := range []time.Duration{89 * 24 * time.Hour, 91 * 24 * time.Hour} {
			f.Exec(t, "INSERT INTO api_key_sources VALUES (?, ?, '192.0.2.7', 'client/1.0', 1, ?, ?)", key.ID, now.Add(-age), now, now)
		}
		for _, age := range []time.Duration{59 * time.Second, 61 * time.Second} {
			f.Exec(t, "INSERT INTO sign_in_failures (id, subject, at) VALUES (?, ?, ?)", newID(), []byte{1}, now.Add(-age))
		}
		for _, left := range []time.Duration{-time.Minute, time.Minute} {
			f.Exec(t, `INSERT INTO sessions (id, user_id, token_hash, created_at, last_seen_at, authenticated_at, expires_at, first_address, last_address, user_agent)
				VALUES (?, ?, ?, ?, ?, ?, ?, '', '', '')`, newID(), c.User.ID, randomHash(), now, now, now, now.Add(left))
		}
		for range 2 {
			must(t, f.Erasures.Purge(ctx))
		}
		for table, want := range map[string]int{
			"api_key_hourly_usage": 1, "api_key_daily_usage": 1, "api_key_sources": 1, "sign_in_failures": 1, "sessions": 2, "api_keys": 1, "activities": 2,
		} {
			f.CheckCount(t, want, "SELECT count(*) FROM "+table)
		}
		checkError(t, "an open session", errOf(f.Sessions.Find(ctx, token, people.Client{})), nil)
	})
}

func randomHash() []byte {
	a, b := uuid.New(), uuid.New()
	return append(a[:], b[:]...)
}

// Another session holds the counts of one key. Pages do not wait for it, and no use is lost.
func TestLockedCountsDelayNoPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t), models.Options{})
	ctx, c := t.Context(), f.Customer(t)
	locked, lockedSecret := f.Key(t, c)
	key, secret := f.Key(t, c)
	modelstest.Use(t, f.Store, lockedSecret, 1)
	eventually(t, "the first use is written", func() bool { return f.lastUse(t, locked) != nil })
	tx := modelstest.Value(f.DB.BeginTx(ctx, nil))(t)
	defer func() { _ = tx.Rollback() }()
	must(t, errOf(tx.ExecContext(ctx, "UPDATE api_key_last_uses SET requests = requests WHERE api_key_id = ?", locked.ID)))
	f.Clock.Advance(time.Second)
	modelstest.Use(t, f.Store, lockedSecret, 1)
	modelstest.Use(t, f.Store, secret, 1)
	waiting := func() (since string) {
		f.Scan(t, "SELECT COALESCE(max(query_start)::text, '') FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'", nil, &since)
		return since
	}
	eventually(t, "a page is read while a flush waits for the lock", func() bool {
		since := waiting()
		ofAccount := modelstest.Value(f.Keys.Active(ctx, c.ID))(t)
		report := modelstest.Value(f.Usage.OfList(ctx, c.ID, keys.Days(1), f.Clock.Now(), 1))(t).Active
		if len(ofAccount) != 2 || !ofAccount[1].LastUsedAt.Equal(f.Clock.Now()) || report[1].Requests[0] != 2 {
			t.Errorf("keys %+v, usage %v", ofAccount, report)
		}
		return since != "" && waiting() == since
	})
	if n := f.Hours(t, locked); len(n) != 1 || n[0].Requests != 1 {
		t.Errorf("the locked row has %v", n)
	}
	must(t, tx.Rollback())
	eventually(t, "all uses are written", func() bool {
		return modelstest.Sum(f.Hours(t, locked)) == 2 && modelstest.Sum(f.Hours(t, key)) == 1
	})
}
