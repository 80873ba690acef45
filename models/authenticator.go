package models

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// authTimeout bounds the question to the database, and the wait for the
	// answer, which may begin while another question is under way.
	authTimeout = 1800 * time.Millisecond
	// maxBatch bounds one question, and what an answer can hold.
	maxBatch = 1024
)

// authenticator answers whose a key is at nearly the speed of memory, and is
// never out of date. It is correct for this reason.
//
// The database holds one row, auth_epoch, with a random value that triggers
// replace in the very transaction of anything that can take access away, an
// operator's own SQL included. Memory holds facts that grant access, all of
// them read in statements that read one and the same epoch. If a later
// statement reads that epoch again, no such transaction has committed between
// the two, for a value of 128 random bits does not come back; so every fact in
// memory is as true at the later statement as when it was read. Only equality
// is tested: a failover or a restored backup brings another epoch or the true
// rows, and neither can make an old memory look fresh.
//
// Requests that arrive while a statement is under way wait and share the next
// one, which asks for the epoch and for the rows of keys that memory lacks. That
// statement, which [authSource] runs, is the linearization point of all the
// requests it answers: it begins after the last of them arrived and ends before
// the first of them is answered. A key whose revocation was confirmed before a
// request arrived is therefore refused, on every instance, with nothing sent
// between them and nothing that must expire. If the epoch has moved, memory is
// dropped and a second statement reads the rows of the whole batch. If the
// database does not answer, nobody is answered from memory: the requests fail.
//
// What is not granted is never remembered: unknown keys cost no memory, and a
// key is good as soon as it is made.
type authenticator struct {
	source authSource

	mu      sync.Mutex
	asking  bool         // serve is running
	waiting []*authQuery // those that will share the next batch; empty unless asking
	memory  authMemory
}

// authSource is where the facts are: one implementation a database.
type authSource interface {
	// epoch reads the epoch, in one statement on the primary.
	epoch(ctx context.Context) (authEpoch, error)
	// keys reads the epoch and what there is of these keys, in one statement
	// on the primary. Unknown keys are left out.
	keys(ctx context.Context, hashes []keyHash) (authEpoch, map[keyHash]keyFacts, error)
	close() error
}

type authEpoch [16]byte

// errNoEpoch is a database without its epoch, as half-way through a restore:
// what it says of keys is no answer.
var errNoEpoch = errors.New("the database has no authentication epoch")

// keyFacts is what the database knows of a key.
type keyFacts struct {
	Principal
	active bool // neither is the key revoked nor its account disabled
}

type authQuery struct {
	hash  keyHash
	facts keyFacts
	found bool
	epoch authEpoch // under which the facts hold
	err   error
	done  chan struct{} // receives once the rest is filled in

	// patience ends the wait: a timer that is used again costs a tenth of the
	// context that would do the same.
	patience *time.Timer
}

var authQueries = sync.Pool{New: func() any {
	return &authQuery{done: make(chan struct{}, 1), patience: time.NewTimer(authTimeout)}
}}

// find returns what is known of the key with this hash and the epoch at which
// it was true, or [ErrKeyUnknown], or why the database did not answer.
func (a *authenticator) find(ctx context.Context, hash keyHash) (keyFacts, authEpoch, error) {
	if err := ctx.Err(); err != nil {
		return keyFacts{}, authEpoch{}, err
	}
	query, _ := authQueries.Get().(*authQuery)
	*query = authQuery{hash: hash, done: query.done, patience: query.patience}
	query.patience.Reset(authTimeout)
	a.enqueue(query)
	// Where nobody answers in time the batch may still fill the query in, so
	// that it is not used again.
	select {
	case <-query.done:
	case <-query.patience.C:
		return keyFacts{}, authEpoch{}, context.DeadlineExceeded
	case <-ctx.Done():
		return keyFacts{}, authEpoch{}, ctx.Err()
	}
	query.patience.Stop()
	defer authQueries.Put(query)
	if query.err == nil && !query.found {
		query.err = ErrKeyUnknown
	}
	return query.facts, query.epoch, query.err
}

// enqueue adds the query to the next batch.
func (a *authenticator) enqueue(query *authQuery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, query)
	if !a.asking {
		a.asking = true
		go a.serve()
	}
}

// serve asks for one batch after the other until nobody is waiting. It is a
// goroutine of its own, so that a database which hangs in the driver holds up
// no request beyond its deadline.
func (a *authenticator) serve() {
	for {
		// Whoever is about to arrive shares this batch instead of the next.
		runtime.Gosched()
		a.mu.Lock()
		batch := a.waiting[:min(len(a.waiting), maxBatch)]
		a.waiting = slices.Clone(a.waiting[len(batch):])
		a.asking = len(batch) > 0
		a.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		a.answer(batch)
		for _, query := range batch {
			query.done <- struct{}{}
		}
	}
}

// answer fills in the batch. Only serve runs it.
func (a *authenticator) answer(batch []*authQuery) {
	// Not a request's own context: it asks for others too.
	ctx, cancel := context.WithTimeout(context.Background(), authTimeout)
	defer cancel()
	missing, remembered := a.recall(batch)
	epoch, found, err := a.ask(ctx, missing)
	if err == nil && len(missing) < len(batch) && epoch != remembered {
		// What came from memory may no longer be so.
		missing = missing[:0]
		for _, query := range batch {
			query.found = false
			missing = append(missing, query.hash)
		}
		epoch, found, err = a.ask(ctx, missing)
	}
	if err == nil {
		a.remember(epoch, found)
	}
	for _, query := range batch {
		if !query.found {
			query.facts, query.found = found[query.hash]
		}
		query.epoch, query.err = epoch, err
	}
}

// ask runs the statement that is the linearization point.
func (a *authenticator) ask(ctx context.Context, hashes []keyHash) (authEpoch, map[keyHash]keyFacts, error) {
	if len(hashes) == 0 {
		epoch, err := a.source.epoch(ctx)
		return epoch, nil, err
	}
	return a.source.keys(ctx, hashes)
}

// recall fills in what memory holds, and returns the hashes that it lacks and
// the epoch under which the rest was true.
func (a *authenticator) recall(batch []*authQuery) (missing []keyHash, epoch authEpoch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, query := range batch {
		if query.facts, query.found = a.memory.keys[query.hash]; !query.found {
			missing = append(missing, query.hash)
		}
	}
	return missing, a.memory.epoch
}

// remember keeps the facts that grant access.
func (a *authenticator) remember(epoch authEpoch, found map[keyHash]keyFacts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.memory.at(epoch)
	for hash, facts := range found {
		if facts.active {
			put(a.memory.keys, hash, facts)
		}
	}
}

// rememberAgent keeps the fact that an agent was an account's at an epoch,
// unless memory has moved on.
func (a *authenticator) rememberAgent(epoch authEpoch, agent accountAgent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.memory.epoch == epoch {
		put(a.memory.agents, agent, struct{}{})
	}
}

// agentHeld reports whether memory knows that an agent was an account's at this
// epoch.
func (a *authenticator) agentHeld(epoch authEpoch, agent accountAgent) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, held := a.memory.agents[agent]
	return held && a.memory.epoch == epoch
}
