package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// stretches is the number of short runs in each round.
const stretches = 20

// loneRequest compares one request at a time with one prepared statement, which is the minimum cost
// of a check against a database.
func loneRequest(ctx context.Context, b *bench) (err error) {
	f, err := b.newFixture(ctx, "lone", 1, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	baselineServer, err := b.startPortal(ctx, "baseline", b.programs.baseline, "sqlite:"+filepath.Join(b.dir, "lone-baseline.db"), f.tenant)
	if err != nil {
		return err
	}
	defer baselineServer.stop()
	plainServer, err := b.startPlain(ctx, "plain", f.url, f.tenant)
	if err != nil {
		return err
	}
	defer plainServer.stop()
	statement, closeConn, err := preparedStatement(ctx, f.url)
	if err != nil {
		return err
	}
	defer closeConn()
	baseline, plain, portal := f.load("baseline", f.tenant.keys[:1]), f.load("plain", f.tenant.keys[:1]), f.load("PostgreSQL", f.tenant.keys[:1])
	baseline.servers, plain.servers = []*server{baselineServer}, []*server{plainServer}
	baseline.connections, plain.connections, portal.connections = 1, 1, 1

	subjects := []struct {
		name string
		run  func(ctx context.Context, warmUp, duration time.Duration) (*measurement, error)
	}{
		{"one prepared statement over pgx", repeated(statement)},
		{"Store.Authenticate", repeated(func(ctx context.Context) error {
			_, err := f.store.API.Authenticate(ctx, f.tenant.keys[0].secret)
			return err
		})},
		{"POST /api/widget/token, baseline", baseline.run},
		{"POST /api/widget/token, plain handler with a statement", plain.run},
		{"POST /api/widget/token, PostgreSQL", portal.run},
	}
	results := make([]rounds, len(subjects))
	for range b.rounds * stretches {
		for i, subject := range subjects {
			m, err := subject.run(ctx, b.warmUp()/stretches, b.duration/stretches)
			if err != nil {
				return fmt.Errorf("%s: %w", subject.name, err)
			}
			results[i] = append(results[i], m)
		}
	}
	for i, subject := range subjects {
		b.progress("%s: p50 %s", subject.name, microseconds(results[i].median((*measurement).p50)))
	}

	t := table{
		title: "One request at a time",
		about: "The prepared statement reads the row that authentication reads. " +
			"It and Store.Authenticate run in the measuring process. " +
			"Figures are medians of many short runs, because a round trip between two processes on one processor " +
			"takes a quarter of the time that it takes between two processors.",
		header: []string{"", "p50", "p99", "p50 vs. statement"},
	}
	for i, subject := range subjects {
		r := results[i]
		t.add(subject.name, microseconds(r.median((*measurement).p50)), microseconds(r.median((*measurement).p99)),
			ratio(r.ratio(results[0], (*measurement).p50)))
	}
	b.print(t)
	const p50 = ": p50 vs. "
	b.atMost("A single "+subjects[1].name+p50+"one prepared statement", results[1].ratio(results[0], (*measurement).p50), 1.5)
	b.atMost("A single "+subjects[4].name+p50+"plain handler with a statement", results[4].ratio(results[3], (*measurement).p50), 1.5)
	b.atMost("A single "+subjects[4].name+p50+"one prepared statement", results[4].ratio(results[0], (*measurement).p50), 1.5)
	return nil
}

// preparedStatement connects to a database and returns a function that runs the statement once.
func preparedStatement(ctx context.Context, databaseURL string) (run func(context.Context) error, closeConn func(), err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return nil, nil, err
	}
	closeConn = func() { _ = conn.Close(context.WithoutCancel(ctx)) }
	if _, err := conn.Exec(ctx, "SET plan_cache_mode = force_generic_plan"); err != nil {
		closeConn()
		return nil, nil, err
	}
	if _, err := conn.Prepare(ctx, "epoch", "SELECT value FROM auth_epoch"); err != nil {
		closeConn()
		return nil, nil, err
	}
	return func(ctx context.Context) error {
		var value []byte
		// The cost of watching a context is not part of the round trip.
		if err := conn.QueryRow(context.WithoutCancel(ctx), "epoch").Scan(&value); err != nil {
			return err
		}
		if len(value) == 0 {
			return errors.New("the epoch is empty")
		}
		return nil
	}, closeConn, nil
}

// repeated returns a function that calls call without pauses and measures it.
func repeated(call func(context.Context) error) func(ctx context.Context, warmUp, duration time.Duration) (*measurement, error) {
	return func(ctx context.Context, warmUp, duration time.Duration) (*measurement, error) {
		m := &measurement{}
		began := time.Now().Add(warmUp)
		for last := time.Now(); m.elapsed < duration; {
			if err := call(ctx); err != nil {
				return nil, err
			}
			now := time.Now()
			if m.elapsed = now.Sub(began); m.elapsed > 0 {
				m.latencies.record(now.Sub(last))
			}
			last = now
		}
		return m, nil
	}
}
