package models

import (
	"context"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/usage"
)

// Key is an API key without its value.
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
	CreatedBy  *uuid.UUID // the user who generated the key; nil for operators

	Leak Leak `bun:"embed:leak_"` // zero unless the key was reported as leaked

	ExpiresAt *time.Time    // nil: never
	Lifetime  time.Duration `bun:",nullzero"` // the time until ExpiresAt when it was last set
	// ExpiryWarnedAt is when mails about ExpiresAt were last queued; nil: not since it was set.
	ExpiryWarnedAt *time.Time
	Agents         []uuid.UUID    `bun:",nullzero"` // sorted; nil: all
	Networks       []netip.Prefix `bun:",nullzero"` // nil: any
	Note           string

	RevocationReason string // may be empty

	// RevokedBy is the email of the user who revoked the key, or "Operator". It is empty if
	// unknown, for an expired key, and except in a list of [Keys.Revoked].
	RevokedBy string `bun:",scanonly"`
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

	maxLifetime time.Duration // of new keys; 0: no limit
}

// Active returns the account's active keys, the newest first. Expired keys are not active.
func (k *Keys) Active(ctx context.Context, accountID uuid.UUID) ([]Key, error) {
	keys, err := k.scan(ctx, k.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		return k.whereActive(q).Where("api_key.account_id = ?", accountID).OrderExpr("api_key.id DESC")
	})
	return keys, failed("list API keys", err)
}

// All returns a page of the account's keys, active and revoked, by id, for operators.
func (k *Keys) All(ctx context.Context, accountID uuid.UUID, page Page) (List[Key], error) {
	keys, err := k.scan(ctx, k.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		return page.byID(q).Where("api_key.account_id = ?", accountID)
	})
	return cut(keys, page), failed("list API keys", err)
}

// Find returns one of the account's keys, active or revoked, or [ErrKeyNotFound].
func (k *Keys) Find(ctx context.Context, accountID, id uuid.UUID) (Key, error) {
	return k.find(ctx, k.db, selectKey(accountID, id))
}

// Replacement returns the newest of the account's active keys that replace this one, or
// [ErrKeyNotFound].
func (k *Keys) Replacement(ctx context.Context, accountID, id uuid.UUID) (Key, error) {
	return k.find(ctx, k.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		return k.whereActive(q).Where("api_key.account_id = ? AND api_key.replaces_id = ?", accountID, id).
			OrderExpr("api_key.id DESC").Limit(1)
	})
}

// FindAsOperator returns a key of any account, or [ErrKeyNotFound].
func (k *Keys) FindAsOperator(ctx context.Context, id uuid.UUID) (Key, error) {
	return k.find(ctx, k.db, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("api_key.id = ?", id) })
}

// FindBySecret returns the key, of any account, with this secret, for operators who hold a leaked
// key. The error may be [ErrKeyMissingPrefix], [ErrKeyMalformed] or [ErrKeyNotFound].
func (k *Keys) FindBySecret(ctx context.Context, secret string) (Key, error) {
	if err := checkKeySecret(secret); err != nil {
		return Key{}, err
	}
	hash := hashKey(secret)
	return k.find(ctx, k.db, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("api_key.key_hash = ?", hash[:]) })
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

// find returns the only key that filter selects, or [ErrKeyNotFound].
func (k *Keys) find(ctx context.Context, db bun.IDB, filter keyFilter) (Key, error) {
	keys, err := k.scan(ctx, db, filter)
	switch {
	case err != nil:
		return Key{}, failed("find API key", err)
	case len(keys) == 0:
		return Key{}, ErrKeyNotFound
	}
	return keys[0], nil
}

// lock returns one of the account's keys, or [ErrKeyNotFound], and locks its row until the
// transaction ends.
func (k *Keys) lock(ctx context.Context, tx Tx, accountID, id uuid.UUID) (Key, error) {
	return k.find(ctx, tx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return k.db.locked(selectKey(accountID, id)(q), "NO KEY UPDATE OF api_key")
	})
}

// scan returns the keys that filter selects. Their last uses include unwritten ones.
func (k *Keys) scan(ctx context.Context, db bun.IDB, filter keyFilter) ([]Key, error) {
	keys := []Key{}
	err := filter(selectKeys(db, &keys)).Scan(ctx)
	for i := range keys {
		keys[i].LastUsedAt = k.usage.LastUse(keys[i].ID, keys[i].LastUsedAt)
	}
	return keys, err
}

const (
	// endedAt is the expression for when a key was revoked or, if it was not, when it expires.
	endedAt = "COALESCE(api_key.revoked_at, api_key.expires_at)"
	// hasEnded is the condition that a key is revoked or has expired at a time.
	hasEnded = "(api_key.revoked_at IS NOT NULL OR COALESCE(api_key.expires_at <= ?, FALSE))"
)

// RevokedKeysKept is how long a revoked or expired key is listed.
const RevokedKeysKept = 90 * Day

// Revoked returns a page of the account's keys that were revoked or expired in the last 90 days,
// the latest first, with RevokedBy.
func (k *Keys) Revoked(ctx context.Context, accountID uuid.UUID, page Page) (List[Key], error) {
	now := k.db.Now()
	keys, err := k.scan(ctx, k.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		q = q.Where(hasEnded, now).Where(endedAt+" >= ?", now.Add(-RevokedKeysKept)).
			ColumnExpr("COALESCE(u.email, CASE activity.actor_kind WHEN ? THEN 'Operator' ELSE '' END) AS revoked_by", ActorOperator).
			Join("LEFT JOIN activities AS activity ON activity.account_id = api_key.account_id AND activity.subject_id = api_key.id AND activity.action = ?", ActionKeyRevoked).
			Join("LEFT JOIN users AS u ON u.id = activity.actor_id").
			Where("api_key.account_id = ?", accountID).
			OrderExpr(endedAt + " DESC, api_key.id DESC").Limit(int64(page.Limit) + 1)
		if page.After != uuid.Nil {
			q = q.Where("("+endedAt+", api_key.id) < (SELECT COALESCE(revoked_at, expires_at), id FROM api_keys WHERE account_id = ? AND id = ?)",
				accountID, page.After)
		}
		return q
	})
	return cut(keys, page), failed("list revoked API keys", err)
}

// Creator returns the email of the user who generated one of the account's keys. If an operator
// generated it, or if the account has never had another user, it returns "".
func (k *Keys) Creator(ctx context.Context, accountID, keyID uuid.UUID) (string, error) {
	var email string
	err := k.db.NewSelect().Model((*Key)(nil)).ColumnExpr("u.email").
		Join("JOIN users AS u ON u.id = api_key.created_by").
		Where("api_key.account_id = ? AND api_key.id = ? AND u.account_id = ?", accountID, keyID, accountID).
		Where("EXISTS (SELECT 1 FROM users AS other WHERE other.account_id = ? AND other.id <> u.id)", accountID).
		Scan(ctx, &email)
	return email, notFound("find the creator of an API key", err, nil)
}

// GeneratedBy returns the account's active keys that a user has generated, the newest first.
func (k *Keys) GeneratedBy(ctx context.Context, accountID, userID uuid.UUID) ([]Key, error) {
	keys := []Key{}
	err := k.whereActive(k.db.NewSelect().Model(&keys)).Where("api_key.account_id = ?", accountID).
		Where("api_key.created_by = ?", userID).OrderExpr("api_key.id DESC").Scan(ctx)
	return keys, failed("list the API keys of a user", err)
}
