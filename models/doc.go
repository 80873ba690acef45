// Package models is the roof over the subjects of the portal: it opens the database, wires the
// service of each subject, and runs their background work.
//
// The portal and the JSON API share one [Store] over one database, SQLite or PostgreSQL. After the
// portal has revoked a key, the API refuses it from the next request, on every instance. The
// package does not depend on HTTP.
//
// The values of API keys, session tokens and passwords are never fields of a stored struct. A
// constructor returns the value once, and the database holds its hash. Methods on customer data
// take the account's id, except the few for operators.
//
// Each subject is a package, and uses only those before it in this list: value (errors, ids, texts,
// limits), internal/db (transactions, clock, locks; the only one that knows the dialect),
// internal/throttle (limits of wrong passwords and codes), record (what happened and what follows
// from it), people, calls, keys, agents, webhooks, outbox, erasure. In each, singular files are
// what a thing is, and plural ones what is done with it.
//
// An exported method of a service opens a transaction. Functions that services share take the
// transaction. A service never calls another service's exported method in a transaction. Only wrong
// passwords and ended calls have transactions of their own, so that they stay recorded if the rest
// fails.
//
// Methods do not set a deadline unless their comment says so. Callers use a context with [Timeout].
// If the deadline passes or the database does not answer, the error is [value.ErrUnavailable].
//
// # Glossary
//
//   - account: a customer, which owns agents and API keys.
//   - user: a person who signs in to the portal of an account.
//   - operator: a person who runs the service and its commands.
//   - agent: a voice agent of an account.
//   - API key: the credential of a customer's backend. Its secret is the whole key.
//   - widget token: a short-lived JWT, requested with an API key, that lets a browser call one
//     agent.
//   - session: the period in which a user is signed in to one browser. A cookie holds its token.
//   - restrictions: the expiry, the agents and the networks to which a key is limited.
//   - source: the network and the client program from which a key is used.
//   - outbox: the mails that wait in the database to be sent.
//   - form id: a random id in a rendered form that makes repeated submissions harmless.
//   - epoch: a random value in the database that changes when a key, an agent or an account is
//     inserted or deleted, or when its access changes. Package authn explains why.
//   - flush: the background write of usage and last-seen times, which requests keep in memory.
package models
