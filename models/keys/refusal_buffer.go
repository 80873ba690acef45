package keys

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/value"
)

const (
	// maxRefusals bounds the refused requests that wait for a flush, of all accounts. Each
	// account has a share, and beyond maxRefusals each may still have those of one key, in
	// refusalReserve for all. So nobody uses up the memory or the writes of others.
	maxRefusals     = 1 << 16
	accountRefusals = 10 * MaxKeyRefusals
	refusalReserve  = 1 << 14
	refusalBatch    = 500 // rows of a statement
)

// keyRefusals holds the last refused requests of keys until the background flush writes them, so
// that a refusal needs no database write. Of each key it has the newest ones.
type keyRefusals struct {
	db *db.DB

	mu       sync.Mutex
	ofKeys   map[uuid.UUID][]KeyRefusal // the oldest first
	accounts map[uuid.UUID]uuid.UUID    // by key
	counts   map[uuid.UUID]int          // by account
	all      int
}

func newKeyRefusals(db *db.DB) *keyRefusals {
	return &keyRefusals{db: db, ofKeys: map[uuid.UUID][]KeyRefusal{}, accounts: map[uuid.UUID]uuid.UUID{}, counts: map[uuid.UUID]int{}}
}

func (r *keyRefusals) add(accountID uuid.UUID, one KeyRefusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.ofKeys[one.KeyID]
	switch {
	case len(of) >= MaxKeyRefusals:
		r.ofKeys[one.KeyID] = append(of[1:], one)
		return
	case r.counts[accountID] >= accountRefusals, r.all >= maxRefusals+refusalReserve,
		r.all >= maxRefusals && r.counts[accountID] >= MaxKeyRefusals:
		if len(of) > 0 {
			r.ofKeys[one.KeyID] = append(of[1:], one)
		}
		return
	}
	r.ofKeys[one.KeyID], r.accounts[one.KeyID] = append(of, one), accountID
	r.counts[accountID]++
	r.all++
}

// of returns the unwritten refusals of one of the account's keys.
func (r *keyRefusals) of(accountID, keyID uuid.UUID) []KeyRefusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.accounts[keyID] != accountID {
		return nil
	}
	return slices.Clone(r.ofKeys[keyID])
}

// flush writes all refusals. After an error, the rest is written by the next one. A repeated write
// changes nothing.
func (r *keyRefusals) flush(ctx context.Context) error {
	r.mu.Lock()
	var rows []KeyRefusal
	for _, of := range r.ofKeys {
		rows = append(rows, of...)
	}
	r.mu.Unlock()
	slices.SortFunc(rows, func(a, b KeyRefusal) int { return value.CompareIDs(a.KeyID, b.KeyID) })
	for batch := range slices.Chunk(rows, refusalBatch) {
		if err := ctx.Err(); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), db.SeenTimeout)
		err := r.write(limited, batch)
		cancel()
		if err != nil {
			return value.Failed("write refused requests", err)
		}
		r.remove(batch)
	}
	return nil
}

func (r *keyRefusals) remove(written []KeyRefusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range written {
		of := r.ofKeys[one.KeyID]
		i := slices.IndexFunc(of, func(other KeyRefusal) bool { return other.ID == one.ID })
		if i < 0 {
			continue // a newer one has taken its place
		}
		account := r.accounts[one.KeyID]
		if r.counts[account]--; r.counts[account] == 0 {
			delete(r.counts, account)
		}
		r.all--
		if of = slices.Delete(of, i, i+1); len(of) > 0 {
			r.ofKeys[one.KeyID] = of
			continue
		}
		delete(r.ofKeys, one.KeyID)
		delete(r.accounts, one.KeyID)
	}
}

// write adds refusals, and deletes those of their keys that are no longer among the newest ones.
// Keys that were deleted since are left out.
func (r *keyRefusals) write(ctx context.Context, rows []KeyRefusal) error {
	var ids []uuid.UUID
	for _, one := range rows {
		ids = append(ids, one.KeyID)
	}
	return r.db.InBackground(ctx, func(ctx context.Context, tx db.Tx) error {
		kept, err := tx.KeepKeys(ctx, ids)
		rows := slices.DeleteFunc(slices.Clone(rows), func(one KeyRefusal) bool { return !kept[one.KeyID] })
		if err != nil || len(rows) == 0 {
			return err
		}
		if _, err := tx.NewInsert().Model(&rows).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
			return err
		}
		ranked := tx.NewSelect().Model((*KeyRefusal)(nil)).Column("api_key_id", "id").
			ColumnExpr("row_number() OVER (PARTITION BY api_key_id ORDER BY at DESC, id DESC) AS place").Where("api_key_id IN (?)", bun.List(ids))
		old := tx.NewSelect().TableExpr("(?) AS ranked", ranked).Column("api_key_id", "id").Where("place > ?", MaxKeyRefusals)
		_, err = tx.NewDelete().Model((*KeyRefusal)(nil)).Where("(api_key_id, id) IN (?)", old).Exec(ctx)
		return err
	})
}
