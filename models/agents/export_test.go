package agents

import "portal/models/internal/db"

// MaxSeen is the number of uses of agents that wait for a flush.
const MaxSeen = db.MaxSeen

// Waiting returns the number of uses that wait for a flush.
func (a *Agents) Waiting() int { return len(a.uses.Rows()) }

// OwnUses gives the store a memory of its own, which no other store writes in the background.
func (a *Agents) OwnUses() { a.uses = NewUses() }
