package templates

import (
	"slices"

	"github.com/google/uuid"

	"portal/models/keys"
)

// KeyRestrictionsPage is /api-keys/:id/restrictions.
type KeyRestrictionsPage struct {
	Key          keys.Key
	Restrictions KeyRestrictions
	Version      string  // of the key that the form was made from
	Note         string  // as submitted
	NoteProblem  string  // the error of the note
	LastUsed     *Moment // nil if never used
	Back         string  // URL that Cancel leads to
	FromKey      bool    // which is the page of the key

	Sources    []KeySource   // in the last 30 days; those that the networks refuse are first
	AgentsUsed []KeyAgentUse // in the last 30 days; those that the list leaves out are first
	MoreAgents int           // that were used too

	RefusedSources, RefusedAgents int

	// If the key has changed since the form was made; otherwise nil.
	Current *CurrentRestrictions
}

// CurrentRestrictions are the state of a key beside a form that was made from an older one.
type CurrentRestrictions struct {
	KeyRestrictions
	Note string
}

func (KeyRestrictionsPage) screen() screen {
	return screen{file: "api_keys/restrictions.html", section: SectionAPIKeys}
}

func (KeyRestrictionsPage) fragment() string { return "key-restrictions-form" }

// Requests returns the requests of all sources.
func (p KeyRestrictionsPage) Requests() (sum Count) {
	for _, source := range p.Sources {
		sum += source.Requests
	}
	return sum
}

// RefusedRequests returns the requests of the sources that are refused, or may be.
func (p KeyRestrictionsPage) RefusedRequests() (sum Count) {
	for _, source := range p.Sources {
		if source.Refused {
			sum += source.Requests
		}
	}
	return sum
}

// KeyRestrictions are the controls that restrict a key.
type KeyRestrictions struct {
	Expires    string // the value of one of Expiries, as submitted
	Expiries   []KeyExpiry
	ExpiryDate string // as submitted, such as "2026-12-22"
	Maximum    string // the longest time until a key expires; empty: no limit
	New        bool   // of a key that is generated

	OnlyReports bool // the key reads reports and reaches no agents

	OnlyThese bool // only the chosen agents
	Agents    []KeyAgent
	Networks  string // as submitted, one in each line

	AddressAdded    string // the result of "Add my address"
	AddressDoubtful bool   // the address is probably not the user's own

	Limits []KeyLimit // of calls; none without LiveKit

	// The errors of the controls.
	ExpiresProblem, AgentsProblem, NetworksProblem string
}

// KeyLimit is the field of a limit of calls.
type KeyLimit struct {
	ID, Name, Title string
	Value           string // as submitted
	Problem         string
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

// Chosen returns the names of the agents in the list of the key.
func (r KeyRestrictions) Chosen() (names []string) {
	for _, agent := range r.Agents {
		if agent.Chosen {
			names = append(names, agent.Name)
		}
	}
	return names
}

// OnDate reports whether the key expires on the date.
func (r KeyRestrictions) OnDate() bool { return r.Expires == ExpiresOnDate }

// ExpiryApart reports whether the expiry stands before the folded controls, because every new key
// needs one.
func (r KeyRestrictions) ExpiryApart() bool { return r.New && r.Maximum != "" }

// Open reports whether the folded controls of a new key are shown: one of them was used.
func (r KeyRestrictions) Open() bool { return r.usesOthers() || !r.ExpiryApart() && r.usesExpiry() }

func (r KeyRestrictions) usesExpiry() bool {
	return len(r.Expiries) > 0 && r.Expires != r.Expiries[0].Value || r.ExpiresProblem != ""
}

func (r KeyRestrictions) usesOthers() bool {
	return r.OnlyThese || r.Networks != "" || r.AddressAdded != "" || r.AgentsProblem+r.NetworksProblem != "" ||
		slices.ContainsFunc(r.Limits, func(limit KeyLimit) bool { return limit.Value+limit.Problem != "" })
}
