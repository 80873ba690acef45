package main

import (
	"context"

	"portal/models"
)

type migrateCommand struct{}

// Run only opens the store, which updates the schema.
func (migrateCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(*models.Store) error { return nil })
}
