package people

import (
	"context"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

// lockEnabledAccount returns [value.ErrWrongCredentials] if the account is disabled, and lets
// nobody disable it.
func lockEnabledAccount(ctx context.Context, tx db.Tx, id uuid.UUID) error {
	query := tx.NewSelect().Model((*Account)(nil)).Column("id").Where("id = ? AND disabled_at IS NULL", id)
	return lockOne(ctx, tx.DB.Locked(query, "SHARE"))
}

// lockOwned locks an account, or returns [value.ErrNotOwner] as [CheckOwner] does.
func lockOwned(ctx context.Context, tx db.Tx, id uuid.UUID, actor record.Actor) error {
	if err := tx.LockAccount(ctx, id); err != nil {
		return err
	}
	return CheckOwner(ctx, tx, id, actor)
}

// lockUser locks one of the account's users, so that only one transaction at a time changes the
// factors. If there is no such user, the error is [value.ErrWrongCredentials].
func lockUser(ctx context.Context, tx db.Tx, accountID, id uuid.UUID) error {
	return lockUserWhere(ctx, tx, "account_id = ? AND id = ? AND removed_at IS NULL", accountID, id)
}

// lockEnabled locks an account and one of its users. If one of them is disabled, it returns
// [value.ErrSignInDisabled].
func lockEnabled(ctx context.Context, tx db.Tx, accountID, userID uuid.UUID) error {
	err := lockEnabledAccount(ctx, tx, accountID)
	if err == nil {
		err = lockUserWhere(ctx, tx, "id = ? AND disabled_at IS NULL", userID)
	}
	return value.DisabledIfWrong(err)
}

// lockVerified locks the account and the user that a sign-in has verified. If one of them was
// disabled since, or the password has changed, it returns [value.ErrWrongCredentials].
func lockVerified(ctx context.Context, tx db.Tx, user User) error {
	if err := lockEnabledAccount(ctx, tx, user.AccountID); err != nil {
		return err
	}
	return lockPassword(ctx, tx, user)
}

// lockPassword locks a user, or returns [value.ErrWrongCredentials] if the user was disabled or the
// password has changed since it was verified.
func lockPassword(ctx context.Context, tx db.Tx, user User) error {
	return lockUserWhere(ctx, tx, "id = ? AND password_hash = ? AND disabled_at IS NULL", user.ID, user.PasswordHash)
}

func lockUserWhere(ctx context.Context, tx db.Tx, where string, args ...any) error {
	query := tx.NewSelect().Model((*User)(nil)).Column("id").Where(where, args...)
	return lockOne(ctx, tx.DB.Locked(query, "NO KEY UPDATE"))
}

// lockOne returns [value.ErrWrongCredentials] if the query finds no row.
func lockOne(ctx context.Context, query *bun.SelectQuery) error {
	return value.NoRows(query.Scan(ctx, new(uuid.UUID)), value.ErrWrongCredentials)
}
