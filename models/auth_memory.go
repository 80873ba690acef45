package models

import "github.com/google/uuid"

// maxRemembered bounds the memory of keys, and that of agents: some 20 MiB each
// when full.
const maxRemembered = 1 << 17

// authMemory holds what was read under one epoch and grants access.
type authMemory struct {
	epoch  authEpoch
	keys   map[keyHash]keyFacts
	agents map[accountAgent]struct{}
}

type accountAgent struct{ accountID, agentID uuid.UUID }

// at makes memory one of this epoch: it drops what was read under another.
func (m *authMemory) at(epoch authEpoch) {
	if m.keys != nil && m.epoch == epoch {
		return
	}
	*m = authMemory{epoch: epoch, keys: map[keyHash]keyFacts{}, agents: map[accountAgent]struct{}{}}
}

// put adds to a map that is full at [maxRemembered]: some other entry, whichever
// comes first, makes room.
func put[K comparable, V any](m map[K]V, key K, value V) {
	if _, there := m[key]; !there && len(m) >= maxRemembered {
		for other := range m {
			delete(m, other)
			break
		}
	}
	m[key] = value
}
