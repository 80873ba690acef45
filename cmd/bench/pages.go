package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/uptrace/bun"

	"portal/models"
)

const (
	pageInterval = 25 * time.Millisecond // between two pages of the visitor
	// pageStretch makes a run this many times longer than other loads, because it has few
	// pages.
	pageStretch = 3

	pageP50 = 5 * time.Millisecond
	pageP99 = 25 * time.Millisecond
)

// measuredPages are the paths that the visitor reads, which are also their routes.
var measuredPages = []string{"/api-keys", "/activity", "/agents"}

// pagesUnderLoad measures how long the portal takes for a page, while nothing else happens and
// while the API is under full load with the keys of the same account.
func pagesUnderLoad(ctx context.Context, b *bench) (err error) {
	f, err := b.newFixture(ctx, "pages", models.MaxActiveKeys, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	if err := f.fillPages(ctx, b.activities); err != nil {
		return err
	}
	visitor, err := f.server.signIn(ctx)
	if err != nil {
		return err
	}
	idle := f.load("no load", f.tenant.keys[:models.MaxActiveKeys])
	idle.connections = 0
	full := f.load("full load of the API", idle.keys)
	loads := []*load{idle, full}
	took := map[*load]map[string]*histogram{idle: {}, full: {}}
	for _, l := range loads {
		l.background = func(ctx context.Context) error { return visitor.readPages(ctx, pageInterval, measuredPages) }
	}
	for range b.rounds {
		for _, l := range loads {
			if err := l.truncateLogs(); err != nil {
				return err
			}
			m, err := l.run(ctx, b.warmUp(), pageStretch*b.duration)
			if err != nil {
				return err
			}
			b.progress("%s: %.0f requests/s", l.name, m.rate())
			if err := f.server.readDurations(took[l]); err != nil {
				return err
			}
		}
	}
	b.printPages(loads, took)
	return nil
}

func (b *bench) printPages(loads []*load, took map[*load]map[string]*histogram) {
	t := table{
		title: "Pages under load",
		about: fmt.Sprintf("PostgreSQL. The account has %d keys in use, %s activities (50 a page) and %s agents (100 a page). "+
			"Full load is %d connections with these keys. Figures are the time in the portal's access log.",
			models.MaxActiveKeys, thousands(b.activities), thousands(pageAgents), busy),
		header: []string{"page", "", "pages", "p50", "p99"},
	}
	for _, path := range measuredPages {
		for _, l := range loads {
			h := took[l][path]
			if h == nil {
				h = &histogram{}
			}
			t.add(path, l.name, thousands(h.total), milliseconds(float64(h.percentile(0.5))), milliseconds(float64(h.percentile(0.99))))
		}
		under := took[loads[1]][path]
		b.atMost(path+" under full load: p50 in ms", float64(under.percentile(0.5))/1e6, float64(pageP50.Milliseconds()))
		b.atMost(path+" under full load: p99 in ms", float64(under.percentile(0.99))/1e6, float64(pageP99.Milliseconds()))
	}
	b.print(t)
}

// pageAgents is the largest number of agents of an account.
const pageAgents = 1_000

// fillPages gives the first account activities, agents, and 30 days of usage before today.
func (f *fixture) fillPages(ctx context.Context, activities int) error {
	account, now := f.tenant.accountID, time.Now()
	const days, rest = 30, pageAgents - 1
	return inTransaction(ctx, f.url, func(tx bun.Tx) error {
		return errors.Join(
			insert(ctx, tx, rest, func(i int) models.Agent {
				return models.Agent{ID: newID(), AccountID: account, Name: fmt.Sprintf("Agent %d", i), CreatedAt: now}
			}),
			insert(ctx, tx, activities, func(i int) models.Activity {
				key := f.tenant.keys[i%models.MaxActiveKeys].id
				return models.Activity{
					ID: newID(), AccountID: account, ActorKind: models.ActorOperator, Action: models.ActionKeyRenamed,
					SubjectID: &key, Label: "Bench", FormerLabel: "Former", At: now, Count: 1,
				}
			}),
			insert(ctx, tx, days*models.MaxActiveKeys, func(i int) dailyUsage {
				return dailyUsage{
					APIKeyID: f.tenant.keys[i/days].id.String(), Requests: int64(i),
					Day: now.UTC().Truncate(models.Day).Add(-time.Duration(1+i%days) * models.Day),
				}
			}),
		)
	})
}

// dailyUsage is a row of the requests with a key.
type dailyUsage struct {
	bun.BaseModel `bun:"table:api_key_daily_usage"`

	APIKeyID string
	Day      time.Time
	Requests int64
}

// readDurations adds the durations of the measured pages in the access log.
func (s *server) readDurations(took map[string]*histogram) error {
	log, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err
	}
	for line := range bytes.Lines(log) {
		if !bytes.Contains(line, []byte(`"method":"GET"`)) {
			continue // most lines are of the API
		}
		var entry struct {
			Route    string        `json:"route"`
			Duration time.Duration `json:"duration_ns"`
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			return fmt.Errorf("access log: %w", err)
		}
		if took[entry.Route] == nil {
			took[entry.Route] = &histogram{}
		}
		took[entry.Route].record(entry.Duration)
	}
	return nil
}
