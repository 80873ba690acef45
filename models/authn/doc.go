// Package authn answers which account an API key belongs to, at nearly the speed of a cache. Unlike
// a cache it is never out of date: once a revocation is confirmed, every instance refuses the key.
//
// # Why memory is never out of date
//
// The database holds an epoch: one row with a random value of 128 bits. Triggers replace it in the
// same transaction as any change that can take access away. Examples are a revoked key, a disabled
// account or a removed agent. The triggers also cover SQL that an operator runs by hand.
//
// An [Authenticator] remembers facts that grant access, together with one epoch. Each fact was read
// in a statement that read this epoch too.
//
// Assume that a later statement reads the same epoch again. Then no change that takes access away
// has committed between the two statements. It would have replaced the epoch, and a random value of
// 128 bits does not come back. So every fact in memory is still true at the later statement.
//
// Epochs are only compared for equality, never for order. After a failover or a restored backup,
// the database either has another epoch, or it has lost no change that takes access away. At most
// it has lost a new key, and that key works until memory is dropped.
//
// # When a request gets its answer
//
// One statement runs at a time. Requests that arrive meanwhile wait, and form the next batch. The
// statement for a batch reads the epoch, and those keys of the batch that are not in memory. It
// starts after the last request of the batch has arrived, and ends before the first one is
// answered. It is therefore the linearization point of the whole batch.
//
// If a revocation was confirmed before a request arrived, its transaction had committed before the
// statement started. The statement reads the new epoch or the revoked key, and the request is
// refused. This holds on every instance. Instances exchange no messages, and no entry has to
// expire.
//
// If the statement reads another epoch than the one in memory, a second statement reads every key
// of the batch. Its result replaces memory, and it is the linearization point instead. If the
// database does not answer by the deadline, all requests of the batch fail. Memory alone never
// answers a request.
//
// # What is not remembered
//
// Unknown keys, revoked keys and keys of disabled accounts are read each time. They take no memory,
// and a new key works at once.
package authn
