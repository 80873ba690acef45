package authn

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/netip"
	"time"

	"github.com/google/uuid"
)

// Reader reads authentication data from one kind of database. Epoch and Keys return by their
// deadline even if the database hangs. An [Authenticator] makes one call at a time.
type Reader interface {
	// Epoch reads the epoch and the time, in one statement on the primary.
	Epoch(deadline time.Time) (Moment, error)

	// Keys reads the epoch, the time and these keys, in one statement on the primary. Unknown
	// keys have no entry in the result.
	Keys(deadline time.Time, wanted []KeyRef) (Moment, map[KeyRef]Key, error)

	// Close releases the statements and connections of the reader.
	Close() error
}

// Epoch identifies a state of the database. Two equal epochs mean the same keys, agents and
// accounts.
type Epoch struct {
	Value      EpochValue
	Connection uint64 // the number of the connection that read the value
}

// Moment is the state of the database at a statement.
type Moment struct {
	Epoch Epoch
	Time  time.Time // by the database's clock
}

// EpochValue is the random value in the database that changes with every change of access.
type EpochValue [16]byte

// KeyHash is the SHA-256 hash of an API key.
type KeyHash = [sha256.Size]byte

// KeyRef refers to a key by its id if ID is set, and otherwise by its hash.
type KeyRef struct {
	Hash KeyHash
	ID   uuid.UUID
}

// Key is the stored data of an API key.
type Key struct {
	ID        uuid.UUID
	AccountID uuid.UUID
	// The key is not revoked and has not expired, and its account is not disabled.
	Active  bool
	Revoked bool // the key is revoked
	Expired bool // the key has expired; set by an [Authenticator]

	Restrictions *Restrictions // nil: none
}

// Restrictions are what a key cannot do. They do not change.
type Restrictions struct {
	ExpiresAt time.Time      // the key is refused from then on; zero: never
	Agents    []uuid.UUID    // nil: all of the account
	Networks  []netip.Prefix // nil: any
	Calls     bool           // the key or its account has limits of calls
	Reports   bool           // the key only reads reports
	// The version of the trust rule of a key without a secret; zero: it has one.
	Trust uuid.UUID
}

// newRestrictions returns the restrictions in columns, which are JSON lists or NULL. If a list is
// malformed, because an operator changed it by hand, it allows nothing.
func newRestrictions(expiresAt time.Time, agents, networks []byte, calls, reports bool, trust uuid.UUID) *Restrictions {
	if expiresAt.IsZero() && agents == nil && networks == nil && !calls && !reports && trust == uuid.Nil {
		return nil
	}
	return &Restrictions{
		ExpiresAt: expiresAt, Agents: newList[uuid.UUID](agents), Networks: newList[netip.Prefix](networks), Calls: calls, Reports: reports, Trust: trust,
	}
}

func newList[T any](column []byte) []T {
	if column == nil {
		return nil
	}
	list := []T{}
	if err := json.Unmarshal(column, &list); err != nil || list == nil {
		return []T{}
	}
	return list
}

// at returns the key as it is at a time. An expired key is not active.
func (k Key) at(now time.Time) Key {
	if k.Restrictions != nil && !k.Restrictions.ExpiresAt.IsZero() && !now.Before(k.Restrictions.ExpiresAt) {
		k.Active, k.Expired = false, true
	}
	return k
}

// Agent is the fact that an account has an agent.
type Agent struct {
	AccountID uuid.UUID
	ID        uuid.UUID
}

var (
	// ErrKeyUnknown means that no key has the hash or the id.
	ErrKeyUnknown = errors.New("the API key is unknown")

	// ErrNoEpoch means that the database has no epoch, for example during a restore. Its rows
	// about keys cannot be trusted.
	ErrNoEpoch = errors.New("the database has no authentication epoch")

	// ErrStandby means that the server is a standby, whose rows may be out of date.
	ErrStandby = errors.New("the database is a standby")

	// ErrBusy means that too many requests wait for the database.
	ErrBusy = errors.New("too many requests")
)
