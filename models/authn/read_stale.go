//go:build stale

package authn

import "time"

// The build tag "stale" makes a program that is wrong on purpose: it takes an epoch that it has read
// within the last second for the current one. The fault tests show with it that they find such a
// defect. Nothing that is shipped is built with it, and no flag or environment can turn it on.
var stale struct {
	epoch Epoch
	until time.Time
}

// read answers from memory for one second. One batch at a time calls it.
func (a *Authenticator) read(deadline time.Time, hashes []KeyHash) (Epoch, map[KeyHash]Key, error) {
	if len(hashes) == 0 && time.Now().Before(stale.until) {
		return stale.epoch, nil, nil
	}
	epoch, found, err := a.source.Keys(deadline, hashes)
	stale.epoch, stale.until = epoch, time.Now().Add(time.Second)
	return epoch, found, err
}
