// Package models is the domain of the portal and the one store behind it:
// accounts, their users, agents and API keys, sessions, the record of activity,
// and the widget tokens that keys are exchanged for.
//
// The portal and the JSON API share one [Store] over one database, SQLite or
// PostgreSQL, so that what one of them revokes the other refuses on its very
// next request. Every answer about a key is the database's own: nothing here
// answers from memory that may be out of date.
//
// It never holds the value of an API key, a session reference or a password in
// a struct: each leaves its constructor as a return value and is stored as a
// hash. It knows nothing of HTTP. Methods that touch customer data take the
// account they are for; the few that do not are named for operators.
//
// Methods do not bound their own time, save where they say so: callers put a
// deadline on the context, and a missed one is [ErrUnavailable].
package models
