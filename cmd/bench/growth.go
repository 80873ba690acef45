package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// growth measures the same load on tables of different sizes: once as it is, and once with a
// revocation a second, which empties the cache of keys.
func growth(ctx context.Context, b *bench) (err error) {
	const keys = 1_000
	var fixtures []*fixture
	defer func() {
		for _, f := range fixtures {
			err = errors.Join(err, f.close(ctx))
		}
	}()
	var loads []*load
	for _, size := range b.sizes {
		name := fmt.Sprintf("growth_%d", size)
		began := time.Now()
		f, err := b.newFixture(ctx, name, keys, size)
		if err != nil {
			return err
		}
		fixtures = append(fixtures, f)
		b.progress("created a table of %s keys in %s", thousands(size), time.Since(began).Round(time.Second))
		cached := f.load(thousands(size)+" keys", f.tenant.keys[:keys])
		revoking := f.load(cached.name+", a revocation a second", cached.keys)
		revoking.background = f.revokeEverySecond
		loads = append(loads, cached, revoking)
	}
	results, err := b.interleave(ctx, loads...)
	if err != nil {
		return err
	}

	t := table{
		title: "Growth of the table",
		about: fmt.Sprintf("PostgreSQL, %d connections, %s keys in turn. "+
			"A revocation empties the cache, so that all keys are read from the table again.", busy, thousands(keys)),
		header: []string{"in the table", "requests/s", "vs. smallest", "p50", "p99", "CPU server", "CPU database"},
	}
	for i, l := range loads {
		t.addLoad([]string{l.name}, results[i], results[i%2])
	}
	b.print(t)
	last := len(results) - 2
	versus := "requests/s vs. " + thousands(b.sizes[0]) + " keys"
	b.atLeast(loads[last].name+" in the table: "+versus, results[last].ratio(results[0], (*measurement).rate), 0.95)
	b.atLeast(loads[last+1].name+": "+versus, results[last+1].ratio(results[1], (*measurement).rate), 0.95)
	return nil
}

// fillTable adds n keys of other accounts with random hashes. It drops the indexes first and
// creates them again afterwards, because inserting into them row by row takes hours.
func fillTable(ctx context.Context, databaseURL string, n int) (err error) {
	if n <= 0 {
		return nil
	}
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	drop, create, err := indexStatements(ctx, conn)
	if err != nil {
		return err
	}
	const (
		keysEach = 100
		// The trigger that renews the epoch would queue each row in the server's memory.
		withoutTriggers = "SET session_replication_role = replica"
	)
	fill := fmt.Sprintf(`
		WITH customers AS (
			INSERT INTO accounts (id, name, created_at)
			SELECT gen_random_uuid(), 'Filler', now() FROM generate_series(1, %d) RETURNING id)
		INSERT INTO api_keys (id, account_id, label, key_hash, last_four, form_id, created_at)
		SELECT gen_random_uuid(), customers.id, 'Filler', sha256(uuid_send(gen_random_uuid())), 'none', gen_random_uuid(), now()
		FROM customers CROSS JOIN generate_series(1, %d) LIMIT %d`, n/keysEach+1, keysEach, n)
	for _, statement := range slices.Concat(drop, []string{withoutTriggers, fill}, create, []string{"VACUUM (ANALYZE) api_keys", "CHECKPOINT"}) {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSpace(statement), err)
		}
	}
	return nil
}

// indexStatements returns the statements that drop all indexes, keys and foreign keys of the table,
// and the statements that create them again.
func indexStatements(ctx context.Context, conn *pgx.Conn) (drop, create []string, err error) {
	// Foreign keys are dropped first and created last, because they depend on the others.
	rows, err := conn.Query(ctx, `
		SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
			format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)),
			contype <> 'f' AS last
		FROM pg_constraint
		WHERE contype IN ('p', 'u', 'f') AND 'api_keys'::regclass IN (conrelid, confrelid)
		UNION ALL
		SELECT format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid), true
		FROM pg_index
		WHERE indrelid = 'api_keys'::regclass AND indexrelid NOT IN (SELECT conindid FROM pg_constraint)
		ORDER BY last`)
	if err != nil {
		return nil, nil, err
	}
	var dropOne, createOne string
	_, err = pgx.ForEachRow(rows, []any{&dropOne, &createOne, nil}, func() error {
		drop, create = append(drop, dropOne), append(create, createOne)
		return nil
	})
	slices.Reverse(create)
	return drop, create, err
}
