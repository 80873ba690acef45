package people

import (
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/value"
)

// Account is a customer, which owns agents and API keys, and whose users sign in to the portal.
type Account struct {
	bun.BaseModel `bun:"table:accounts"`

	ID         uuid.UUID `bun:",pk"`
	Name       string
	CreatedAt  time.Time
	DisabledAt *time.Time   // if set, the account's keys are refused and its users cannot sign in
	Limits     value.Limits `bun:",nullzero"` // of its calls
	// UnusedLifetime is the account's choice, which keys.Unused.SetLifetime sets; 0: none.
	UnusedLifetime time.Duration `bun:",nullzero"`
	Seeded         bool          // with data for demonstrations, which may be replaced
}

// EntryID returns the id of the row, for pages of a list.
func (a Account) EntryID() uuid.UUID { return a.ID }

// AccountSummary is an account in the list of [Accounts.Summaries].
type AccountSummary struct {
	Account    `bun:",extend"`
	Keys       int        `bun:",scanonly"` // active ones
	Users      int        `bun:",scanonly"`
	LastUsedAt *time.Time `bun:",scanonly"` // the last request with one of its keys; nil: never
}

// NewAccount is the input of [Accounts.Create].
type NewAccount struct {
	Name     string // 1 to 100 characters
	Email    string // unique, compared without case, see HashEmail
	Password string // 12 to 128 characters, not trimmed
	Seeded   bool
}
