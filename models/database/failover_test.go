package database_test

import (
	"context"
	"sync"
	"testing"

	"github.com/uptrace/bun"

	"portal/models/database"
	"portal/models/modelstest"
)

// After a failover, every connection of the pools is dead. No read and no transaction fails because
// of that.
func TestNoReadFailsAfterTheServerClosedItsConnections(t *testing.T) {
	t.Parallel()
	f := newFixture(t, modelstest.PostgresURL(t))
	read := func(ctx context.Context) error {
		return f.Portal.NewSelect().Table("auth_epoch").Column("value").Scan(ctx, new([]byte))
	}
	change := func(ctx context.Context) error {
		return f.Portal.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO sign_in_failures (id, subject, at) VALUES (gen_random_uuid(), '', now())")
			return err
		})
	}
	const others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
	for name, do := range map[string]func(context.Context) error{"read": read, "change": change} {
		for range 3 {
			f.busy(t)
			f.exec(t, "SELECT pg_terminate_backend(pid) "+others)
			eventually(t, "the connections are closed", func() bool { return value[int](t, f, "SELECT count(*) "+others) == 0 })
			var running sync.WaitGroup
			for range database.PortalConnections {
				running.Go(func() {
					if err := do(t.Context()); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			running.Wait()
		}
	}
	if n := value[int](t, f, "SELECT count(*) FROM sign_in_failures"); n != 3*database.PortalConnections {
		t.Errorf("%d changes, want %d", n, 3*database.PortalConnections)
	}
}

// busy opens and uses all connections of the portal's pool.
func (f *fixture) busy(t *testing.T) {
	t.Helper()
	var taken []bun.Conn
	for range database.PortalConnections {
		conn := modelstest.Value(f.Portal.Conn(t.Context()))(t)
		taken = append(taken, conn)
	}
	for _, conn := range taken {
		must(t, conn.Close())
	}
}
