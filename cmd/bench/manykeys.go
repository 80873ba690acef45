package main

import (
	"context"
	"errors"
	"fmt"
)

// keysInTurn is the number of keys in a load with many keys.
const keysInTurn = 10_000

// manyKeys compares one key with many keys in turn. It measures both once more with a revocation a
// second, which empties the cache of every instance.
func manyKeys(ctx context.Context, b *bench) (err error) {
	f, err := b.newFixture(ctx, "keys", keysInTurn, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()

	one := f.load("one key", f.tenant.keys[:1])
	many := f.load(thousands(keysInTurn)+" keys in turn", f.tenant.keys[:keysInTurn])
	oneRevoking := f.load("one key, a revocation a second", one.keys)
	oneRevoking.background = f.revokeEverySecond
	manyRevoking := f.load(many.name+", a revocation a second", many.keys)
	manyRevoking.background = f.revokeEverySecond
	loads := []*load{one, many, oneRevoking, manyRevoking}
	results, err := b.interleave(ctx, loads...)
	if err != nil {
		return err
	}

	t := table{
		title:  "Many keys, and revocations under load",
		about:  fmt.Sprintf("PostgreSQL, %d connections. Another process revokes other keys.", busy),
		header: []string{"", "requests/s", "vs. one key", "p50", "p99", "CPU server", "CPU database"},
	}
	for i, l := range loads {
		t.addLoad([]string{l.name}, results[i], results[0])
	}
	b.print(t)
	b.atLeast("A revocation a second, one key: requests/s vs. no revocation", results[2].ratio(results[0], (*measurement).rate), 0.9)
	b.atLeast("A revocation a second, "+many.name+": requests/s vs. no revocation", results[3].ratio(results[1], (*measurement).rate), 0.9)
	return nil
}
