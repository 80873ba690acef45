package value

import "time"

// Day is 24 hours of UTC.
const Day = 24 * time.Hour

const (
	// MaxActiveKeys is the maximum number of active keys of an account.
	MaxActiveKeys = 100
	// MaxKeyAgents is the maximum number of agents in the list of a key.
	MaxKeyAgents = 100
	// MaxAgents is the largest number of agents that an account can have.
	MaxAgents = 1000
	// MaxInvitations is the maximum number of an account's pending invitations.
	MaxInvitations = 100
	// MaxPasskeys is the maximum number of passkeys of a user.
	MaxPasskeys = 10
)

const (
	// MaintenanceBatch is the number of rows that one statement of the maintenance reads.
	MaintenanceBatch = 1000
	// WriteBatch is the number of rows that it deletes or changes at once. A small batch does
	// not delay other writers.
	WriteBatch = 250
)
