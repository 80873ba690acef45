package models

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

func TestUnknownKeysTakeNoMemory(t *testing.T) {
	t.Parallel()
	store, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "portal.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	const unknown, workers = 1_000_000, 256
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			var hash keyHash
			for i := worker; i < unknown; i += workers {
				binary.BigEndian.PutUint64(hash[:], uint64(i))
				_, _, err := store.auth.find(t.Context(), hash)
				if errors.Is(err, context.DeadlineExceeded) {
					i -= workers // a busy machine; it is asked again
					continue
				}
				if !errors.Is(err, ErrKeyUnknown) {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	store.auth.mu.Lock()
	defer store.auth.mu.Unlock()
	if keys, waiting := len(store.auth.memory.keys), store.auth.next; keys > 0 || waiting != nil {
		t.Errorf("%d keys are remembered, and %v waits", keys, waiting)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	// Not beside other tests, whose memory would be counted.
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var memory authMemory
	memory.at(authEpoch{1})
	var hash keyHash
	for i := range 4 * maxRemembered {
		binary.BigEndian.PutUint64(hash[:], uint64(i))
		put(memory.keys, hash, keyFacts{active: true})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(memory.keys) != maxRemembered {
		t.Errorf("%d keys are remembered", len(memory.keys))
	}
	if _, last := memory.keys[hash]; !last {
		t.Error("the latest key is not among them")
	}
	// The comment of maxRemembered promises 20 MiB.
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 40<<20 {
		t.Errorf("they take %d MiB", grown>>20)
	}
	runtime.KeepAlive(memory)
}

func TestMemoryOfAnotherEpochIsDropped(t *testing.T) {
	t.Parallel()
	var memory authMemory
	memory.at(authEpoch{1})
	put(memory.keys, keyHash{1}, keyFacts{active: true})
	put(memory.agents, accountAgent{}, struct{}{})
	memory.at(authEpoch{1})
	if len(memory.keys) != 1 || len(memory.agents) != 1 {
		t.Error("memory of the same epoch was dropped")
	}
	memory.at(authEpoch{2})
	if len(memory.keys) != 0 || len(memory.agents) != 0 {
		t.Error("memory of another epoch was kept")
	}
}
