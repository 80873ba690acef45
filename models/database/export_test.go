package database

import (
	"context"
	"io/fs"
	"log/slog"
	"time"
)

// MigrateTo applies other migrations than those of the portal.
func (c *Connections) MigrateTo(ctx context.Context, files fs.FS, logger *slog.Logger, wait time.Duration) error {
	return migration{db: c.Portal, files: files, logger: logger, wait: wait}.run(ctx)
}
