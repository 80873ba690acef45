package main

import (
	"testing"
	"time"
)

func TestMedianIsTheMiddleValue(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 2, 9}, 3},
	} {
		if got := median(c.values); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.values, got, c.want)
		}
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	// The machine is half as fast in the second round and a third in the last.
	slow := rounds{measured(900, time.Second), measured(450, time.Second), measured(300, time.Second)}
	fast := rounds{measured(1000, time.Second), measured(500, time.Second), measured(1000, 3*time.Second)}
	if got := slow.ratio(fast, (*measurement).rate); got != 0.9 {
		t.Errorf("ratio = %v, want 0.9", got)
	}
	if got := slow.median((*measurement).rate); got != 450 {
		t.Errorf("median = %v, want 450", got)
	}
}

func measured(requests int, elapsed time.Duration) *measurement {
	return &measurement{elapsed: elapsed, latencies: histogram{total: requests}}
}
