// Package authn looks up the account of an API key, at nearly the speed of a cache. Unlike a cache,
// it is never out of date: once a revocation is confirmed, every instance refuses the key.
//
// # Why memory is never out of date
//
// The database holds an epoch: one row with a random value of 128 bits. Triggers replace the value
// when a key, an agent or an account is inserted or deleted, or when its access changes, in the
// same transaction. The triggers also cover SQL that an operator runs by hand.
//
// The transactions that replace the epoch lock its row until they have committed, so they commit
// one after the other. Each commits its changes together with a value that no other transaction has
// used. Two states of the database with the same epoch are therefore the result of the same
// sequence of changes. They hold the same keys, agents and accounts.
//
// An [Authenticator] remembers facts that grant access, together with one epoch. Each fact was read
// in a statement that read this epoch too. If a later statement reads the same epoch again, every
// fact in memory is still true at the later statement.
//
// Nothing in this argument depends on a clock, or on which server answers. It also holds if the
// database goes back to an earlier state: a failover to a standby that lags behind, a restored
// dump, a restored or replaced SQLite file. Then the database has another epoch than the state that
// memory was read from. Epochs are only compared for equality, never for order.
//
// # Keys that expire
//
// The restrictions of a key are such facts too: its agents, its networks, and when it expires.
// Because the passing of this time changes no row and no epoch, every statement also reads the
// database's time, and every answer, also one from memory, compares the two. All instances refuse
// the key from the same moment on, whatever their own clocks say.
//
// # When the argument fails
//
// The argument fails if somebody disables the triggers and changes the tables by hand. An
// authenticator therefore also drops its memory whenever its connection is a new one.
//
// # When a request gets its answer
//
// One statement runs at a time. Requests that arrive meanwhile wait, and form the next batch. The
// statement for a batch reads the epoch, and those keys of the batch that are not in memory.
// Because it starts after the last request of the batch has arrived, and ends before the first one
// is answered, it is the linearization point of the whole batch.
//
// If a revocation was confirmed before a request arrived, the revocation's transaction committed
// before the statement started. So the statement reads the new epoch or the revoked key, and the
// request is refused. This holds on every instance. Instances exchange no messages, and no entry
// has to expire.
//
// If the epoch differs from the one in memory, a second statement reads every key of the batch. Its
// result replaces memory, and it is the linearization point instead. If the database does not
// answer by the deadline, all requests of the batch fail. Memory alone never answers a request.
//
// # What is not remembered
//
// Unknown keys, revoked keys and keys of disabled accounts are read each time. They take no memory,
// and a new key works at once.
package authn
