package widget

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/secret"
)

func newTokens(tb testing.TB, issuer string) *Tokens {
	tb.Helper()
	keyring, err := secret.NewKeyring("0123456789abcdef0123456789abcdef", "")
	if err != nil {
		tb.Fatal(err)
	}
	return NewTokens(keyring, issuer, time.Minute, nil)
}

func FuzzClaimsAreEncodedAsByTheLibrary(f *testing.F) {
	f.Add("https://portal.example.com", []byte("0123456789abcdef"), int64(1_800_000_000), int64(60))
	f.Add(`"\<>&`+"\u2028\xff\x00é", []byte{0xff}, int64(-1), int64(-1<<63))
	f.Fuzz(func(t *testing.T, issuer string, id []byte, at, life int64) {
		tokens := newTokens(t, issuer)
		var ids [4]uuid.UUID
		for i := range ids {
			ids[i] = uuid.NewSHA1(uuid.Nil, append(id, byte(i)))
		}
		claims := Claims{
			Issuer: issuer, Audience: audience, AccountID: ids[0], KeyID: ids[1], AgentID: ids[2], Scope: scope,
			IssuedAt: at, NotBefore: at - life, ExpiresAt: at + life, ID: ids[3],
		}
		want, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		if got := tokens.appendClaims([]byte("before"), claims); string(got) != "before"+string(want) {
			t.Errorf("got  %s\nwant before%s", got, want)
		}
	})
}

func BenchmarkClaims(b *testing.B) {
	tokens := newTokens(b, "https://portal.example.com")
	claims := Claims{
		Issuer: tokens.issuer, Audience: audience, AccountID: uuid.New(), KeyID: uuid.New(), AgentID: uuid.New(), Scope: scope,
		IssuedAt: 1_800_000_000, NotBefore: 1_799_999_940, ExpiresAt: 1_800_000_600, ID: uuid.New(),
	}
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		buffer := make([]byte, 0, 1024)
		for b.Loop() {
			tokens.appendClaims(buffer, claims)
		}
	})
	b.Run("with a context", func(b *testing.B) {
		b.ReportAllocs()
		buffer, claims := make([]byte, 0, 1024), claims
		claims.Context = &Context{User: &User{ID: "customer-1042", Name: "Maria"}, Metadata: map[string]string{"plan": "gold"}}
		for b.Loop() {
			tokens.appendClaims(buffer, claims)
		}
	})
	b.Run("json.Marshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(claims); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestRememberedTokensAreBounded does not run in parallel, because it measures the heap.
func TestRememberedTokensAreBounded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m := memory[Claims]{claims: map[[sha256.Size]byte]Claims{}}
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
