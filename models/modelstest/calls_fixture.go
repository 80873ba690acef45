package modelstest

import (
	"fmt"
	"time"

	"portal/models/agents"
	"portal/models/keys"
	"portal/models/livekit"
)

// Joined returns the event that a visitor has joined the nth room of a key.
func Joined(agent agents.Agent, key keys.Key, n int) livekit.Event {
	at := time.Now().UTC().Truncate(time.Second)
	return livekit.Event{
		CreatedAt: at,
		Room: livekit.Room{
			ID: fmt.Sprintf("RM_%s_%d", key.ID, n), Name: fmt.Sprintf("%s_%s_%d", agent.ID, key.ID, n), AgentID: agent.ID, KeyID: key.ID,
		},
		Visitor: livekit.Visitor{ID: "PA_1", Identity: "visitor", UserID: "u-17", JoinedAt: at},
	}
}

// Left returns the event that the visitor of another event has left.
func Left(e livekit.Event, at time.Time, reason string) livekit.Event {
	e.Left, e.CreatedAt, e.Visitor.Reason = true, at.UTC().Truncate(time.Second), reason
	return e
}

// Errless returns the key of a call that returns its value too.
func Errless(key keys.Key, _ string) keys.Key { return key }
