package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Writer writes pieces to one kind of database. A [Recorder] makes one call at a time.
type Writer interface {
	// Write adds the piece to the stored counts in one transaction, unless it is already there.
	// The error may be a [*LockedError]. The outcome of any other error is unknown.
	Write(ctx context.Context, p Piece) error

	// Close releases the connection.
	Close() error
}

// Piece is a part of a generation that is written in one transaction.
type Piece struct {
	Recorder uuid.UUID // the recorder that counted
	Number   int64     // higher than those of the recorder's earlier pieces
	Hour     time.Time
	Entries  []Entry // sorted by key; those without counts are not written
}

// Entry is the usage of one key in one hour.
type Entry struct {
	Key uuid.UUID
	counts
}

// counts are the requests of one key in one hour.
type counts struct {
	Last     int64 // time of the latest accepted request in microseconds since 1970; zero if none
	Requests int64 // accepted
	Refusals int64
}

func (c *counts) add(other counts) {
	c.Last = max(c.Last, other.Last)
	c.Requests += other.Requests
	c.Refusals += other.Refusals
}

func (c *counts) lastUse() time.Time { return time.UnixMicro(c.Last).UTC() }

// LockedError means that a piece was not written, because another session holds rows of these keys.
type LockedError struct {
	Keys []uuid.UUID
	Err  error
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("another session locks %d rows: %v", len(e.Keys), e.Err)
}

// Unwrap returns the error of the database.
func (e *LockedError) Unwrap() error { return e.Err }
