package authn

import (
	"sync"

	"github.com/google/uuid"
)

// The limits of memory. A key takes at most 155 bytes, and an agent or the id of a key 85. Full
// memory therefore takes at most 190 MiB of the 256 MiB that the collector aims at, and
// restrictions take 32 MiB.
const (
	maxKeys   = 1 << 20
	maxKeyIDs = 1 << 17
	maxAgents = 1 << 18

	maxRestrictions = 32 << 20 // in bytes
)

// memory holds facts that grant access and were read at one epoch.
type memory struct {
	// Only the running batch uses the keys, so they need no lock.
	keys   map[KeyHash]grant
	keyIDs map[uuid.UUID]grant // active keys that were looked up by id

	// The restrictions of restricted keys, by the id of the key. They are in a map of their
	// own, so that the collector does not scan the other maps, which have no pointers.
	restrictions     map[uuid.UUID]*Restrictions
	restrictionsSize int // in bytes, about

	mu     sync.Mutex // guards the agents, and changes of the epoch
	agents map[Agent]struct{}
	epoch  Epoch // only the running batch changes it
}

// grant is the fact that a key, which is neither revoked nor of a disabled account, belongs to an
// account.
type grant struct {
	keyID, accountID uuid.UUID
	restricted       bool
}

// at sets the epoch of memory and drops everything that was read at another one.
func (m *memory) at(epoch Epoch) {
	if m.keys != nil && m.epoch == epoch {
		return
	}
	m.keys, m.keyIDs = map[KeyHash]grant{}, map[uuid.UUID]grant{}
	m.restrictions, m.restrictionsSize = map[uuid.UUID]*Restrictions{}, 0
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

// key returns the key that ref refers to, which may have expired.
func (m *memory) key(ref KeyRef) (Key, bool) {
	var g grant
	var found bool
	if ref.ID != uuid.Nil {
		g, found = m.keyIDs[ref.ID]
	} else {
		g, found = m.keys[ref.Hash]
	}
	key := Key{ID: g.keyID, AccountID: g.accountID, Active: found}
	if g.restricted {
		if key.Restrictions = m.restrictions[g.keyID]; key.Restrictions == nil {
			return Key{}, false // evicted
		}
	}
	return key, found
}

func (m *memory) addKey(ref KeyRef, key Key) {
	g := grant{keyID: key.ID, accountID: key.AccountID, restricted: key.Restrictions != nil}
	if g.restricted {
		m.restrict(key.ID, key.Restrictions)
	}
	if ref.ID != uuid.Nil {
		put(m.keyIDs, ref.ID, g, maxKeyIDs)
		return
	}
	put(m.keys, ref.Hash, g, maxKeys)
}

// restrict adds the restrictions of a key, and evicts those of arbitrary other ones if there are
// too many.
func (m *memory) restrict(id uuid.UUID, r *Restrictions) {
	if old := m.restrictions[id]; old != nil {
		m.restrictionsSize -= old.size()
		delete(m.restrictions, id)
	}
	for other, evicted := range m.restrictions {
		if m.restrictionsSize+r.size() <= maxRestrictions {
			break
		}
		m.restrictionsSize -= evicted.size()
		delete(m.restrictions, other)
	}
	m.restrictions[id] = r
	m.restrictionsSize += r.size()
}

// size returns about how many bytes of memory the restrictions take.
func (r *Restrictions) size() int { return 128 + 16*len(r.Agents) + 32*len(r.Networks) }

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
