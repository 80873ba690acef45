package record_test

import (
	"context"
	"encoding/binary"
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
	"portal/models/record"
	"portal/models/value"
)

// Writers on two instances, whose clocks differ and whose transactions last, lose nothing to a
// poller: it reads each activity once. All times are a tenth of the real ones.
func TestPollerReadsEachActivityOnce(t *testing.T) {
	const (
		held     = 3 * time.Second
		skew     = 500 * time.Millisecond
		longest  = time.Second
		duration = 4 * time.Second // or longer, until enough are written
		enough   = 50
	)
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		options := models.Options{ReportDelay: held, Now: time.Now}
		instances := [2]*models.Store{f.Open(t, options), f.Open(t, options)}
		ctx, writers := t.Context(), sync.WaitGroup{}
		var recorded atomic.Int64
		stop := time.Now().Add(duration)
		for i := range 20 {
			writers.Go(func() {
				for time.Now().Before(stop) || recorded.Load() < enough && ctx.Err() == nil {
					pause := time.Duration(0)
					// One transaction at a time writes to a SQLite file.
					if f.Postgres() {
						pause = rand.N(longest)
					}
					limited, cancel := context.WithTimeout(ctx, longest)
					// A transaction that lasts too long has written nothing.
					if _, err := instances[i%2].Activity.RecordAt(limited, c.ID, time.Duration(1-2*(i%2))*skew/2, pause); err == nil {
						recorded.Add(1)
					}
					cancel()
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
		var read []uuid.UUID
		poll := func() int {
			page := record.ActivityReport{AccountID: c.ID, Limit: 7}
			if len(read) > 0 {
				page.After = read[len(read)-1]
			}
			activities := modelstest.Value(instances[0].Activity.Report(ctx, page))(t)
			for _, activity := range activities {
				read = append(read, activity.ID)
			}
			return len(activities)
		}
		written := make(chan struct{})
		go func() { writers.Wait(); close(written) }()
		for done := false; !done; {
			select {
			case <-written:
				done = true
			default:
				if poll() == 0 {
					time.Sleep(5 * time.Millisecond)
				}
			}
		}
		var all []uuid.UUID
		must(t, f.DB.NewSelect().Table("activities").Column("id").Where("account_id = ?", c.ID).OrderExpr("id").Scan(ctx, &all))
		eventually(t, "the poller has read all", func() bool {
			for poll() > 0 { // until the rest is too new
			}
			return len(read) >= len(all)
		})
		if len(all) < enough || !slices.Equal(read, all) {
			t.Errorf("%d activities, and the poller read %d", len(all), len(read))
		}
	})
}

// A key for reports has neither agents nor limits, and its replacement is one for reports too.
func TestKeysForReports(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		agent := f.Agent(t, c)
		reports := func(r keys.Restrictions) keys.NewKey {
			n := restricted(r)
			n.Access = keys.AccessReports
			return n
		}
		for _, wrong := range []keys.Restrictions{{Agents: []uuid.UUID{agent.ID}}, {Limits: value.Limits{Calls: 1}}} {
			_, _, err := f.Keys.Generate(t.Context(), c.ID, reports(wrong), c.Actor)
			checkInvalid(t, "generate", err, "agents")
		}
		unknown := form("unknown")
		unknown.Access = "all"
		_, _, err := f.Keys.Generate(t.Context(), c.ID, unknown, c.Actor)
		checkInvalid(t, "generate", err, "access")

		key, secret := f.Generate(t, c, reports(keys.Restrictions{}), c.Actor)
		_, err = f.Keys.Restrict(t.Context(), c.ID, key.ID, "", keys.Restrictions{Limits: value.Limits{Calls: 1}}, "", c.Actor)
		checkInvalid(t, "restrict", err, "agents")
		if caller := modelstest.Value(f.API.Authenticate(t.Context(), secret, keys.Source{}))(t); !caller.Allows(keys.AccessReports) || caller.Allows(keys.AccessAgents) {
			t.Error("the key has another access")
		}
		rotation := form("rotated")
		rotation.Replaces, rotation.Access = key.ID, keys.AccessAgents
		if rotated, _ := f.Generate(t, c, rotation, c.Actor); !rotated.OnlyReports() {
			t.Error("the replacement has another access")
		}
		_, usual := f.Key(t, c)
		if caller := modelstest.Value(f.API.Authenticate(t.Context(), usual, keys.Source{}))(t); caller.Allows(keys.AccessReports) || !caller.Allows(keys.AccessAgents) {
			t.Error("a usual key has another access")
		}
	})
}

// A page at the beginning, in the middle and at the end of a million activities of one account, of
// which PostgreSQL has no statistics.
func BenchmarkActivityReport(b *testing.B) {
	const rows, page = 1_000_000, 1000
	for name, url := range map[string]func(testing.TB) string{"sqlite": modelstest.SQLiteURL, "postgres": modelstest.PostgresURL} {
		b.Run(name, func(b *testing.B) {
			ctx, databaseURL := b.Context(), url(b)
			db := modelstest.OpenDatabase(b, databaseURL)
			store := modelstest.Open(b, databaseURL, models.Options{Timeout: models.Timeout})
			account := people.Account{ID: newID(), Name: "Acme", CreatedAt: time.Now()}
			must(b, errOf(db.NewInsert().Model(&account).Exec(ctx)))
			old := time.Now().UTC().Add(-time.Hour)
			activity := func(i int) record.Activity {
				id := newID()
				binary.BigEndian.PutUint64(id[:8], uint64(old.Add(-time.Duration(rows-i)*time.Millisecond).UnixMilli())<<16|0x7000)
				return record.Activity{ID: id, AccountID: account.ID, ActorKind: record.ActorOperator, Action: record.ActionAgentCreated, Label: "Front desk", Count: 1, At: old}
			}
			places := map[string]uuid.UUID{"beginning": uuid.Nil}
			for begin := 0; begin < rows; begin += 2000 {
				batch := make([]record.Activity, 2000)
				for i := range batch {
					batch[i] = activity(begin + i)
				}
				must(b, errOf(db.NewInsert().Model(&batch).Exec(ctx)))
				switch begin {
				case rows / 2:
					places["middle"] = batch[0].ID
				case rows - 2*page:
					places["end"] = batch[0].ID
				}
			}
			for place, after := range places {
				b.Run(place, func(b *testing.B) {
					for b.Loop() {
						if n := len(modelstest.Value(store.Activity.Report(ctx, record.ActivityReport{AccountID: account.ID, After: after, Limit: page}))(b)); n != page {
							b.Fatalf("%d activities", n)
						}
					}
				})
			}
		})
	}
}
