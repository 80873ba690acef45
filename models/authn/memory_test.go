package authn

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"testing"

	"github.com/google/uuid"
)

// TestMemoryOfKeysIsBounded does not run in parallel, because it measures the heap.
func TestMemoryOfKeysIsBounded(t *testing.T) {
	var m memory
	m.at(Epoch{Connection: 1})
	before, seen := heap(), Key{ID: uuid.UUID{1}, AccountID: uuid.UUID{2}, Active: true}
	limits := &Restrictions{Agents: make([]uuid.UUID, 100), Networks: make([]netip.Prefix, 20)}
	var hash KeyHash
	var id uuid.UUID
	const more = 100 // than memory holds
	for i := range maxKeys + more {
		binary.BigEndian.PutUint64(hash[:], uint64(i+1))
		copy(id[:], hash[:])
		if i < maxKeys { // addKey would do the same, and takes longer
			m.keys[hash] = grant{keyID: seen.ID, accountID: seen.AccountID}
		} else {
			m.addKey(KeyRef{Hash: hash}, seen)
		}
		if i >= maxKeys-maxKeyIDs {
			m.addKey(KeyRef{ID: id}, Key{ID: id, AccountID: seen.AccountID, Active: true, Restrictions: limits})
		}
		if i >= maxKeys-maxAgents {
			put(m.agents, Agent{ID: id}, struct{}{}, maxAgents)
		}
	}
	if len(m.keys) != maxKeys || len(m.keyIDs) != maxKeyIDs || len(m.agents) != maxAgents {
		t.Errorf("memory has %d keys, %d ids and %d agents", len(m.keys), len(m.keyIDs), len(m.agents))
	}
	if key, found := m.key(KeyRef{Hash: hash}); !found || key != seen {
		t.Errorf("the latest key: %+v, %t", key, found)
	}
	if key, found := m.key(KeyRef{ID: id}); !found || key.ID != id || key.AccountID != seen.AccountID || !key.Active {
		t.Errorf("the latest id: %+v, %t", key, found)
	}
	if m.restrictionsSize > maxRestrictions || len(m.restrictions) != maxRestrictions/limits.size() {
		t.Errorf("%d restrictions take %d bytes", len(m.restrictions), m.restrictionsSize)
	}
	for id := range m.keyIDs {
		if _, found := m.key(KeyRef{ID: id}); found != (m.restrictions[id] != nil) {
			t.Fatalf("a key is in memory: %t, its restrictions: %t", found, !found)
		}
	}
	// The comment of the limits says 190 MiB.
	if grown := int64(heap()) - int64(before); grown > 200<<20 {
		t.Errorf("memory takes %d MiB", grown>>20)
	}
	runtime.KeepAlive(&m)
}

// BenchmarkMemory reports the memory of a key and of an agent, of a million each.
func BenchmarkMemory(b *testing.B) {
	const n = 1_000_000
	var hash KeyHash
	for b.Loop() {
		before := heap()
		keys, agents := map[KeyHash]grant{}, map[Agent]struct{}{}
		for i := range n {
			binary.BigEndian.PutUint64(hash[:], uint64(i))
			keys[hash] = grant{}
		}
		half := heap()
		for i := range n {
			binary.BigEndian.PutUint64(hash[:], uint64(i))
			agents[Agent{ID: uuid.UUID(hash[:16])}] = struct{}{}
		}
		b.ReportMetric(float64(half-before)/n, "bytes/key")
		b.ReportMetric(float64(heap()-half)/n, "bytes/agent")
		runtime.KeepAlive(keys)
		runtime.KeepAlive(agents)
	}
}

// heap returns the size of the live heap.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func TestNewEpochDropsMemory(t *testing.T) {
	t.Parallel()
	var m memory
	m.at(Epoch{Connection: 1})
	m.addKey(KeyRef{Hash: KeyHash{1}}, Key{})
	m.addKey(KeyRef{ID: uuid.UUID{1}}, Key{})
	put(m.agents, Agent{}, struct{}{}, 1)
	m.at(Epoch{Connection: 1})
	if len(m.keys) != 1 || len(m.keyIDs) != 1 || len(m.agents) != 1 {
		t.Error("the same epoch dropped memory")
	}
	m.at(Epoch{Connection: 2})
	if len(m.keys) != 0 || len(m.keyIDs) != 0 || len(m.agents) != 0 {
		t.Error("another epoch kept memory")
	}
}
