package authn

import (
	"sync"

	"github.com/google/uuid"
)

// The limits of memory. A key takes at most 150 bytes, and an agent or the id of a key 85. Full
// memory therefore takes at most 190 MiB of the 256 MiB that the collector aims at.
const (
	maxKeys   = 1 << 20
	maxKeyIDs = 1 << 17
	maxAgents = 1 << 18
)

// memory holds facts that grant access and were read at one epoch.
type memory struct {
	// Only the running batch uses the keys, so they need no lock.
	keys   map[KeyHash]grant
	keyIDs map[uuid.UUID]uuid.UUID // the accounts of active keys that were looked up by id

	mu     sync.Mutex // guards the agents, and changes of the epoch
	agents map[Agent]struct{}
	epoch  Epoch // only the running batch changes it
}

// grant is the fact that an active key belongs to an account.
type grant struct{ keyID, accountID uuid.UUID }

// at sets the epoch of memory. It drops everything that was read at another epoch.
func (m *memory) at(epoch Epoch) {
	if m.keys != nil && m.epoch == epoch {
		return
	}
	m.keys, m.keyIDs = map[KeyHash]grant{}, map[uuid.UUID]uuid.UUID{}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch, m.agents = epoch, map[Agent]struct{}{}
}

// hasAgent reports whether memory has the epoch and the agent.
func (m *memory) hasAgent(epoch Epoch, agent Agent) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.agents[agent]
	return found && m.epoch == epoch
}

// addAgent adds an agent unless memory has another epoch.
func (m *memory) addAgent(epoch EpochValue, agent Agent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agents != nil && m.epoch.Value == epoch {
		put(m.agents, agent, struct{}{}, maxAgents)
	}
}

// key returns the active key that ref refers to.
func (m *memory) key(ref KeyRef) (Key, bool) {
	if ref.ID != uuid.Nil {
		accountID, found := m.keyIDs[ref.ID]
		return Key{ID: ref.ID, AccountID: accountID, Active: found}, found
	}
	g, found := m.keys[ref.Hash]
	return Key{ID: g.keyID, AccountID: g.accountID, Active: found}, found
}

// addKey adds an active key.
func (m *memory) addKey(ref KeyRef, key Key) {
	if ref.ID != uuid.Nil {
		put(m.keyIDs, ref.ID, key.AccountID, maxKeyIDs)
		return
	}
	put(m.keys, ref.Hash, grant{key.ID, key.AccountID}, maxKeys)
}

// put adds an entry. If the map has limit entries, it evicts an arbitrary one first.
func put[K comparable, V any](m map[K]V, key K, value V, limit int) {
	if _, found := m[key]; !found && len(m) >= limit {
		for other := range m {
			delete(m, other)
			break
		}
	}
	m[key] = value
}
