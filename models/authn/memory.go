package authn

// maxEntries bounds the number of keys in memory, and the number of agents. Each map takes about 20
// MiB when it is full.
const maxEntries = 1 << 17

// memory holds facts that grant access and were read at one epoch.
type memory struct {
	epoch  Epoch
	keys   map[KeyHash]Key
	agents map[Agent]struct{}
}

// at sets the epoch of memory. It drops everything that was read at another epoch.
func (m *memory) at(epoch Epoch) {
	if m.keys != nil && m.epoch == epoch {
		return
	}
	*m = memory{epoch: epoch, keys: map[KeyHash]Key{}, agents: map[Agent]struct{}{}}
}

// put adds an entry. If the map is full, it evicts an arbitrary entry first.
func put[K comparable, V any](m map[K]V, key K, value V) {
	if _, found := m[key]; !found && len(m) >= maxEntries {
		for other := range m {
			delete(m, other)
			break
		}
	}
	m[key] = value
}
