package models

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/usage"
)

// APIKey is an API key without its value.
type Key struct {
	bun.BaseModel `bun:"table:api_keys,alias:api_key"`

	ID         uuid.UUID `bun:",pk"`
	AccountID  uuid.UUID
	Label      string
	KeyHash    []byte // SHA-256 of the whole key
	LastFour   string
	FormID     uuid.UUID // of the form that generated the key
	CreatedAt  time.Time
	RevokedAt  *time.Time
	ReplacesID *uuid.UUID // the key that this one replaces in a rotation
	CreatedBy  *uuid.UUID // the user who generated the key; nil for operators and old keys

	// LastUsedAt is the time of the latest authenticated API request; nil if there was none.
	LastUsedAt *time.Time `bun:",scanonly"`
}

// Masked returns the key as lists show it, such as nas_...a1B2.
func (k Key) Masked() string { return masked(k.LastFour) }

func masked(lastFour string) string { return keyPrefix + "..." + lastFour }

// Keys are the API keys of accounts.
type Keys struct {
	db    *DB
	usage *usage.Recorder
}

// Active returns the account's active keys, the newest first. The error may be [ErrUnavailable].
func (k *Keys) Active(ctx context.Context, accountID uuid.UUID) ([]Key, error) {
	keys := []Key{}
	err := selectKeys(k.db, &keys).Where("api_key.account_id = ? AND api_key.revoked_at IS NULL", accountID).
		OrderExpr("api_key.id DESC").Scan(ctx)
	if err != nil {
		return nil, failed("list API keys", err)
	}
	for i := range keys {
		keys[i].LastUsedAt = k.usage.LastUse(keys[i].ID, keys[i].LastUsedAt)
	}
	return keys, nil
}

// All returns a page of the account's keys, active and revoked, by id. It is for operators.
// The error may be [ErrUnavailable].
func (k *Keys) All(ctx context.Context, accountID uuid.UUID, page Page) (List[Key], error) {
	keys := []Key{}
	err := page.byID(selectKeys(k.db, &keys)).Where("api_key.account_id = ?", accountID).Scan(ctx)
	if err != nil {
		return List[Key]{}, failed("list API keys", err)
	}
	for i := range keys {
		keys[i].LastUsedAt = k.usage.LastUse(keys[i].ID, keys[i].LastUsedAt)
	}
	return cut(keys, page), nil
}

// Find returns one of the account's keys, active or revoked. The error may be [ErrKeyNotFound] or
// [ErrUnavailable].
func (k *Keys) Find(ctx context.Context, accountID, id uuid.UUID) (Key, error) {
	return k.find(ctx, selectKey(accountID, id))
}

// Replacement returns the newest of the account's active keys that replace this one. The error may
// be [ErrKeyNotFound] or [ErrUnavailable].
func (k *Keys) Replacement(ctx context.Context, accountID, id uuid.UUID) (Key, error) {
	return k.find(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("api_key.account_id = ? AND api_key.replaces_id = ?", accountID, id).
			Where("api_key.revoked_at IS NULL").OrderExpr("api_key.id DESC").Limit(1)
	})
}

// FindAsOperator returns a key of any account. It is for operators. The error may be
// [ErrKeyNotFound] or [ErrUnavailable].
func (k *Keys) FindAsOperator(ctx context.Context, id uuid.UUID) (Key, error) {
	return k.find(ctx, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("api_key.id = ?", id) })
}

// FindBySecret returns the key, of any account, with this secret. It is for operators who
// hold a leaked key. The error may be [ErrKeyMissingPrefix], [ErrKeyMalformed], [ErrKeyNotFound] or
// [ErrUnavailable].
func (k *Keys) FindBySecret(ctx context.Context, secret string) (Key, error) {
	if err := checkKeySecret(secret); err != nil {
		return Key{}, err
	}
	hash := hashKey(secret)
	return k.find(ctx, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("api_key.key_hash = ?", hash[:]) })
}

// keyFilter selects keys.
type keyFilter func(*bun.SelectQuery) *bun.SelectQuery

func selectKey(accountID, id uuid.UUID) keyFilter {
	return func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("api_key.account_id = ? AND api_key.id = ?", accountID, id)
	}
}

const joinLastUses = "LEFT JOIN api_key_last_uses AS last_use ON last_use.api_key_id = api_key.id"

// selectKeys selects keys and when they were last used.
func selectKeys(db bun.IDB, into any) *bun.SelectQuery {
	return db.NewSelect().Model(into).ColumnExpr("?TableColumns").
		ColumnExpr("last_use.used_at AS last_used_at").
		Join(joinLastUses)
}

func (k *Keys) find(ctx context.Context, filter keyFilter) (Key, error) {
	key, err := k.scan(ctx, k.db, filter)
	if err != nil && !errors.Is(err, ErrKeyNotFound) {
		return Key{}, failed("find API key", err)
	}
	return key, err
}

// lock returns one of the account's keys, or [ErrKeyNotFound], and locks its row until the
// transaction ends.
func (k *Keys) lock(ctx context.Context, tx Tx, accountID, id uuid.UUID) (Key, error) {
	return k.scan(ctx, tx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return k.db.locked(selectKey(accountID, id)(q), "NO KEY UPDATE OF api_key")
	})
}

func (k *Keys) scan(ctx context.Context, db bun.IDB, filter keyFilter) (Key, error) {
	var key Key
	err := filter(selectKeys(db, &key)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return Key{}, ErrKeyNotFound
	}
	if err != nil {
		return Key{}, err
	}
	key.LastUsedAt = k.usage.LastUse(key.ID, key.LastUsedAt)
	return key, nil
}
