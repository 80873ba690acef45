package models

// MaxSeen is the number of uses of agents that wait for a flush.
const MaxSeen = maxSeen

// Waiting returns the number of uses that wait for a flush.
func (a *Agents) Waiting() int { return len(a.uses.rows()) }

// OwnUses gives the store a memory of its own, which no other store writes in the background.
func (a *Agents) OwnUses() { a.uses = newLastSeenBuffer() }
