package models

import (
	"time"

	"github.com/google/uuid"
)

// Principal is who makes an API request.
type Principal struct {
	AccountID uuid.UUID
	KeyID     uuid.UUID

	epoch  authEpoch // at which the key was seen to be active
	waited time.Duration
}

// Waited returns how long the database took to say who it is: what else the
// request asks has so much less time.
func (p Principal) Waited() time.Duration { return p.waited }
