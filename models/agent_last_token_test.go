package models_test

import (
	"testing"
	"time"

	"portal/models"
)

// lastToken returns the stored time of the agent's last token, or the zero time.
func (f *fixture) lastToken(t *testing.T, agent models.Agent) (at time.Time) {
	t.Helper()
	var stored []time.Time
	must(t, f.db.NewRaw("SELECT issued_at FROM agent_last_tokens WHERE agent_id = ?", agent.ID).Scan(t.Context(), &stored))
	if len(stored) > 0 {
		at = stored[0]
	}
	return at
}

func checkLastToken(t *testing.T, when string, s *models.Store, agent models.Agent, want time.Time) {
	t.Helper()
	if at, err := s.Agents.LastToken(t.Context(), agent.AccountID, agent.ID); err != nil || !at.Equal(want) {
		t.Errorf("%s: last token at %v, want %v, %v", when, at, want, err)
	}
}

func TestLastTokenIsKnownAtOnceAndWrittenBehind(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c, other := f.customer(t), f.customer(t)
		agent, unused := f.agent(t, c), f.agent(t, c)
		var issued time.Time
		f.briefly(t, models.Options{}, func(s *models.Store) {
			checkLastToken(t, "before the first token", s, agent, time.Time{})
			for range 3 {
				f.clock.Advance(time.Minute)
				s.Agents.TokenIssued(agent.ID)
				issued = f.clock.Now()
				checkLastToken(t, "before it is written", s, agent, issued)
			}
			checkError(t, "another account", errOf(s.Agents.LastToken(t.Context(), other.ID, agent.ID)), models.ErrAgentNotFound)
			eventually(t, "it is written", func() bool { return f.lastToken(t, agent).Equal(issued) })
			checkLastToken(t, "after it is written", s, agent, issued)
		})
		checkLastToken(t, "on another instance", f.Store, agent, issued)
		checkLastToken(t, "of an agent without tokens", f.Store, unused, time.Time{})
	})
}

// Because instances' clocks differ, the later time is kept, whichever instance writes last.
func TestLastTokenNeverMovesBack(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		agent := f.agent(t, f.customer(t))
		latest := f.clock.Now()
		// SQLite compares fractions of a second as text.
		for _, step := range []time.Duration{
			time.Hour - time.Duration(latest.Nanosecond()), // a whole second
			100 * time.Millisecond, 20 * time.Millisecond, time.Microsecond, 2 * time.Second,
		} {
			latest = latest.Add(step)
			at := latest
			f.briefly(t, models.Options{Now: func() time.Time { return at.Add(-time.Microsecond) }}, func(slow *models.Store) {
				f.briefly(t, models.Options{Now: func() time.Time { return at }}, func(s *models.Store) { s.Agents.TokenIssued(agent.ID) })
				slow.Agents.TokenIssued(agent.ID)
				checkLastToken(t, "in memory and stored", slow, agent, latest)
			})
			if stored := f.lastToken(t, agent); !stored.Equal(latest) {
				t.Errorf("stored %v, not %v", stored, latest)
			}
		}
	})
}

func TestLastTokenOfARemovedAgentIsDeleted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		ctx, c := t.Context(), f.customer(t)
		agent, kept := f.agent(t, c), f.agent(t, c)
		f.briefly(t, models.Options{}, func(s *models.Store) {
			s.Agents.TokenIssued(agent.ID)
			s.Agents.TokenIssued(kept.ID)
		})
		must(t, errOf(f.Agents.Remove(ctx, c.ID, agent.ID, c.actor)))
		if n := f.count(t, "SELECT count(*) FROM agent_last_tokens"); n != 1 {
			t.Errorf("%d rows after the removal, want 1", n)
		}
		checkError(t, "removed", errOf(f.Agents.LastToken(ctx, c.ID, agent.ID)), models.ErrAgentNotFound)

		// An instance writes the time of a token that it issued just before the removal.
		f.briefly(t, models.Options{}, func(s *models.Store) { s.Agents.TokenIssued(agent.ID) })
		must(t, f.Purge(ctx))
		if n := f.count(t, "SELECT count(*) FROM agent_last_tokens"); n != 1 || f.lastToken(t, kept).IsZero() {
			t.Errorf("%d rows after the purge, want that of the other agent", n)
		}
	})
}
