package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models/internal/db"
	"portal/models/value"
)

// A full memory does not rest more entries, but writes every change of the others, so that nothing
// is lost.
func TestRestingEntriesAreBounded(t *testing.T) {
	t.Parallel()
	b, now := db.NewLastSeenBuffer(time.Minute), time.Now()
	owner, ids := uuid.New(), make([]db.SeenID, db.MaxSeen)
	for i := range ids {
		ids[i] = db.SeenID{ID: value.NewID(), KeyID: owner}
	}
	for round := range 3 {
		now = now.Add(time.Second)
		for _, id := range ids {
			b.Set(id, db.LastSeen{Owner: owner, At: now})
		}
		written := 0
		err := b.Flush(t.Context(), now, func(_ context.Context, rows []db.LastSeenRow) error {
			written += len(rows)
			return nil
		})
		want := len(ids)
		if round > 0 {
			want /= 2
		}
		if err != nil || written != want || len(b.Rows()) != 0 {
			t.Errorf("round %d wrote %d of %d entries, and %d wait: %v", round, written, want, len(b.Rows()), err)
		}
	}
}
