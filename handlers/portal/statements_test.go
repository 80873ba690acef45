package portal_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"portal/handlers"
	"portal/models"
	"portal/models/modelstest"
)

// Under load each statement of a page waits its turn, so a page has few. One of these is that of
// the session.
func TestPagesHaveFewStatements(t *testing.T) {
	t.Parallel()
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{LiveKit: liveKitAway(t)})
	var statements atomic.Int64
	watched := *s
	watched.store = s.store.WithQueryHook(modelstest.Before(func(ctx context.Context, _ *bun.QueryEvent) context.Context {
		statements.Add(1)
		return ctx
	}))
	s = watched.with(t, func(*handlers.Deps) {})
	c := s.customer(t)
	empty, used := c, s.customer(t)
	key := used.key("production")
	used.call(used.agent("Front desk"), key, time.Minute, 0)
	pages := []struct {
		of   *visitor
		path string
		most int64
	}{
		{empty.visitor, "/api-keys", 4},
		{used.visitor, "/api-keys", 4},
		{used.fragments(), "/api-keys/changes", 3},
		{used.visitor, "/api-keys/" + key.ID.String(), 6},
		{used.visitor, "/api-keys/" + key.ID.String() + "/restrictions", 5},
		{used.visitor, "/api-keys/" + key.ID.String() + "/rotation", 4},
		{used.visitor, "/api-keys/" + key.ID.String() + "/revocation", 4},
		{used.visitor, "/api-keys/revoked", 3},
		{used.visitor, "/agents", 2},
		{used.visitor, "/usage", 3},
		{used.visitor, "/activity", 4},
		{used.visitor, "/calls", 6},
		{used.fragments(), "/calls/refresh", 4},
		{used.visitor, "/people", 4},
		{used.visitor, "/integrate", 2},
		{used.visitor, "/settings", 3},
		{used.visitor, "/account", 4},
		{s.visitor(t), "/docs", 0},
		{used.visitor, "/docs", 2},
		{used.visitor, "/docs/errors", 0},
	}
	for _, page := range pages {
		statements.Store(0)
		answer := page.of.get(page.path)
		if answer.status != http.StatusOK && answer.status != http.StatusNoContent {
			t.Errorf("%s answers %d", page.path, answer.status)
		}
		if n := statements.Load(); n > page.most {
			t.Errorf("%s has %d statements, want at most %d", page.path, n, page.most)
		}
	}
}
