package authn

import (
	"encoding/binary"
	"runtime"
	"testing"
)

// TestMemoryIsBounded does not run in parallel, because it measures the heap.
func TestMemoryIsBounded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var m memory
	m.at(Epoch{Connection: 1})
	var hash KeyHash
	for i := range 4 * maxEntries {
		binary.BigEndian.PutUint64(hash[:], uint64(i))
		put(m.keys, hash, Key{Active: true})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(m.keys) != maxEntries {
		t.Errorf("memory has %d keys", len(m.keys))
	}
	if _, found := m.keys[hash]; !found {
		t.Error("memory does not have the latest key")
	}
	// The comment of maxEntries says 20 MiB.
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 40<<20 {
		t.Errorf("memory takes %d MiB", grown>>20)
	}
	runtime.KeepAlive(m)
}

func TestNewEpochDropsMemory(t *testing.T) {
	t.Parallel()
	var m memory
	m.at(Epoch{Connection: 1})
	put(m.keys, KeyHash{1}, Key{Active: true})
	put(m.agents, Agent{}, struct{}{})
	m.at(Epoch{Connection: 1})
	if len(m.keys) != 1 || len(m.agents) != 1 {
		t.Error("the same epoch dropped memory")
	}
	m.at(Epoch{Connection: 2})
	if len(m.keys) != 0 || len(m.agents) != 0 {
		t.Error("another epoch kept memory")
	}
}
