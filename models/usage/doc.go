// Package usage counts the requests of API keys in memory and writes the counts to the database in
// the background, so that a request needs no database write. It imports nothing of ours.
//
// # Pieces
//
// A [Recorder] collects counts by key, one [generation] for each hour of the clock. A flush takes a
// generation, sorts it by key and writes it in pieces of a few thousand keys, each in a transaction
// of its own. New counts go to the next generation meanwhile. If the database is slow, a flush
// takes longer and the next generation holds more requests of each key. The recorder then writes
// less often, in memory that depends on the number of keys and not on the number of requests.
//
// # Each request is counted once
//
// The pieces of a recorder have increasing numbers. The table usage_flushes has a row for each
// recorder with the number of its last piece. The transaction of a piece updates this row, and adds
// nothing if the row already has this number. Pieces are written one after the other, and a piece
// whose outcome is unknown is repeated with the same number and the same counts until it succeeds.
// Therefore no error loses counts, and no request is counted twice if the connection breaks during
// COMMIT. Each attempt may take longer than the one before, so that a slow database does not stop
// the writes for good.
//
// # Reports
//
// A report reads the stored counts and the number of the last piece in one statement, which sees
// one state of the database. It then adds from memory the counts of all later pieces, and of the
// keys that are in no piece yet. A piece is either in the state that the statement saw or has a
// higher number, so each request is counted once. The recorder keeps written generations in memory
// for a few seconds, longer than a statement takes, so that every such piece is still there. No
// report waits for a flush, and no lock is held while the database is used.
//
// # Locked rows
//
// If another session holds the row of a key for long, the piece fails as a whole. The counts of the
// locked keys then move to the next generation of their hour, and the other keys are written.
package usage
