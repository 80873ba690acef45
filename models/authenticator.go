package models

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// authTimeout bounds the question to the database; callers that wait for
	// the answer have deadlines of their own.
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
	leading bool         // a request is asking for a batch
	waiting []*authQuery // those that will share the next one; empty unless leading
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
	// turn tells a waiting request that its answer is there, or that it leads.
	turn chan turn
}

type turn bool

const (
	answered turn = false
	lead     turn = true
)

var authQueries = sync.Pool{New: func() any { return &authQuery{turn: make(chan turn, 1)} }}

// find returns what is known of the key with this hash and the epoch at which
// it was true, or [ErrKeyUnknown], or why the database did not answer.
func (a *authenticator) find(ctx context.Context, hash keyHash) (keyFacts, authEpoch, error) {
	query, _ := authQueries.Get().(*authQuery)
	*query = authQuery{hash: hash, turn: query.turn}
	if a.enqueue(query) == answered {
		select {
		case turn := <-query.turn:
			if turn == lead {
				a.leadBatch(query)
			}
		case <-ctx.Done():
			// The next batch may count on this request to lead it.
			go func() {
				if <-query.turn == lead {
					a.leadBatch(query)
				}
			}()
			return keyFacts{}, authEpoch{}, ctx.Err()
		}
	} else {
		a.leadBatch(query)
	}
	defer authQueries.Put(query)
	if query.err == nil && !query.found {
		query.err = ErrKeyUnknown
	}
	return query.facts, query.epoch, query.err
}

// enqueue adds the query to the next batch, and says whether to lead that or to
// wait for its turn.
func (a *authenticator) enqueue(query *authQuery) turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, query)
	if a.leading {
		return answered
	}
	a.leading = true
	return lead
}

// leadBatch asks for all that are waiting, own first among them, and hands the
// lead to one that has come since.
func (a *authenticator) leadBatch(own *authQuery) {
	// Whoever is about to arrive shares this batch instead of the next.
	runtime.Gosched()
	a.mu.Lock()
	batch := a.waiting[:min(len(a.waiting), maxBatch)]
	a.waiting = slices.Clone(a.waiting[len(batch):])
	a.mu.Unlock()

	a.answer(batch)

	a.mu.Lock()
	var next *authQuery
	if a.leading = len(a.waiting) > 0; a.leading {
		next = a.waiting[0]
	}
	a.mu.Unlock()
	if next != nil {
		next.turn <- lead
	}
	for _, query := range batch {
		if query != own {
			query.turn <- answered
		}
	}
}

// answer fills in the batch. Only the leader runs it.
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
