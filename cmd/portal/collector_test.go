package main

import "testing"

func TestTheHeapGrowsByABoundedSize(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 8 << 20: 400, 16 << 20: 200, 64 << 20: 50, 320 << 20: 10} {
		if got := growthOf(live); got != want {
			t.Errorf("%d live bytes grow by %d %%, want %d %%", live, got, want)
		}
	}
}
