package models

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
)

// APIKey is an API key without its value.
type APIKey struct {
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
func (k APIKey) Masked() string { return masked(k.LastFour) }

func masked(lastFour string) string { return keyPrefix + "..." + lastFour }

// APIKeys returns the account's active keys, the newest first. The error may be [ErrUnavailable].
func (s *Store) APIKeys(ctx context.Context, accountID uuid.UUID) ([]APIKey, error) {
	keys := []APIKey{}
	err := selectKeys(s.db, &keys).Where("api_key.account_id = ? AND api_key.revoked_at IS NULL", accountID).
		OrderExpr("api_key.id DESC").Scan(ctx)
	if err != nil {
		return nil, failed("list API keys", err)
	}
	for i := range keys {
		keys[i].LastUsedAt = s.usage.LastUse(keys[i].ID, keys[i].LastUsedAt)
	}
	return keys, nil
}

// AllAPIKeys returns a page of the account's keys, active and revoked, by id. It is for operators.
// The error may be [ErrUnavailable].
func (s *Store) AllAPIKeys(ctx context.Context, accountID uuid.UUID, page Page) (List[APIKey], error) {
	keys := []APIKey{}
	err := page.byID(selectKeys(s.db, &keys)).Where("api_key.account_id = ?", accountID).Scan(ctx)
	if err != nil {
		return List[APIKey]{}, failed("list API keys", err)
	}
	for i := range keys {
		keys[i].LastUsedAt = s.usage.LastUse(keys[i].ID, keys[i].LastUsedAt)
	}
	return cut(keys, page), nil
}

// APIKey returns one of the account's keys, active or revoked. The error may be [ErrKeyNotFound] or
// [ErrUnavailable].
func (s *Store) APIKey(ctx context.Context, accountID, id uuid.UUID) (APIKey, error) {
	return s.findKey(ctx, selectKey(accountID, id))
}

// Replacement returns the newest of the account's active keys that replace this one. The error may
// be [ErrKeyNotFound] or [ErrUnavailable].
func (s *Store) Replacement(ctx context.Context, accountID, id uuid.UUID) (APIKey, error) {
	return s.findKey(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("api_key.account_id = ? AND api_key.replaces_id = ?", accountID, id).
			Where("api_key.revoked_at IS NULL").OrderExpr("api_key.id DESC").Limit(1)
	})
}

// FindAPIKey returns a key of any account. It is for operators. The error may be [ErrKeyNotFound]
// or [ErrUnavailable].
func (s *Store) FindAPIKey(ctx context.Context, id uuid.UUID) (APIKey, error) {
	return s.findKey(ctx, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("api_key.id = ?", id) })
}

// FindAPIKeyBySecret returns the key, of any account, with this secret. It is for operators who
// hold a leaked key. The error may be [ErrKeyMissingPrefix], [ErrKeyMalformed], [ErrKeyNotFound] or
// [ErrUnavailable].
func (s *Store) FindAPIKeyBySecret(ctx context.Context, secret string) (APIKey, error) {
	if err := checkKeySecret(secret); err != nil {
		return APIKey{}, err
	}
	hash := hashKey(secret)
	return s.findKey(ctx, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("api_key.key_hash = ?", hash[:]) })
}

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

func (s *Store) findKey(ctx context.Context, filter keyFilter) (APIKey, error) {
	key, err := s.scanKey(ctx, s.db, filter)
	if err != nil && !errors.Is(err, ErrKeyNotFound) {
		return APIKey{}, failed("find API key", err)
	}
	return key, err
}

// lockKey returns one of the account's keys, or [ErrKeyNotFound], and locks its row until the
// transaction ends. SQLite needs no lock: its transactions run one at a time.
func (s *Store) lockKey(ctx context.Context, tx bun.Tx, accountID, id uuid.UUID) (APIKey, error) {
	return s.scanKey(ctx, tx, func(q *bun.SelectQuery) *bun.SelectQuery {
		q = selectKey(accountID, id)(q)
		if s.db.Dialect().Name() == dialect.PG {
			q = q.For("NO KEY UPDATE OF api_key")
		}
		return q
	})
}

func (s *Store) scanKey(ctx context.Context, db bun.IDB, filter keyFilter) (APIKey, error) {
	var key APIKey
	err := filter(selectKeys(db, &key)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return APIKey{}, ErrKeyNotFound
	}
	if err != nil {
		return APIKey{}, err
	}
	key.LastUsedAt = s.usage.LastUse(key.ID, key.LastUsedAt)
	return key, nil
}
