package keys

import (
	"time"

	"portal/models/authn"
	"portal/models/internal/db"
	"portal/models/usage"
	"portal/models/workload"
)

// Keys are the API keys of accounts.
type Keys struct {
	db    *db.DB
	usage *usage.Recorder

	refusals    *keyRefusals
	maxLifetime time.Duration // of new keys; 0: no limit
	// unusedLifetime is the longest time without a use until a key is revoked; 0: no limit.
	unusedLifetime time.Duration
	issuers        workload.Issuers // whose public keys are fetched
}

// Services are those of this package. They share the keys and what waits in memory.
type Services struct {
	Keys     *Keys
	Usage    *Usage
	Unused   *Unused
	Leaks    *Leaks
	Workload *Workload
	API      *API
}

// Usage is how often, from where and for what keys are used.
type Usage struct{ keys *Keys }

// Unused are the keys that nobody uses, and how long they stay active.
type Unused struct{ keys *Keys }

// Leaks are the keys that were found in public.
type Leaks struct{ keys *Keys }

// Workload are the keys that stand for the workloads of trusted issuers.
type Workload struct{ keys *Keys }

// Options configure [Services].
type Options struct {
	MaxLifetime    time.Duration    // of new keys; 0: no limit
	UnusedLifetime time.Duration    // the longest time without a use until a key is revoked; 0: no limit
	Issuers        workload.Issuers // whose public keys are fetched
}

// New returns the services, which add uses of keys to the recorder.
func New(db *db.DB, recorder *usage.Recorder, authenticator *authn.Authenticator, o Options) *Services {
	k := &Keys{
		db: db, usage: recorder, refusals: newKeyRefusals(db),
		maxLifetime: o.MaxLifetime, unusedLifetime: o.UnusedLifetime, issuers: o.Issuers,
	}
	return &Services{
		Keys: k, Usage: &Usage{k}, Unused: &Unused{k}, Leaks: &Leaks{k}, Workload: &Workload{k},
		API: &API{db: db, authn: authenticator, usage: recorder, refusals: k.refusals},
	}
}

// API authenticates the requests of the JSON API.
type API struct {
	db    *db.DB
	authn *authn.Authenticator
	usage *usage.Recorder

	refusals *keyRefusals
}
