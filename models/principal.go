package models

import (
	"time"

	"github.com/google/uuid"

	"portal/models/authn"
	"portal/models/usage"
)

// Principal is the account and the key of an authenticated API request.
type Principal struct {
	AccountID uuid.UUID
	KeyID     uuid.UUID

	epoch  authn.Epoch // the epoch at which the key was active
	waited time.Duration
}

// Waited returns how long authentication took. The rest of the request has [Timeout] minus this
// time.
func (p Principal) Waited() time.Duration { return p.waited }

// API authenticates the requests of the JSON API.
type API struct {
	db    *DB
	authn *authn.Authenticator
	usage *usage.Recorder
}
