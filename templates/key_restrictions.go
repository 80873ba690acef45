package templates

import (
	"github.com/google/uuid"

	"portal/models"
)

// KeyRestrictionsPage is /api-keys/:id/restrictions.
type KeyRestrictionsPage struct {
	Key          models.Key
	Restrictions KeyRestrictions
	Note         string  // as submitted
	NoteProblem  string  // the error of the note
	LastUsed     *Moment // nil if never used

	Sources    []KeySource   // in the last 30 days; those that the networks refuse are first
	AgentsUsed []KeyAgentUse // in the last 30 days; those that the list leaves out are first
	MoreAgents int           // that were used too

	RefusedSources, RefusedAgents int
}

func (KeyRestrictionsPage) screen() screen {
	return screen{file: "api_keys/restrictions.html", section: SectionAPIKeys}
}

func (KeyRestrictionsPage) fragment() string { return "key-restrictions-form" }

// KeyRestrictions are the controls that restrict a key.
type KeyRestrictions struct {
	Expires    string // the value of one of Expiries, as submitted
	Expiries   []KeyExpiry
	ExpiryDate string // as submitted, such as "2026-12-22"
	Maximum    string // the longest time until a key expires; empty: no limit

	OnlyThese bool // only the chosen agents
	Agents    []KeyAgent
	Networks  string // as submitted, one in each line

	AddressAdded    string // the result of "Add my address"
	AddressDoubtful bool   // the address is probably not the user's own

	// The errors of the controls.
	ExpiresProblem, AgentsProblem, NetworksProblem string
}

// KeyExpiry is an option of when a key expires.
type KeyExpiry struct{ Value, Name string }

// The values of expiries that are not a number of days.
const (
	ExpiresNever  = "never"
	ExpiresOnDate = "date"
	ExpiresLatest = "latest" // as late as the portal allows
)

// KeyAgent is an agent that a key can be restricted to.
type KeyAgent struct {
	ID     uuid.UUID
	Name   string
	Chosen bool
}

// KeyAgentUse is when a key last used an agent.
type KeyAgentUse struct {
	Name    string
	At      Moment
	Refused bool // by the agents in a form
}

// OnDate reports whether the key expires on the date.
func (r KeyRestrictions) OnDate() bool { return r.Expires == ExpiresOnDate }

// Open reports whether the controls of a new key are shown: one of them was used.
func (r KeyRestrictions) Open() bool {
	return len(r.Expiries) > 0 && r.Expires != r.Expiries[0].Value || r.OnlyThese || r.Networks != "" || r.AddressAdded != "" ||
		r.ExpiresProblem+r.AgentsProblem+r.NetworksProblem != ""
}
