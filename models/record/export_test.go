package record

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"portal/models/internal/db"
	"portal/models/value"
)

// Recorded returns the actions whose consequences are known.
func Recorded() []Action { return slices.Sorted(maps.Keys(consequences)) }

// RecordAt records an activity in a transaction of its own, with an id of another clock, and
// commits after a pause.
func (l *ActivityLog) RecordAt(ctx context.Context, accountID uuid.UUID, skew, pause time.Duration) (uuid.UUID, error) {
	id := value.NewID()
	at := value.LowestID(time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).Add(skew))
	copy(id[:6], at[:6])
	err := l.db.InTx(ctx, "record", func(ctx context.Context, tx db.Tx) error {
		if err := Add(ctx, tx, Operator(), Activity{ID: id, AccountID: accountID, Action: ActionKeyRenamed}); err != nil {
			return err
		}
		time.Sleep(pause)
		return nil
	})
	return id, err
}
