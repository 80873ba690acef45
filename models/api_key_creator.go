package models

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"
)

// Creator returns the email of the user who generated one of the account's keys. It returns ""
// if it was an operator, and if the account has never had another user.
func (k *Keys) Creator(ctx context.Context, accountID, keyID uuid.UUID) (string, error) {
	var email string
	err := k.db.NewSelect().Model((*Key)(nil)).ColumnExpr("u.email").
		Join("JOIN users AS u ON u.id = api_key.created_by").
		Where("api_key.account_id = ? AND api_key.id = ? AND u.account_id = ?", accountID, keyID, accountID).
		Where("EXISTS (SELECT 1 FROM users AS other WHERE other.account_id = ? AND other.id <> u.id)", accountID).
		Scan(ctx, &email)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return email, failed("find the creator of an API key", err)
}

// GeneratedBy returns the account's active keys that a user has generated, the newest first.
func (k *Keys) GeneratedBy(ctx context.Context, accountID, userID uuid.UUID) ([]Key, error) {
	keys := []Key{}
	err := k.db.NewSelect().Model(&keys).
		Where("api_key.account_id = ? AND api_key.revoked_at IS NULL", accountID).
		Where("api_key.created_by = ?", userID).OrderExpr("api_key.id DESC").Scan(ctx)
	return keys, failed("list the API keys of a user", err)
}
