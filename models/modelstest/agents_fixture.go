package modelstest

import (
	"testing"
	"time"

	"portal/models"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/value"
)

// AllAgents is a page with all agents that an account can have.
var AllAgents = value.Page{Limit: value.MaxAgents}

// StoredUse returns the stored time of the agent's last use with a key, or the zero time.
func (f *Fixture) StoredUse(t *testing.T, agent agents.Agent, key keys.Key) (at time.Time) {
	t.Helper()
	var stored []time.Time
	Must(t, f.DB.NewRaw("SELECT used_at FROM api_key_agents WHERE agent_id = ? AND api_key_id = ?", agent.ID, key.ID).Scan(t.Context(), &stored))
	if len(stored) > 0 {
		at = stored[0]
	}
	return at
}

// CheckLastUsed fails the test unless the agent was last used at this time.
func CheckLastUsed(t *testing.T, when string, s *models.Store, agent agents.Agent, want time.Time) {
	t.Helper()
	if at, err := s.Agents.LastUsed(t.Context(), agent.AccountID, agent.ID); err != nil || !at.Equal(want) {
		t.Errorf("%s: last used at %v, want %v, %v", when, at, want, err)
	}
}
