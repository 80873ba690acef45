package people

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

// FindUser returns the user that matches where, or [value.ErrUserNotFound].
func FindUser(ctx context.Context, db bun.IDB, where string, args ...any) (User, error) {
	var user User
	err := SelectUsers(db, &user).
		ColumnExpr("u.disabled_at IS NOT NULL OR EXISTS (SELECT 1 FROM accounts WHERE id = u.account_id AND disabled_at IS NOT NULL) AS disabled").
		Where(where, args...).Scan(ctx)
	return user, value.NoRows(err, value.ErrUserNotFound)
}

// findEnabled is FindUser with another error if there is no such user, and with
// [value.ErrSignInDisabled] for a disabled one.
func findEnabled(ctx context.Context, db bun.IDB, missing error, where string, args ...any) (User, error) {
	user, err := FindUser(ctx, db, where, args...)
	switch {
	case errors.Is(err, value.ErrUserNotFound):
		return User{}, missing
	case err != nil:
		return User{}, err
	case user.Disabled:
		return User{}, value.ErrSignInDisabled
	}
	return user, nil
}

// SelectUsers selects users with their factors.
func SelectUsers(db bun.IDB, into any) *bun.SelectQuery {
	return db.NewSelect().Model(into).ColumnExpr("?TableColumns").
		ColumnExpr(hasApp + " AS has_app").ColumnExpr(hasPasskey + " AS has_passkey")
}

// insertUser stores a new user, or returns [value.ErrEmailTaken].
func insertUser(ctx context.Context, tx db.Tx, user User) (User, error) {
	if err := checkEmailFree(ctx, tx, user.Email, uuid.Nil); err != nil {
		return user, err
	}
	user.ID, user.EmailHash, user.CreatedAt = value.NewID(), value.HashEmail(user.Email), tx.Now()
	result, err := tx.NewInsert().Model(&user).On("CONFLICT (email_hash) DO NOTHING").Exec(ctx)
	return user, value.UnlessAffected(result, err, value.ErrEmailTaken)
}

// addUser stores a new user whose email an operator or the identity provider has given, records the
// activity, and deletes a pending invitation of the user to the account.
func addUser(ctx context.Context, tx db.Tx, user User, actor record.Actor) (User, error) {
	if err := freeEmail(ctx, tx, user.Email, user.AccountID); err != nil {
		return User{}, err
	}
	user.EmailProvenAt = new(tx.Now())
	user, err := insertUser(ctx, tx, user)
	if err != nil {
		return User{}, err
	}
	err = tx.Delete(ctx, (*Invitation)(nil), "account_id = ? AND email_hash IN (?)", user.AccountID, bun.List(value.EmailHashes(user.Email)))
	if err != nil {
		return User{}, err
	}
	return user, record.Add(ctx, tx, actor, user.activity(record.ActionUserAdded))
}

// checkEmailFree returns [value.ErrEmailTaken] if a user, other than except, has the email.
func checkEmailFree(ctx context.Context, db bun.IDB, email string, except uuid.UUID) error {
	taken, err := db.NewSelect().Model((*User)(nil)).Where("email_hash IN (?) AND id <> ?", bun.List(value.EmailHashes(email)), except).Exists(ctx)
	return value.RefusedIf(taken, err, value.ErrEmailTaken)
}

// proveEmail notes that the user has used a link that was mailed to the email.
func proveEmail(ctx context.Context, tx db.Tx, userID uuid.UUID) error {
	_, err := tx.NewUpdate().Model((*User)(nil)).Set("email_proven_at = ?", tx.Now()).
		Where("id = ? AND email_proven_at IS NULL", userID).Exec(ctx)
	return err
}

// setDisabledAt disables or enables the row of a user or an account, and reports whether the row
// has changed.
func setDisabledAt(ctx context.Context, tx db.Tx, model any, id uuid.UUID, disabled bool) (bool, error) {
	query := tx.NewUpdate().Model(model).Where("id = ?", id)
	if disabled {
		query = query.Set("disabled_at = ?", tx.Now()).Where("disabled_at IS NULL")
	} else {
		query = query.Set("disabled_at = NULL").Where("disabled_at IS NOT NULL")
	}
	changed, err := value.Affected(query.Exec(ctx))
	return changed > 0, err
}

// CheckOwner returns [value.ErrNotOwner] unless the actor may manage the account's users: an
// operator, or an owner who was neither removed nor disabled since the request began.
func CheckOwner(ctx context.Context, tx db.Tx, accountID uuid.UUID, actor record.Actor) error {
	if actor.Kind == record.ActorOperator {
		return nil
	}
	owns, err := tx.NewSelect().Model((*User)(nil)).
		Where("u.id = ? AND u.account_id = ? AND u.role = ? AND u.disabled_at IS NULL", actor.ID, accountID, RoleOwner).Exists(ctx)
	return value.RefusedIf(!owns, err, value.ErrNotOwner)
}

// Conditions on the user u: the user has an authenticator app, a passkey, or one of the two.
const (
	hasApp     = "EXISTS (SELECT 1 FROM authenticators WHERE user_id = u.id AND enabled_at IS NOT NULL)"
	hasPasskey = "EXISTS (SELECT 1 FROM passkeys WHERE user_id = u.id)"
	hasFactor  = "(" + hasApp + " OR " + hasPasskey + ")"
)

// freeEmail makes an email free for a user who has used a link mailed to it, or whom an operator or
// the identity provider gives it. A user who has it but never proved it gets another one, at which
// nobody receives mail, and keeps everything else, unless that is a user of the account except.
// The account's activity log and a mail to the email show the new one.
func freeEmail(ctx context.Context, tx db.Tx, email string, except uuid.UUID) error {
	unproven := "u.email_hash = ? AND u.email_proven_at IS NULL AND u.account_id <> ?"
	err := lockUserWhere(ctx, tx, unproven, value.StoredHash(email), except)
	if err != nil {
		return value.Except(err, value.ErrWrongCredentials)
	}
	user, err := FindUser(ctx, tx, unproven, value.StoredHash(email), except)
	if err != nil {
		return err
	}
	// The activity must not show the other account who has proved the email.
	return replaceEmail(ctx, tx, user.ID, "user-"+hex.EncodeToString(value.Random(8))+value.UnprovenDomain, nil, record.VisitorActor(""))
}

// replaceEmail stores the new email of a user whose row is locked, ends the known browsers and the
// links that were sent to an email of the user, and records the activity. If provenAt is nil,
// nobody has proved the email.
func replaceEmail(ctx context.Context, tx db.Tx, userID uuid.UUID, email string, provenAt *time.Time, actor record.Actor) error {
	user, err := FindUser(ctx, tx, "u.id = ?", userID)
	if err != nil {
		return err
	}
	if err := checkEmailFree(ctx, tx, email, userID); err != nil {
		return err
	}
	if provenAt != nil {
		provenAt = cmp.Or(user.EmailProvenAt, provenAt)
	}
	_, err = tx.NewUpdate().Model((*User)(nil)).
		Set("email = ?, email_hash = ?, email_proven_at = ?", email, value.HashEmail(email), provenAt).
		Set("known_browsers = known_browsers + 1").
		Where("id = ?", userID).Exec(ctx)
	if err != nil {
		return err
	}
	if err := tx.DeleteOf(ctx, userID, passwordResetLinks.table, emailChanges.table); err != nil {
		return err
	}
	return record.Add(ctx, tx, actor, record.Activity{
		AccountID: user.AccountID, Action: record.ActionEmailChanged, SubjectID: &userID, Label: email, FormerLabel: user.Email,
	})
}
