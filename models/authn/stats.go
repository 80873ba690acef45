package authn

import "sync/atomic"

// Stats are counts since the start of the process.
type Stats struct {
	Lookups      uint64 // requests for a key
	Statements   uint64 // statements that answered them
	EpochChanges uint64 // times that memory was dropped because the epoch had changed
	Failures     uint64 // batches without an answer from the database
}

type counters struct{ lookups, statements, epochChanges, failures atomic.Uint64 }

// Stats returns the counts.
func (a *Authenticator) Stats() Stats {
	return Stats{
		Lookups: a.counts.lookups.Load(), Statements: a.counts.statements.Load(),
		EpochChanges: a.counts.epochChanges.Load(), Failures: a.counts.failures.Load(),
	}
}
