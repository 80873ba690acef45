package main

import (
	"math"
	"math/bits"
	"time"
)

const (
	// Each doubling of the latency is divided into 64 steps, so the error is at most 1.6 %.
	stepBits = 6
	steps    = 1 << stepBits
	// longest is the longest latency that has its own step, 68 s.
	longest = 1<<36 - 1
)

// histogram counts latencies in steps. The zero value is empty.
type histogram struct {
	counts [(36 - stepBits + 1) * steps]int
	total  int
}

func (h *histogram) record(latency time.Duration) {
	h.counts[stepOf(latency)]++
	h.total++
}

func (h *histogram) add(other *histogram) {
	for step, n := range &other.counts {
		h.counts[step] += n
	}
	h.total += other.total
}

// percentile returns the latency that the share p of all latencies (0 < p <= 1) does not exceed. It
// returns 0 if the histogram is empty.
func (h *histogram) percentile(p float64) time.Duration {
	rank := int(math.Ceil(p * float64(h.total)))
	for step, n := range &h.counts {
		rank -= n
		if n > 0 && rank <= 0 {
			return middleOf(step)
		}
	}
	return 0
}

// stepOf returns the step of a latency. Every nanosecond below 128 has its own step; above, each
// doubling has 64 steps.
func stepOf(latency time.Duration) int {
	ns := uint64(min(max(latency, 0), longest))
	shift := max(0, bits.Len64(ns)-stepBits-1)
	return shift*steps + int(ns>>shift) //nolint:gosec // below 2 * steps
}

// middleOf returns the latency in the middle of a step.
func middleOf(step int) time.Duration {
	shift := max(0, step/steps-1)
	from := time.Duration(step-shift*steps) << shift
	return from + time.Duration(1)<<shift/2
}
