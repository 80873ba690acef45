package widget

import (
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
)

// TestRememberedTokensAreBounded does not run in parallel, because it measures the heap.
func TestRememberedTokensAreBounded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m := memory{claims: map[[sha256.Size]byte]Claims{}}
	var hash [sha256.Size]byte
	for i := range 4 * maxRemembered {
		binary.BigEndian.PutUint64(hash[:], uint64(i))
		m.add(hash, Claims{
			Issuer:   strings.Clone("https://portal.example.com"),
			Audience: strings.Clone(audience), Scope: strings.Clone(scope), ExpiresAt: int64(i),
		})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(m.claims) != maxRemembered {
		t.Errorf("memory has %d tokens", len(m.claims))
	}
	if claims, found := m.find(hash); !found || claims.ExpiresAt != 4*maxRemembered-1 {
		t.Error("memory does not have the latest token")
	}
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("memory takes %d MiB", grown>>20)
	// The comment of maxRemembered says 9 MiB.
	if grown > 18<<20 {
		t.Errorf("memory takes %d MiB", grown>>20)
	}
	runtime.KeepAlive(&m)
}
