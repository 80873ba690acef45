package authn

import (
	"runtime"
	"sync/atomic"
	"time"
)

// maxBatch is how many requests can wait for the next statement. Because it is many times the
// number that arrives during a statement, it is reached only if the database hangs or the
// processors are overloaded.
const maxBatch = 2048

// batch is a group of requests that one statement answers.
type batch struct {
	wanted   []KeyRef  // one for each request
	deadline time.Time // the deadline of the first request

	// done is closed when the fields below are set. It is nil if the batch never waited: its
	// only request runs the statement on its own goroutine.
	done    chan struct{}
	unread  atomic.Int32 // requests that have not seen done closed
	results []result     // one for each request
	moment  Moment       // the moment of the results
	err     error
}

type result struct {
	key   Key
	found bool
}

// join adds a request to the batch that waits for the next statement. It returns the batch and the
// position of the request in it, or nil if the batch is full. If no statement is running and recent
// requests came one by one, it returns a new batch whose done is nil, which the caller must pass to
// runAlone.
func (a *Authenticator) join(ref KeyRef) (b *batch, position int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next != nil {
		if len(a.next.wanted) >= maxBatch {
			return nil, 0
		}
		a.next.wanted = append(a.next.wanted, ref)
		return a.next, len(a.next.wanted) - 1
	}
	b = &batch{wanted: []KeyRef{ref}, deadline: time.Now().Add(a.timeout)}
	idle := !a.running
	a.running = true
	if idle && !a.gathered {
		return b, 0
	}
	b.done = make(chan struct{})
	a.next = b
	if idle {
		go a.runBatch()
	}
	return b, 0
}

// runAlone runs the statement for a single request on the caller's goroutine, because waking
// another goroutine would take as long as the statement.
func (a *Authenticator) runAlone(b *batch) {
	a.resolve(b)
	a.runNext()
}

// runBatch runs the statement of the next batch.
func (a *Authenticator) runBatch() {
	// Requests that are about to arrive can join this batch instead of the next one.
	runtime.Gosched()
	b := a.take()
	a.resolve(b)
	b.unread.Store(int32(len(b.wanted))) //nolint:gosec // at most maxBatch
	close(b.done)
}

// wait waits for the results of the batch. It does not watch the context of the request, which
// would allocate a channel for each: the batch is done within the timeout. The last request to have
// its result starts the next batch, so that batches grow while the processors are busy.
func (a *Authenticator) wait(b *batch) {
	<-b.done
	if b.unread.Add(-1) == 0 {
		a.runNext()
	}
}

// take removes and returns the next batch. No request can join it after that.
func (a *Authenticator) take() *batch {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.next
	a.next = nil
	a.gathered = len(taken.wanted) > 1
	return taken
}

// runNext runs the next batch on a goroutine of its own, if requests wait.
func (a *Authenticator) runNext() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running = a.next != nil
	if a.running {
		go a.runBatch()
	}
}
