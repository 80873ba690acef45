package main

import (
	"context"

	"portal/models"
)

type migrateCommand struct{}

// Run does nothing with the store: to open it brings the schema up to date.
func (migrateCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(*models.Store) error { return nil })
}
