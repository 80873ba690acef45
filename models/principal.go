package models

import "github.com/google/uuid"

// Principal is who makes an API request.
type Principal struct {
	AccountID uuid.UUID
	KeyID     uuid.UUID

	epoch authEpoch // at which the key was seen to be active
}
