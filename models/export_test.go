package models

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/database"
	"portal/models/password"
)

// DefaultPasswordMemory is [password.DefaultMemory]. Tests have a constant named password.
const DefaultPasswordMemory = password.DefaultMemory

// PurgeRegularly purges after a delay, as the store does after its start.
func (s *Store) PurgeRegularly(ctx context.Context, delay time.Duration) {
	s.purgeRegularly(ctx, delay)
}

// WarnOfClock logs a wrong clock, as the store does each hour.
func (s *Store) WarnOfClock(ctx context.Context) error { return s.db.warnOfClock(ctx) }

// FlushLastSeen writes when sessions were last seen and when agents were last used.
func (s *Store) FlushLastSeen(ctx context.Context) error {
	return errors.Join(s.Sessions.flush(ctx), s.Agents.Flush(ctx))
}

// WaitingRefusals is the number of refused requests that wait for a flush.
func (k *Keys) WaitingRefusals() int { return k.refusals.all }

// MaxSeen is the number of uses of agents that wait for a flush.
const MaxSeen = maxSeen

// Waiting returns the number of uses that wait for a flush.
func (a *Agents) Waiting() int { return len(a.uses.rows()) }

// OwnUses gives the store a memory of its own, which no other store writes in the background.
func (a *Agents) OwnUses() { a.uses = newLastSeenBuffer() }

// TakeConnections takes all connections of the portal's pool until the returned function is called.
func (s *Store) TakeConnections(ctx context.Context) (release func(), err error) {
	var taken []bun.Conn
	release = func() {
		for _, conn := range taken {
			_ = conn.Close()
		}
	}
	for range database.PortalConnections {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return release, err
		}
		taken = append(taken, conn)
	}
	return release, nil
}

// HashEmail returns the hash by which users are looked up.
func HashEmail(email string) []byte { return hashEmail(email) }

// Recorded returns the actions whose consequences are known.
func Recorded() []Action { return slices.Sorted(maps.Keys(consequences)) }

// Columns returns the names of the columns that have a fate, sorted, by the names of tables.
func Columns() map[string][]string {
	names := map[string][]string{}
	for table, fates := range columns {
		for _, list := range fates {
			names[table] = append(names[table], strings.Fields(list)...)
		}
		slices.Sort(names[table])
	}
	return names
}

// RecordAt records an activity in a transaction of its own, with an id of another clock, and
// commits after a pause.
func (s *Store) RecordAt(ctx context.Context, accountID uuid.UUID, skew, pause time.Duration) (uuid.UUID, error) {
	id := newID()
	at := lowestID(time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).Add(skew))
	copy(id[:6], at[:6])
	err := s.db.InTx(ctx, "record", func(ctx context.Context, tx Tx) error {
		if err := recordActivity(ctx, tx, Operator(), Activity{ID: id, AccountID: accountID, Action: ActionKeyRenamed}); err != nil {
			return err
		}
		time.Sleep(pause)
		return nil
	})
	return id, err
}

// MaxPassedOver is the number of deliveries that a claim passes over.
const MaxPassedOver = maxPassedOver
