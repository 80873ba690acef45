package models

import (
	"context"
	"database/sql"

	"portal/models/authn"
	"portal/models/usage"
)

// Stats describe the state of a store, for metrics.
type Stats struct {
	Authentication authn.Stats
	PortalPool     sql.DBStats // the connections of the pages and the background tasks
	APIPool        sql.DBStats // the connections of the API's reads

	Usage          usage.Stats
	HashQueue      int // requests that wait for password hashing
	SignInFailures SignInFailures
	MailsDropped   uint64 // because too many waited
	HangUpFailures uint64 // failed attempts to end calls
}

// SignInFailures counts refused passwords and codes since the start of the process, at sign-in and
// to confirm a change.
type SignInFailures struct {
	Wrong    uint64
	Limited  uint64 // not checked, because there were too many wrong ones before
	Disabled uint64 // right, but the user or the account is disabled
}

// Stats returns the state. It does not use the database.
func (s *Store) Stats() Stats {
	failures := &s.SignIn.guesses.failures
	return Stats{
		Authentication: s.API.authn.Stats(), PortalPool: s.db.Stats(), APIPool: s.db.api.Stats(),
		Usage: s.usage.Stats(), HashQueue: s.SignIn.passwords.hasher.Waiting(), MailsDropped: s.db.mailsDropped.Load(),
		HangUpFailures: s.Calls.failures.Load(),
		SignInFailures: SignInFailures{
			Wrong: failures.wrong.Load(), Limited: failures.limited.Load(), Disabled: failures.disabled.Load(),
		},
	}
}

// Count returns the number of sessions that have not reached their absolute end. The error
// may be [ErrUnavailable].
func (s *Sessions) Count(ctx context.Context) (int, error) {
	count, err := s.db.NewSelect().Model((*Session)(nil)).Where("expires_at > ?", s.db.Now()).Count(ctx)
	return int(count), failed("count sessions", err)
}
