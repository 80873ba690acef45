package widget

import (
	"crypto/sha256"
	"sync"
)

// maxRemembered bounds the number of tokens in memory. Together they take about 9 MiB.
const maxRemembered = 1 << 15

// memory remembers the claims of tokens whose signatures were valid, by the hash of the token.
// Verifying a signature takes longer than the rest of a request. Nothing else about a token is
// remembered: its times, key and agent are checked each time, and a context is read from it.
type memory[C any] struct {
	mu     sync.Mutex
	claims map[[sha256.Size]byte]C
}

// inToken stands for the context of a token, which would take up to 4 KiB.
var inToken = &Context{}

func (m *memory[C]) find(hash [sha256.Size]byte) (claims C, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	claims, found = m.claims[hash]
	return claims, found
}

// add adds a token. If the memory is full, it evicts an arbitrary one first.
func (m *memory[C]) add(hash [sha256.Size]byte, claims C) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.claims) >= maxRemembered {
		for other := range m.claims {
			delete(m.claims, other)
			break
		}
	}
	m.claims[hash] = claims
}
