package people

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/value"
)

// userTokens is a table of users' tokens, which it stores as hashes. A token is in a link or in the
// cookie of a pending sign-in, and works once, until it expires.
type userTokens struct {
	table   string
	invalid error // for a token that is unknown, was used or has expired
}

var (
	pendingSignIns     = userTokens{"pending_sign_ins", value.ErrSignInNotPending}
	signInLinks        = userTokens{"sign_in_links", value.ErrLinkInvalid}
	passwordResetLinks = userTokens{"password_reset_links", value.ErrMailLinkInvalid}
	emailChanges       = userTokens{"email_changes", value.ErrMailLinkInvalid}
)

// tokenTables are the tables of all tokens of users.
var tokenTables = []string{pendingSignIns.table, signInLinks.table, passwordResetLinks.table, emailChanges.table}

// create stores a new token and returns it.
func (u userTokens) create(ctx context.Context, tx db.Tx, userID uuid.UUID, expiresAt time.Time) (token string, err error) {
	token = value.NewToken()
	row := map[string]any{"token_hash": value.HashToken(token), "user_id": userID, "expires_at": expiresAt}
	_, err = tx.NewInsert().Model(&row).TableExpr(u.table).Exec(ctx)
	return token, err
}

// findUser returns the user of a token. The error may be invalid.
func (u userTokens) findUser(ctx context.Context, db bun.IDB, token string, now time.Time) (User, error) {
	return findEnabled(ctx, db, u.invalid, "u.id = (SELECT user_id FROM ? WHERE token_hash = ? AND expires_at > ?)",
		bun.Ident(u.table), value.HashToken(token), now)
}

// use deletes a token. If it was used in the meantime, the error is invalid.
func (u userTokens) use(ctx context.Context, tx db.Tx, token string) error {
	result, err := tx.NewDelete().TableExpr(u.table).Where("token_hash = ?", value.HashToken(token)).Exec(ctx)
	return value.UnlessAffected(result, err, u.invalid)
}

// keepNewest deletes a user's tokens except the n newest ones.
func (u userTokens) keepNewest(ctx context.Context, tx db.Tx, userID uuid.UUID, n int) error {
	old := tx.NewSelect().Table(u.table).Column("token_hash").Where("user_id = ?", userID).
		OrderExpr("expires_at DESC").Offset(int64(n)).Limit(math.MaxInt32)
	_, err := tx.NewDelete().TableExpr(u.table).Where("token_hash IN (?)", old).Exec(ctx)
	return err
}
