package authn

import (
	"testing"
)

// Held returns the number of keys in memory and whether a batch waits.
func (a *Authenticator) Held() (keys int, waiting bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.memory.keys), a.next != nil
}

// MaxBatch is how many requests can wait for the next statement.
const MaxBatch = maxBatch

// The statements that read keys by their hashes and ids.
const (
	PostgresIDs = postgresIDs
	SQLiteIDs   = sqliteIDs
	Planner     = planner
)

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
