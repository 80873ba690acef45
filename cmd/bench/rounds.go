package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// rounds are the measurements of one load, one a round.
type rounds []*measurement

// median returns the median of a figure over the rounds.
func (r rounds) median(figure func(*measurement) float64) float64 {
	values := make([]float64, len(r))
	for i, m := range r {
		values[i] = figure(m)
	}
	return median(values)
}

// ratio returns the median of the ratios to another load in the same rounds. A disturbance that
// slows the machine down in a round slows both loads.
func (r rounds) ratio(other rounds, figure func(*measurement) float64) float64 {
	values := make([]float64, len(r))
	for i := range r {
		values[i] = figure(r[i]) / figure(other[i])
	}
	return median(values)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// interleave measures each load once a round. It reverses the order after each round, so that a
// drift in the machine's speed affects all loads alike.
func (b *bench) interleave(ctx context.Context, loads ...*load) ([]rounds, error) {
	results := make([]rounds, len(loads))
	order := make([]int, len(loads))
	for i := range order {
		order[i] = i
	}
	for round := range b.rounds {
		for _, i := range order {
			m, err := loads[i].run(ctx, b.warmUp(), b.duration)
			if err != nil {
				return nil, err
			}
			results[i] = append(results[i], m)
			b.progress("round %d of %d: %s, %d connections: %.0f requests/s, p50 %s, p99 %s", round+1, b.rounds,
				loads[i].name, loads[i].connections, m.rate(), milliseconds(m.p50()), milliseconds(m.p99()))
			if err := loads[i].truncateLogs(); err != nil {
				return nil, err
			}
		}
		slices.Reverse(order)
	}
	return results, nil
}

// truncateLogs empties the logs of the servers.
func (l *load) truncateLogs() error {
	for _, s := range l.servers {
		if err := s.truncateLog(); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// warmUp returns how long a load runs before it is measured.
func (b *bench) warmUp() time.Duration { return min(b.duration/4, time.Second) }
