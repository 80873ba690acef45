package models

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
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

	mu     sync.Mutex
	asking bool       // somebody asks the source
	next   *authBatch // gathers while they do; nil while nobody waits
	shared bool       // the last batch that gathered had more than one request
	memory authMemory
}

// authSource is where the facts are: one implementation a database. One
// question is asked at a time, and has its answer or an error by its deadline,
// whatever the database does.
type authSource interface {
	// epoch reads the epoch, in one statement on the primary.
	epoch(deadline time.Time) (authEpoch, error)
	// keys reads the epoch and what there is of these keys, in one statement
	// on the primary. Unknown keys are left out.
	keys(deadline time.Time, hashes []keyHash) (authEpoch, map[keyHash]keyFacts, error)
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

// authBatch is the requests that one statement answers.
type authBatch struct {
	hashes   []keyHash
	deadline time.Time // that of the first of them

	// done is closed once what follows is filled in; nil for a request alone,
	// whose own goroutine does that.
	done    chan struct{}
	answers []authAnswer // to each of the hashes
	epoch   authEpoch    // under which they hold
	err     error
}

type authAnswer struct {
	keyFacts
	found bool
}

// find returns what is known of the key with this hash and the epoch at which
// it was true, or [ErrKeyUnknown], or why the database did not answer.
func (a *authenticator) find(ctx context.Context, hash keyHash) (keyFacts, authEpoch, error) {
	if err := ctx.Err(); err != nil {
		return keyFacts{}, authEpoch{}, err
	}
	batch, place := a.join(hash)
	if batch.done == nil {
		if deadline, ok := ctx.Deadline(); ok && deadline.Before(batch.deadline) {
			batch.deadline = deadline
		}
		a.lead(batch)
	} else {
		select {
		case <-batch.done:
		case <-ctx.Done():
			return keyFacts{}, authEpoch{}, ctx.Err()
		}
	}
	if batch.err != nil {
		return keyFacts{}, authEpoch{}, batch.err
	}
	answer := batch.answers[place]
	if !answer.found {
		return keyFacts{}, batch.epoch, ErrKeyUnknown
	}
	return answer.keyFacts, batch.epoch, nil
}

// join adds the hash to the batch that waits. Where nobody is asking, and requests
// have come one by one of late, it returns a batch of its own instead, whose done
// is nil, and which the caller is to lead.
func (a *authenticator) join(hash keyHash) (batch *authBatch, place int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next != nil {
		a.next.hashes = append(a.next.hashes, hash)
		return a.next, len(a.next.hashes) - 1
	}
	batch = newAuthBatch(hash)
	idle := !a.asking
	a.asking = true
	if idle && !a.shared {
		return batch, 0
	}
	batch.done = make(chan struct{})
	a.next = batch
	if idle {
		go a.serve()
	}
	return batch, 0
}

func newAuthBatch(hash keyHash) *authBatch {
	return &authBatch{hashes: []keyHash{hash}, deadline: time.Now().Add(Timeout)}
}

// lead asks for a request alone, on its own goroutine: waking another would take
// as long as the question. Who has come meanwhile is left to [authenticator.serve].
func (a *authenticator) lead(batch *authBatch) {
	// Deferred: a panic, which ends the request alone, must not leave the others
	// waiting.
	defer func() {
		if a.stillAsked() {
			go a.serve()
		}
	}()
	a.answer(batch)
}

// serve asks for one batch after the other until nobody is waiting.
func (a *authenticator) serve() {
	for {
		// Whoever is about to arrive shares this batch instead of the one after.
		runtime.Gosched()
		batch := a.take()
		a.answer(batch)
		close(batch.done)
		if !a.stillAsked() {
			return
		}
	}
}

// stillAsked reports whether somebody waits. If not, asking has ended.
func (a *authenticator) stillAsked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asking = a.next != nil
	return a.asking
}

// take returns the batch that waits, which is complete with that.
func (a *authenticator) take() *authBatch {
	a.mu.Lock()
	defer a.mu.Unlock()
	batch := a.next
	a.next = nil
	a.shared = len(batch.hashes) > 1
	return batch
}

// answer fills in the batch. One batch at a time has its answer.
func (a *authenticator) answer(batch *authBatch) {
	missing, remembered := a.recall(batch)
	var found map[keyHash]keyFacts
	batch.epoch, found, batch.err = a.ask(batch.deadline, missing)
	if batch.err == nil && len(missing) < len(batch.hashes) && batch.epoch != remembered {
		// What came from memory may no longer be so.
		clear(batch.answers)
		missing = batch.hashes
		batch.epoch, found, batch.err = a.ask(batch.deadline, missing)
	}
	if batch.err != nil || len(missing) == 0 {
		return
	}
	a.remember(batch.epoch, found)
	for i, hash := range batch.hashes {
		if answer := &batch.answers[i]; !answer.found {
			answer.keyFacts, answer.found = found[hash]
		}
	}
}

// ask runs the statement that is the linearization point.
func (a *authenticator) ask(deadline time.Time, hashes []keyHash) (authEpoch, map[keyHash]keyFacts, error) {
	if len(hashes) == 0 {
		epoch, err := a.source.epoch(deadline)
		return epoch, nil, err
	}
	return a.source.keys(deadline, hashes)
}

// recall fills in what memory holds, and returns the hashes that it lacks and
// the epoch under which the rest was true.
func (a *authenticator) recall(batch *authBatch) (missing []keyHash, epoch authEpoch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	batch.answers = make([]authAnswer, len(batch.hashes))
	for i, hash := range batch.hashes {
		answer := &batch.answers[i]
		if answer.keyFacts, answer.found = a.memory.keys[hash]; !answer.found {
			missing = append(missing, hash)
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
