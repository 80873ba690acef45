package models

import (
	"crypto/sha256"
	"sync"
)

// maxVerifiedTokens bounds the number of tokens in memory. Together they take about 15 MiB.
const maxVerifiedTokens = 1 << 15

// verifiedTokens remembers the claims of tokens whose signatures were valid, by the hash of the
// token. Verifying a signature takes longer than the rest of a request. Nothing else about a token
// is remembered: its times, key and agent are checked each time.
type verifiedTokens struct {
	mu     sync.Mutex
	claims map[[sha256.Size]byte]WidgetClaims
}

func (v *verifiedTokens) find(hash [sha256.Size]byte) (claims WidgetClaims, found bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	claims, found = v.claims[hash]
	return claims, found
}

// add adds a token. If the memory is full, it evicts an arbitrary one first.
func (v *verifiedTokens) add(hash [sha256.Size]byte, claims WidgetClaims) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.claims) >= maxVerifiedTokens {
		for other := range v.claims {
			delete(v.claims, other)
			break
		}
	}
	v.claims[hash] = claims
}
