package authn

import (
	"runtime"
	"time"
)

// maxBatch is how many requests can wait for the next statement. It is many times the number that
// arrives during a statement, so it is reached only if the database is slow or hangs.
const maxBatch = 2048

// batch is a group of requests that one statement answers.
type batch struct {
	hashes   []KeyHash // one for each request
	deadline time.Time // the deadline of the first request

	// done is closed when the fields below are set. It is nil if the batch never waited: its only
	// request runs the statement on its own goroutine.
	done    chan struct{}
	results []result // one for each hash
	epoch   Epoch    // at which the results are true
	err     error
}

type result struct {
	key   Key
	found bool
}

// join adds the hash to the batch that waits for the next statement, and returns the batch and the
// position of the hash in it. If no statement runs and recent requests came one by one, it returns
// a batch whose done is nil instead. The caller must pass that batch to runAlone. If the batch is
// full, it returns nil.
func (a *Authenticator) join(hash KeyHash) (b *batch, position int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next != nil {
		if len(a.next.hashes) >= maxBatch {
			return nil, 0
		}
		a.next.hashes = append(a.next.hashes, hash)
		return a.next, len(a.next.hashes) - 1
	}
	b = &batch{hashes: []KeyHash{hash}, deadline: time.Now().Add(a.timeout)}
	idle := !a.running
	a.running = true
	if idle && !a.gathered {
		return b, 0
	}
	b.done = make(chan struct{})
	a.next = b
	if idle {
		go a.runBatches()
	}
	return b, 0
}

// runAlone runs the statement for a single request on the caller's goroutine, because waking
// another goroutine would take as long as the statement. It leaves the next batch to runBatches.
func (a *Authenticator) runAlone(b *batch) {
	a.resolve(b)
	if !a.finish() {
		go a.runBatches()
	}
}

// runBatches runs one batch after the other until no request waits.
func (a *Authenticator) runBatches() {
	for {
		// Requests that are about to arrive can join this batch instead of the next one.
		runtime.Gosched()
		b := a.take()
		a.resolve(b)
		close(b.done)
		if a.finish() {
			return
		}
	}
}

// take removes and returns the batch that waits. No request can join it after that.
func (a *Authenticator) take() *batch {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.next
	a.next = nil
	a.gathered = len(taken.hashes) > 1
	return taken
}

// finish reports whether no request waits. If so, no goroutine runs statements any longer.
func (a *Authenticator) finish() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running = a.next != nil
	return !a.running
}
