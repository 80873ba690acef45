package usage_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/usage"
)

// counting counts what is written.
type counting struct {
	usage.Writer

	entries, sources int
}

func (c *counting) Write(ctx context.Context, hour time.Time, entries []usage.Entry, sources []usage.SourceEntry) error {
	c.entries, c.sources = c.entries+len(entries), c.sources+len(sources)
	return c.Writer.Write(ctx, hour, entries, sources)
}

// reported returns the requests of a key by source and day, stored or not.
func (d database) reported(t testing.TB, r *usage.Recorder, key uuid.UUID) (all map[string]int64) {
	t.Helper()
	must(t, r.Read(t.Context(), func(since usage.Mark) (certain bool, err error) {
		var rows []struct {
			Day, LastSeen   time.Time
			Address, Client string
			Requests        int64
		}
		err = d.NewRaw("SELECT day, last_seen, address, client, requests FROM api_key_sources WHERE api_key_id = ?", key).Scan(t.Context(), &rows)
		var last *time.Time
		all = map[string]int64{}
		for _, row := range rows {
			all[row.Day.UTC().Format(time.DateOnly)+" "+row.Address+" "+row.Client] += row.Requests
			if last == nil || row.LastSeen.After(*last) {
				last = &row.LastSeen
			}
		}
		return r.UnwrittenSources(key, last, since, func(one usage.SourceEntry) {
			all[one.Day().Format(time.DateOnly)+" "+one.Address()+" "+one.Client()] += one.Requests
		}), err
	}))
	return all
}

// After the sources of a key were written, those that come wait until the rest is over or the
// recorder is closed, while the counts are written.
func TestSourcesRestAfterAWrite(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		w := &counting{Writer: db.writer(t)}
		r, keys := usage.New(w, false, time.Hour), db.newKeys(t, 3)
		want := map[string]int64{}
		for i := range 10 {
			at := noon.Add(time.Duration(i) * time.Minute)
			if i > 5 {
				at = at.Add(24 * time.Hour)
			}
			for _, key := range keys {
				r.Count(account, key, backend, at, 2, 0)
				r.Count(account, key, usage.NewSource(netip.MustParseAddr("192.0.2.9"), fmt.Sprint("other/", i)), at.Add(time.Second), 1, 0)
			}
			want[at.Format(time.DateOnly)+" 192.0.2.7 backend/1.0"] += 2
			want[at.Format(time.DateOnly)+fmt.Sprint(" 192.0.2.9 other/", i)]++
			must(t, r.Flush(t.Context()))
			if got := db.reported(t, r, keys[1]); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%d: sources %v, want %v", i, got, want)
			}
		}
		if w.entries != 30 || w.sources != 6 {
			t.Errorf("%d counts and %d sources were written, want 30 and 6", w.entries, w.sources)
		}
		must(t, r.Close(t.Context()))
		if w.entries != 33 || w.sources != 6+3*(5+1+4+1) {
			t.Errorf("with the end %d counts and %d sources", w.entries, w.sources)
		}
		if got := db.reported(t, usage.New(nil, false, 0), keys[1]); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("stored sources %v, want %v", got, want)
		}
		if byHour, byDay := db.total(t); byHour != 90 || byDay != 90 {
			t.Errorf("%d requests by the hour, %d by the day", byHour, byDay)
		}
	})
}

// A report by source counts each request once at any moment of a flush or a rest.
func TestSourceReportsDuringFlushes(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		r := usage.New(db.writer(t), false, 30*time.Millisecond)
		keys := sorted(db.newKeys(t, usage.BatchSources))
		key := keys[len(keys)-1]
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			for ctx.Err() == nil {
				countEach(r, keys[:len(keys)-1], time.Now())
				_ = r.Flush(context.WithoutCancel(ctx))
			}
		})
		var used int64
		for end := time.Now().Add(time.Second / 2); time.Now().Before(end) || used < 20; {
			used++
			r.Count(account, key, backend, noon.Add(time.Duration(used)*time.Microsecond), 1, 0)
			if got := db.reported(t, r, key)["2026-03-14 192.0.2.7 backend/1.0"]; got != used {
				t.Errorf("%d requests after %d", got, used)
				break
			}
		}
		stop()
		running.Wait()
		must(t, r.Close(t.Context()))
		var stored int64
		must(t, db.NewRaw("SELECT sum(requests) FROM api_key_sources WHERE api_key_id = ?", key).Scan(t.Context(), &stored))
		if stored != used {
			t.Errorf("%d requests are stored, want %d", stored, used)
		}
	})
}

// discarding writes nothing.
type discarding struct{ usage.Writer }

func (discarding) Write(context.Context, time.Time, []usage.Entry, []usage.SourceEntry) error {
	return nil
}

// The keys and sources that rest are bounded.
func TestRestsAreBounded(t *testing.T) {
	t.Parallel()
	w := &counting{Writer: discarding{}}
	r := usage.New(w, false, time.Hour)
	r.Rest(usage.MaxResting - 5)
	for range 2 {
		for i := range 15 {
			r.Count(account, id(i), backend, noon, 1, 0)
		}
		must(t, r.Flush(t.Context()))
	}
	if want := 15 + 10; w.sources != want {
		t.Errorf("%d sources were written, want %d", w.sources, want)
	}
}

// What was held is written after midnight, which is no use on the new day.
func TestHeldSourcesAreNoUse(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		r, keys := usage.New(db.writer(t), false, 50*time.Millisecond), db.newKeys(t, 2)
		late := time.Date(2026, time.March, 14, 23, 59, 58, 0, time.UTC)
		for i, key := range []uuid.UUID{keys[0], keys[0], keys[1]} {
			if i == 2 {
				time.Sleep(60 * time.Millisecond) // the rest of the first key
			}
			r.Count(account, key, backend, late.Add(time.Duration(i)*time.Second), 1, 0)
			must(t, r.Flush(t.Context()))
		}
		var days, requests int
		must(t, db.NewRaw("SELECT count(*) FROM api_key_days WHERE api_key_id = ?", keys[0]).Scan(t.Context(), &days))
		must(t, db.NewRaw("SELECT sum(requests) FROM api_key_sources WHERE api_key_id = ?", keys[0]).Scan(t.Context(), &requests))
		if days != 1 || requests != 2 {
			t.Errorf("%d days with a use, want 1; %d requests by source, want 2", days, requests)
		}
		must(t, r.Close(t.Context()))
	})
}
