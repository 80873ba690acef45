// Package usage counts the requests of API keys in memory and writes the counts to the database in
// the background, so that a request needs no database write. It imports nothing of ours.
//
// # Batches
//
// A [Recorder] collects counts by key, in one [bucket] for each hour of the clock. A flush ends the
// counting in a bucket, sorts it by key and writes it in batches of up to 1,000 sources, each in
// one transaction. New counts go to the next bucket meanwhile. If the database is slow, a flush
// takes longer and the next bucket holds more requests of each key. So the recorder writes less
// often, in memory that depends on the number of keys and not on the number of requests. The counts
// of a key that was deleted meanwhile are dropped, so that nothing of an erased account comes back.
//
// # Sources
//
// The requests of each key are counted by source too: a client and its network. Among them are
// requests that were refused for their address, which may be a thief's. In a bucket, the first 20
// sources of a key have counts of their own, and the rest are counted together as all others. In
// the database, a key has at most 20 sources on a day. For a new one, a trigger adds the one of the
// others that has the fewest requests to all others. So a new source stays until the next one
// comes, and longer if it then has more requests than another. A client that changes its name with
// each request costs 21 rows a day. It takes the place of one source that has more requests, and
// after that its names replace each other.
//
// Sources are only displayed, so the row of a source need not be written with each count. After the
// sources of a key were written, the key rests. Requests that come during the rest are held by
// source, again at most 20 and all others. They join the first bucket after the rest, or the last
// one at a stop. Sources are written in the transaction of the key's counts, which locks the key
// for the trigger above. So a key whose sources are written later than its counts has an entry
// without requests.
//
// # Errors
//
// A batch that fails is written again, so no error loses counts. If the connection broke during
// COMMIT, its requests may be counted twice, but the time of the last use stays exact, because the
// later time wins.
//
// # Reports
//
// A report reads the stored counts and then adds those in memory. Written buckets stay in memory
// for a few seconds, because they have the last uses that the statement was too early to see. If a
// batch was written in the meantime, the stored time of the last use shows whether the statement
// saw it. A batch of refusals, or of uses at the same time as earlier ones, leaves that open, and
// so does a batch that has left the memory. Then the report is read again. A report by source uses
// the stored time at which a source of the key was last seen instead, because held sources are
// written later than the last use. No report waits until a flush ends, and no lock is held while
// the database is used.
package usage
