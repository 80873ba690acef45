//go:build !stale

package authn

import "time"

// read runs the statement that is the linearization point of a batch.
func (a *Authenticator) read(deadline time.Time, wanted []KeyRef) (Moment, map[KeyRef]Key, error) {
	if len(wanted) == 0 {
		moment, err := a.reader.Epoch(deadline)
		return moment, nil, err
	}
	return a.reader.Keys(deadline, wanted)
}
