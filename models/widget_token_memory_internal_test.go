package models

import (
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
)

// TestVerifiedTokensAreBounded does not run in parallel, because it measures the heap.
func TestVerifiedTokensAreBounded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	v := verifiedTokens{claims: map[[sha256.Size]byte]WidgetClaims{}}
	id := func() string { return strings.Clone("0198c2f4-7a31-7c6e-9d52-3f8be6a1c004") }
	var hash [sha256.Size]byte
	for i := range 4 * maxVerifiedTokens {
		binary.BigEndian.PutUint64(hash[:], uint64(i))
		v.add(hash, WidgetClaims{
			Issuer:   strings.Clone("https://portal.example.com"),
			Audience: strings.Clone(widgetTokenAudience), Subject: id(), ClientID: id(), AgentID: id(),
			Scope: strings.Clone(widgetTokenScope), ID: id(), ExpiresAt: int64(i),
		})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(v.claims) != maxVerifiedTokens {
		t.Errorf("memory has %d tokens", len(v.claims))
	}
	if claims, found := v.find(hash); !found || claims.ExpiresAt != 4*maxVerifiedTokens-1 {
		t.Error("memory does not have the latest token")
	}
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("memory takes %d MiB", grown>>20)
	// The comment of maxVerifiedTokens says 15 MiB.
	if grown > 30<<20 {
		t.Errorf("memory takes %d MiB", grown>>20)
	}
	runtime.KeepAlive(&v)
}
