package models

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"
)

// keyCreator is the SQL expression for the user who generated a key. Keys from before the column
// have the user in the activity log only.
const keyCreator = `COALESCE(api_key.created_by, (SELECT actor_id FROM activities
	WHERE account_id = api_key.account_id AND subject_id = api_key.id AND action = 'api_key.generated'))`

// KeyCreator returns the email of the user who generated one of the account's keys. It returns ""
// if this is unknown, if it was an operator, and if the account has never had another user. The
// error may be [ErrUnavailable].
func (s *Store) KeyCreator(ctx context.Context, accountID, keyID uuid.UUID) (string, error) {
	var email string
	err := s.db.NewSelect().Model((*APIKey)(nil)).ColumnExpr("u.email").
		Join("JOIN users AS u ON u.id = "+keyCreator).
		Where("api_key.account_id = ? AND api_key.id = ? AND u.account_id = ?", accountID, keyID, accountID).
		Where("EXISTS (SELECT 1 FROM users AS other WHERE other.account_id = ? AND other.id <> u.id)", accountID).
		Scan(ctx, &email)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return email, failed("find the creator of an API key", err)
}

// KeysGeneratedBy returns the account's active keys that a user has generated, the newest first.
// The error may be [ErrUnavailable].
func (s *Store) KeysGeneratedBy(ctx context.Context, accountID, userID uuid.UUID) ([]APIKey, error) {
	keys := []APIKey{}
	err := s.db.NewSelect().Model(&keys).
		Where("api_key.account_id = ? AND api_key.revoked_at IS NULL", accountID).
		Where(keyCreator+" = ?", userID).OrderExpr("api_key.id DESC").Scan(ctx)
	return keys, failed("list the API keys of a user", err)
}
