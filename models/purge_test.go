package models_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/value"
)

// The first purge is soon after the start, and it deletes everything that a week away has left.
func TestPurgeCatchesUpAfterTheStart(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		old := f.Clock.Now().Add(-9 * value.Day)
		rows := make([]struct {
			bun.BaseModel `bun:"table:api_key_hourly_usage"`

			APIKeyID uuid.UUID
			Hour     time.Time
		}, 2500)
		for i := range rows {
			rows[i].APIKeyID, rows[i].Hour = newID(), old
		}
		must(t, errOf(f.DB.NewInsert().Model(&rows).Exec(t.Context())))
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { f.PurgeRegularly(ctx, time.Millisecond) })
		eventually(t, "the old rows are deleted", func() bool { return f.Count(t, "SELECT count(*) FROM api_key_hourly_usage") == 0 })
		stop()
		running.Wait()
	})
}
