package agents

import (
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// Agent is a voice agent of an account.
type Agent struct {
	bun.BaseModel `bun:"table:agents"`

	ID        uuid.UUID `bun:",pk,type:uuid"`
	AccountID uuid.UUID
	Name      string
	CreatedAt time.Time
	PausedAt  *time.Time // if set, the agent is refused like one that was removed
}

// EntryID returns the id of the row, for pages of a list.
func (a Agent) EntryID() uuid.UUID { return a.ID }

// NewAgent is the input of [Agents.Create].
type NewAgent struct {
	ID     uuid.UUID // zero to generate one
	Name   string    // 1 to 100 characters
	FormID uuid.UUID // of the rendered form, random; zero if none. Ignored if ID is set
}
