package keys

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/value"
)

const (
	// MaxKeyRefusals is how many refused requests of a key are kept.
	MaxKeyRefusals = 50
	// KeyRefusalsKept is how long they are kept.
	KeyRefusalsKept = 7 * value.Day
)

// KeyRefusal is a request with a key that was refused.
type KeyRefusal struct {
	bun.BaseModel `bun:"table:api_key_refusals,alias:refusal"`

	KeyID     uuid.UUID `bun:"api_key_id,pk"`
	ID        uuid.UUID `bun:",pk"`
	At        time.Time
	Reason    string // a word, as the response has it
	Route     string // with the method
	Address   string // as a source has it
	Client    string
	RequestID string
}

// Refusal is what the API knows of a request that it refuses.
type Refusal struct {
	Reason, Route, RequestID string

	From Source
}

func (r KeyRefusal) compare(other KeyRefusal) int {
	if order := other.At.Compare(r.At); order != 0 {
		return order // the newest first
	}
	return value.CompareIDs(other.ID, r.ID)
}

// NoteRefusal keeps a refused request of the principal, which need not be accepted but must have a
// key, for the key's page.
func (a *API) NoteRefusal(p Principal, refused Refusal) {
	if p.KeyID == uuid.Nil {
		return
	}
	a.refusals.add(p.AccountID, KeyRefusal{
		KeyID: p.KeyID, ID: value.NewID(), At: a.db.Now(), Reason: refused.Reason, Route: strings.Clone(refused.Route),
		Address: refused.From.Address(), Client: strings.Clone(refused.From.Client()), RequestID: refused.RequestID,
	})
}

// Refusals returns the last refused requests of one of the account's keys, the newest first: at
// most 50 of the last 7 days, with the unwritten ones of this instance.
func (u *Usage) Refusals(ctx context.Context, accountID, keyID uuid.UUID) ([]KeyRefusal, error) {
	// Before the statement, so that none is missed that is written meanwhile.
	unwritten, since := u.keys.refusals.of(accountID, keyID), u.keys.db.Now().Add(-KeyRefusalsKept)
	found := []KeyRefusal{}
	err := u.keys.db.NewSelect().Model(&found).
		Join("JOIN api_keys AS api_key ON api_key.id = refusal.api_key_id").
		Where("api_key.account_id = ? AND api_key.id = ? AND refusal.at > ?", accountID, keyID, since).
		OrderExpr("refusal.at DESC, refusal.id DESC").Limit(MaxKeyRefusals).Scan(ctx)
	if err != nil {
		return nil, value.Failed("list the refused requests of an API key", err)
	}
	found = append(found, unwritten...)
	slices.SortFunc(found, KeyRefusal.compare)
	found = slices.CompactFunc(found, func(a, b KeyRefusal) bool { return a.ID == b.ID })
	return found[:min(len(found), MaxKeyRefusals)], nil
}

// FlushRefusals writes the refused requests that wait.
func (u *Usage) FlushRefusals(ctx context.Context) error { return u.keys.refusals.flush(ctx) }

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
