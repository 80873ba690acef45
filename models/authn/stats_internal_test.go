package authn

import "testing"

func TestBatchesAreCountedBySize(t *testing.T) {
	var a Authenticator
	for _, size := range []int{1, 1, 2, 3, 4, 5, maxBatch} {
		a.counts.batch(size)
	}
	stats := a.Stats()
	want := [12]uint64{0: 2, 1: 1, 2: 2, 3: 1, 11: 1}
	if stats.BatchSizes != want || stats.Lookups != 16+maxBatch {
		t.Errorf("%d lookups in %v", stats.Lookups, stats.BatchSizes)
	}
}
