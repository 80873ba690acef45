package main

import (
	"context"
	"errors"
	"fmt"
)

// handful is how many keys are used in turn where it is not one.
const handful = 10_000

// manyKeys measures one hot key against many used in turn, and both against the
// same with a revocation a second, which every instance's memory is dropped for.
func manyKeys(ctx context.Context, b *bench) (err error) {
	f, err := b.newFixture(ctx, "keys", handful, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()

	one := f.load("one key", f.tenant.requests(1))
	many := f.load(thousands(handful)+" keys in turn", f.tenant.requests(handful))
	oneRevoking := f.load("one key, a revocation a second", one.requests)
	oneRevoking.beside = f.revokeEverySecond
	manyRevoking := f.load(many.name+", a revocation a second", many.requests)
	manyRevoking.beside = f.revokeEverySecond
	loads := []*load{one, many, oneRevoking, manyRevoking}
	results, err := b.interleave(ctx, loads...)
	if err != nil {
		return err
	}

	t := table{
		title:  "Many keys, and revocations under load",
		about:  fmt.Sprintf("PostgreSQL, %d connections. The revocations, of other keys, are made by another process.", busy),
		header: []string{"", "requests/s", "of one key", "p50", "p99", "CPU server", "CPU database"},
	}
	for i, l := range loads {
		r := results[i]
		t.add(l.name, perSecond(r.median((*measurement).rate)), ratio(r.ratio(results[0], (*measurement).rate)),
			milliseconds(r.median((*measurement).p50)), milliseconds(r.median((*measurement).p99)),
			microseconds(r.median((*measurement).serverCPUPerRequest)), microseconds(r.median((*measurement).databaseCPUPerRequest)))
	}
	b.print(t)
	b.atLeast("A revocation a second, one key: requests/s, of none", results[2].ratio(results[0], (*measurement).rate), 0.9)
	b.atLeast("A revocation a second, "+many.name+": requests/s, of none", results[3].ratio(results[1], (*measurement).rate), 0.9)
	return nil
}
