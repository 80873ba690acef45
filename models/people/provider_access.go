package people

import (
	"context"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"

	"portal/models/internal/db"
	"portal/models/value"
)

// decidedByProvider is a condition on the user u: the identity provider decides about the user's
// access. Such a user has an identity of the provider, which only an operator takes away, by
// removing the user, and signs in there alone.
func decidedByProvider(db *db.DB) schema.QueryWithArgs {
	if db.RolesFrom == "" {
		return bun.SafeQuery("false")
	}
	return bun.SafeQuery("EXISTS (SELECT 1 FROM identities WHERE user_id = u.id AND issuer = ?)", db.RolesFrom)
}

// checkOwnSignIn returns [value.ErrOnlyByProvider] if the identity provider decides about the
// user's access. Every way to sign in that does not ask the provider calls it, except links of
// operators.
func checkOwnSignIn(ctx context.Context, db *db.DB, conn bun.IDB, userID uuid.UUID) error {
	if db.RolesFrom == "" {
		return nil
	}
	decided, err := conn.NewSelect().Model((*User)(nil)).Where("u.id = ?", userID).Where("?", decidedByProvider(db)).Exists(ctx)
	return value.RefusedIf(decided, err, value.ErrOnlyByProvider)
}
