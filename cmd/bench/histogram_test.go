package main

import (
	"testing"
	"time"
)

func TestPercentilesAreExactToAStep(t *testing.T) {
	var odd, even, all histogram
	for us := 1; us <= 10_000; us++ {
		h := &odd
		if us%2 == 0 {
			h = &even
		}
		h.record(time.Duration(us) * time.Microsecond)
	}
	all.add(&odd)
	all.add(&even)
	for p, want := range map[float64]time.Duration{
		0.0001: time.Microsecond, 0.5: 5 * time.Millisecond, 0.99: 9900 * time.Microsecond, 1: 10 * time.Millisecond,
	} {
		got := all.percentile(p)
		if diff := (got - want).Abs(); float64(diff) > float64(want)/steps {
			t.Errorf("percentile(%v) = %v, want %v", p, got, want)
		}
	}
}

func TestPercentileOfAnEmptyHistogramIsZero(t *testing.T) {
	var h histogram
	if got := h.percentile(0.5); got != 0 {
		t.Errorf("got %v", got)
	}
}

func TestEveryLatencyHasAStep(t *testing.T) {
	for _, latency := range []time.Duration{-time.Second, 0, 1, 63, 64, 127, 128, 129, time.Hour} {
		var h histogram
		h.record(latency)
		want := min(max(latency, 0), longest)
		if diff := (h.percentile(1) - want).Abs(); float64(diff) > float64(want)/steps {
			t.Errorf("%v is recorded as %v", latency, h.percentile(1))
		}
	}
}
