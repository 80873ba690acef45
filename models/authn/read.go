//go:build !stale

package authn

import "time"

// read runs the statement that is the linearization point of a batch.
func (a *Authenticator) read(deadline time.Time, hashes []KeyHash) (Epoch, map[KeyHash]Key, error) {
	if len(hashes) == 0 {
		epoch, err := a.source.Epoch(deadline)
		return epoch, nil, err
	}
	return a.source.Keys(deadline, hashes)
}
