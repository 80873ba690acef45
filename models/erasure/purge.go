package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"portal/models/value"
)

// Purge deletes the rows that have expired, and those that are older than their table keeps them.
// [Tables] has the conditions.
func (e *Erasures) Purge(ctx context.Context) error {
	now := e.db.Now()
	// Another instance may not have written a later use of the session yet.
	idle := now.Add(-e.sessionIdle - PurgeInterval)
	var errs []error
	for _, table := range slices.Backward(Tables) {
		from := now.Add(-table.kept)
		for _, where := range table.purged {
			args := []any{from, value.LowestID(from), idle}
			if !strings.Contains(where, "?") {
				args = nil // Bun warns of arguments without a placeholder
			}
			if err := table.deleteWhere(ctx, e.db, skipsLocked, where, args...); err != nil {
				errs = append(errs, fmt.Errorf("purge %s: %w", table.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}
