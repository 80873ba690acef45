package models

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// APIKeyName identifies a key for a user.
type KeyName struct {
	ID        uuid.UUID
	Label     string
	LastFour  string
	RevokedAt *time.Time
}

// Masked is [Key.Masked].
func (k KeyName) Masked() string { return masked(k.LastFour) }

// Names returns the account's active keys, the newest first, and after them the keys of
// [Keys.Revoked]. The error may be [ErrUnavailable].
func (k *Keys) Names(ctx context.Context, accountID uuid.UUID, revokedLimit int) ([]KeyName, error) {
	const columns = "id, label, last_four, revoked_at"
	active := k.db.NewSelect().Table("api_keys").ColumnExpr(columns).
		Where("account_id = ? AND revoked_at IS NULL", accountID).OrderExpr("id DESC")
	revoked := k.db.NewSelect().Table("api_keys").ColumnExpr(columns).
		Where("account_id = ? AND revoked_at >= ?", accountID, k.db.Now().Add(-RevokedKeysKept)).
		OrderExpr("revoked_at DESC, id DESC").Limit(int64(revokedLimit))
	names := []KeyName{}
	// SQLite allows neither an order nor a limit inside a union, but it allows them in a table
	// expression.
	rows := func(keys *bun.SelectQuery) *bun.SelectQuery {
		return k.db.NewSelect().TableExpr("(?) AS part", keys).ColumnExpr(columns)
	}
	err := rows(active).UnionAll(rows(revoked)).Scan(ctx, &names)
	if err != nil {
		return nil, failed("list the names of API keys", err)
	}
	return names, nil
}
