package templates

import (
	"time"

	"portal/models/keys"
)

// KeyPage is /api-keys/:id.
type KeyPage struct {
	keys.Key
	UsageChoice

	All      string  // URL of the chart of all keys
	Ended    *Moment // when it was revoked or expired; nil: it is active
	Expired  bool
	Expires  *KeyExpires // nil: never
	LastUsed *Moment     // nil if never used
	Created  Moment
	Creator  string // email of the user who generated the key; empty if unknown or the only one

	Rotation   *KeyRotation // with another active key; nil if there is none
	Agents     []string     // the names of those in its list
	Networks   []string     // empty: any
	CallLimits string       // how much of them is used, such as "3 of 5 calls"; empty: none
	Trust      string       // who can use a key without a secret

	Support   string // URL of the support; may be empty
	Chart     UsageChart
	Columns   []Column // of the sources
	Sources   []KeySource
	Refusals  []KeyRefusal
	Exchanges []ExchangeRow // of a key without a secret
}

func (KeyPage) screen() screen {
	return screen{file: "api_keys/show.html", section: SectionAPIKeys}
}

// Restricted reports whether the key has a list of agents, which may be empty.
func (p KeyPage) Restricted() bool { return p.Key.Agents != nil }

// Rotates reports whether the page offers a rotation, as [APIKeyRow.Rotates] does.
func (p KeyPage) Rotates() bool { return APIKeyRow{Key: p.Key, Rotation: p.Rotation}.Rotates() }

// KeySource is where requests with a key come from. Without an address, it is all others.
type KeySource struct {
	Address, Client     string
	FirstSeen, LastSeen Moment
	Requests            Count
	Refused             bool // by the networks in a form
	Perhaps             bool // because the networks have only some of the source's addresses
}

// MaxRefusals is how many refused requests the page has.
func (KeyPage) MaxRefusals() int { return keys.MaxKeyRefusals }

// KeyRefusal is a refused request.
type KeyRefusal struct {
	keys.KeyRefusal

	Time Moment
}

// NewKeyRefusals formats refused requests.
func NewKeyRefusals(refusals []keys.KeyRefusal, now time.Time) []KeyRefusal {
	rows := make([]KeyRefusal, len(refusals))
	for i, one := range refusals {
		rows[i] = KeyRefusal{KeyRefusal: one, Time: NewMoment(one.At, now)}
	}
	return rows
}

// NewKeySources formats sources.
func NewKeySources(sources []keys.KeySource, now time.Time) []KeySource {
	rows := make([]KeySource, len(sources))
	for i, one := range sources {
		rows[i] = KeySource{
			Address: one.Address, Client: one.Client, Requests: Count(one.Requests),
			FirstSeen: NewMoment(one.FirstSeen, now), LastSeen: NewMoment(one.LastSeen, now),
		}
	}
	return rows
}
