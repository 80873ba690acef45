package keys

import (
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/value"
)

const (
	// MaxKeyRefusals is how many refused requests of a key are kept.
	MaxKeyRefusals = 50
	// KeyRefusalsKept is how long they are kept.
	KeyRefusalsKept = 7 * value.Day
)

// KeyRefusal is a request with a key that was refused.
type KeyRefusal struct {
	bun.BaseModel `bun:"table:api_key_refusals,alias:refusal"`

	KeyID     uuid.UUID `bun:"api_key_id,pk"`
	ID        uuid.UUID `bun:",pk"`
	At        time.Time
	Reason    string // a word, as the response has it
	Route     string // with the method
	Address   string // as a source has it
	Client    string
	RequestID string
}

// Refusal is what the API knows of a request that it refuses.
type Refusal struct {
	Reason, Route, RequestID string

	From Source
}

func (r KeyRefusal) compare(other KeyRefusal) int {
	if order := other.At.Compare(r.At); order != 0 {
		return order // the newest first
	}
	return value.CompareIDs(other.ID, r.ID)
}
