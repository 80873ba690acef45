package portal_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/uptrace/bun"

	"portal/handlers"
	"portal/models/modelstest"
)

// Under load each statement of a page waits its turn, so a page has few. One of these is that of
// the session.
func TestPagesHaveFewStatements(t *testing.T) {
	t.Parallel()
	s := sqliteSite(t, httpBase)
	var statements atomic.Int64
	watched := *s
	watched.store = s.store.WithQueryHook(modelstest.Before(func(ctx context.Context, _ *bun.QueryEvent) context.Context {
		statements.Add(1)
		return ctx
	}))
	s = watched.with(t, func(*handlers.Deps) {})
	c := s.customer(t)
	empty, used := c, s.customer(t)
	key, agent := used.key("production"), used.agent("Front desk")
	pages := []struct {
		of   customer
		path string
		most int64
	}{
		{empty, "/api-keys", 4},
		{used, "/api-keys", 4},
		{used, "/api-keys/changes", 3},
		{used, "/api-keys/" + key.ID.String(), 10},
		{used, "/api-keys/" + key.ID.String() + "/restrictions", 5},
		{used, "/api-keys/" + key.ID.String() + "/rotation", 4},
		{used, "/api-keys/" + key.ID.String() + "/revocation", 5},
		{used, "/api-keys/revoked", 3},
		{used, "/agents", 2},
		{used, "/agents/" + agent.ID.String(), 2},
		{used, "/usage", 2},
		{used, "/activity", 6},
		{used, "/people", 4},
		{used, "/integrate", 2},
		{used, "/settings", 3},
		{used, "/account", 4},
		{used, "/docs", 0},
	}
	for _, page := range pages {
		statements.Store(0)
		page.of.get(page.path)
		if n := statements.Load(); n > page.most {
			t.Errorf("%s has %d statements, want at most %d", page.path, n, page.most)
		}
	}
}
