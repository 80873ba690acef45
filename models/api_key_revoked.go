package models

import (
	"context"

	"github.com/google/uuid"
)

// RevokedKeysKept is how long a revoked key is listed.
const RevokedKeysKept = 90 * Day

// RevokedAPIKey is a revoked key with its revocation.
type RevokedKey struct {
	Key `bun:",extend"`

	RevokedBy string `bun:",scanonly"` // the user's email, or "Operator"; empty if unknown
}

// Revoked returns a page of the account's keys that were revoked in the last 90 days, the
// latest revocation first. The error may be [ErrUnavailable].
func (k *Keys) Revoked(ctx context.Context, accountID uuid.UUID, page Page) (List[RevokedKey], error) {
	keys := []RevokedKey{}
	query := selectKeys(k.db, &keys).
		ColumnExpr("COALESCE(u.email, CASE activity.actor_kind WHEN ? THEN 'Operator' ELSE '' END) AS revoked_by", ActorOperator).
		Join("LEFT JOIN activities AS activity ON activity.account_id = api_key.account_id AND activity.subject_id = api_key.id AND activity.action = ?", ActionKeyRevoked).
		Join("LEFT JOIN users AS u ON u.id = activity.actor_id").
		Where("api_key.account_id = ? AND api_key.revoked_at >= ?", accountID, k.db.Now().Add(-RevokedKeysKept)).
		OrderExpr("api_key.revoked_at DESC, api_key.id DESC").Limit(int64(page.Limit) + 1)
	if page.After != uuid.Nil {
		query = query.Where("(api_key.revoked_at, api_key.id) < (SELECT revoked_at, id FROM api_keys WHERE account_id = ? AND id = ?)",
			accountID, page.After)
	}
	if err := query.Scan(ctx); err != nil {
		return List[RevokedKey]{}, failed("list revoked API keys", err)
	}
	for i := range keys {
		keys[i].LastUsedAt = k.usage.LastUse(keys[i].ID, keys[i].LastUsedAt)
	}
	return cut(keys, page), nil
}
