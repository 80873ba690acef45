package main

import (
	"context"
	"errors"
	"time"

	"portal/models"
)

// fixture is a portal on its own PostgreSQL database, and a store in this process that is a second
// instance on that database.
type fixture struct {
	cluster *cluster
	name    string
	url     string
	tenant  tenant
	server  *server
	store   *models.Store
	spare   []apiKey // keys to revoke
}

// newFixture starts a portal. Its tenant has this many keys, in a table of at least size keys.
func (b *bench) newFixture(ctx context.Context, name string, keys, size int) (f *fixture, err error) {
	f = &fixture{cluster: b.cluster, name: name}
	if f.url, err = b.cluster.create(ctx, name); err != nil {
		return nil, err
	}
	if f.tenant, err = newTenant(ctx, f.url); err != nil {
		return nil, err
	}
	// Enough for one revocation a second during all rounds.
	spare := 2 * b.rounds * (2 + int((b.warmUp()+b.duration)/time.Second))
	if err := f.tenant.addKeys(ctx, f.url, keys-1+max(spare, b.revocations)); err != nil {
		return nil, err
	}
	f.spare = f.tenant.keys[keys:]
	if err := fillTable(ctx, f.url, size-len(f.tenant.keys)); err != nil {
		return nil, err
	}
	if f.server, err = b.startPortal(ctx, "PostgreSQL", b.programs.portal, f.url, f.tenant); err != nil {
		return nil, err
	}
	if f.store, err = models.Open(ctx, f.url, models.Options{}); err != nil {
		f.server.stop()
		return nil, err
	}
	return f, nil
}

// close stops the portal and drops the database, even if ctx has ended.
func (f *fixture) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	f.server.stop()
	return errors.Join(f.store.Close(ctx), f.cluster.drop(ctx, f.name))
}

func (f *fixture) load(name string, keys []apiKey) *load {
	return &load{name: name, servers: []*server{f.server}, keys: keys, connections: busy, database: f.cluster}
}

// revokeNext revokes the first of the spare keys.
func (f *fixture) revokeNext(ctx context.Context) error {
	if len(f.spare) == 0 {
		return errors.New("no spare key is left")
	}
	key := f.spare[0]
	f.spare = f.spare[1:]
	return f.revoke(ctx, key)
}

func (f *fixture) revoke(ctx context.Context, key apiKey) error {
	_, err := f.store.Keys.Revoke(ctx, key.accountID, key.id, models.Operator())
	return err
}

// revokeEverySecond revokes one key a second until ctx ends, the first one at once.
func (f *fixture) revokeEverySecond(ctx context.Context) error {
	for ctx.Err() == nil {
		// A revocation that ctx interrupts would be reported as a failure.
		if err := f.revokeNext(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		sleep(ctx, time.Second)
	}
	return nil
}
