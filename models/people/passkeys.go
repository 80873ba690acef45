package people

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

// ChallengeLife is how long a challenge can be answered.
const ChallengeLife = 5 * time.Minute

// Passkey is a WebAuthn credential with which a user signs in. It has no secret.
type Passkey struct {
	bun.BaseModel `bun:"table:passkeys,alias:passkey"`

	ID           uuid.UUID `bun:",pk"`
	UserID       uuid.UUID
	CredentialID []byte
	Credential   string // the credential record as JSON; only the caller reads it
	SignCount    int64  // signature counter; 0 if the passkey has none
	Name         string
	CreatedAt    time.Time
	LastUsedAt   *time.Time // nil: never
}

// usedChallenge is a WebAuthn challenge that has been answered.
type usedChallenge struct {
	bun.BaseModel `bun:"table:used_challenges,alias:used_challenge"`

	ChallengeHash []byte `bun:",pk"` // SHA-256
	ExpiresAt     time.Time
}

// Passkeys returns the passkeys of a session's user, the oldest first.
func (c *Credentials) Passkeys(ctx context.Context, session Session) ([]Passkey, error) {
	passkeys := []Passkey{}
	err := c.db.NewSelect().Model(&passkeys).Where("user_id = ?", session.UserID).OrderExpr("id").Limit(value.MaxPasskeys).Scan(ctx)
	return passkeys, value.Failed("list passkeys", err)
}

// AddPasskey stores a passkey that a session's user has created as the answer to a challenge, and
// records the activity. The error may be [value.ErrPasskeyLimit], [value.ErrPasskeyTaken] or
// [value.ErrChallengeUsed].
func (c *Credentials) AddPasskey(ctx context.Context, session Session, passkey Passkey, challenge string, actor record.Actor) error {
	passkey.ID, passkey.UserID, passkey.CreatedAt = value.NewID(), session.UserID, c.db.Now()
	return c.db.InTx(ctx, "add passkey", func(ctx context.Context, tx db.Tx) error {
		if err := lockUser(ctx, tx, session.AccountID, session.UserID); err != nil {
			return err
		}
		if err := checkOwnSignIn(ctx, tx.DB, tx, session.UserID); err != nil {
			return err
		}
		if err := useChallenge(ctx, tx, challenge); err != nil {
			return err
		}
		count, err := tx.NewSelect().Model((*Passkey)(nil)).Where("user_id = ?", session.UserID).Count(ctx)
		if err := value.RefusedIf(count >= value.MaxPasskeys, err, value.ErrPasskeyLimit); err != nil {
			return err
		}
		result, err := tx.NewInsert().Model(&passkey).On("CONFLICT (credential_id) DO NOTHING").Exec(ctx)
		if err := value.UnlessAffected(result, err, value.ErrPasskeyTaken); err != nil {
			return err
		}
		return record.Add(ctx, tx, actor, record.Activity{
			AccountID: session.AccountID, Action: record.ActionPasskeyAdded, SubjectID: &passkey.ID, Label: passkey.Name,
		})
	})
}

// RemovePasskey deletes a passkey of a session's user, ends the user's other sessions and records
// the activity. If the user could not sign in any more, the error is [value.ErrOnlySignIn], and if
// the account requires a factor and this is the last one, [value.ErrLastFactor].
func (c *Credentials) RemovePasskey(ctx context.Context, session Session, id uuid.UUID, actor record.Actor) error {
	return c.db.InTx(ctx, "remove passkey", func(ctx context.Context, tx db.Tx) error {
		if err := tx.LockAccount(ctx, session.AccountID); err != nil {
			return err
		}
		if err := lockUser(ctx, tx, session.AccountID, session.UserID); err != nil {
			return err
		}
		user, err := FindUser(ctx, tx, "u.id = ?", session.UserID)
		if err != nil {
			return err
		}
		var removed Passkey
		err = tx.NewSelect().Model(&removed).Where("id = ? AND user_id = ?", id, user.ID).Scan(ctx)
		if err != nil {
			return value.NoRows(err, value.ErrPasskeyNotFound)
		}
		if _, err := tx.NewDelete().Model(&removed).WherePK().Exec(ctx); err != nil {
			return err
		}
		if err := c.passwords.checkSignIn(ctx, tx, user.ID); err != nil {
			return err
		}
		if err := checkFactorLeft(ctx, tx, user.ID); err != nil {
			return err
		}
		err = record.Add(ctx, tx, actor, record.Activity{AccountID: session.AccountID, Action: record.ActionPasskeyRemoved, SubjectID: &id, Label: removed.Name})
		if err != nil {
			return err
		}
		return endOtherSessions(ctx, tx, session.AccountID, user.ID, session.ID, actor)
	})
}

// FindPasskey returns the passkey with the credential id, or [value.ErrPasskeyNotFound].
func (c *Credentials) FindPasskey(ctx context.Context, credentialID []byte) (Passkey, error) {
	var passkey Passkey
	err := c.db.NewSelect().Model(&passkey).Where("credential_id = ?", credentialID).Scan(ctx)
	return passkey, value.NotFound("find passkey", err, value.ErrPasskeyNotFound)
}

// WithPasskey signs in the user of a passkey that has just answered a challenge, and that has its
// new signature counter and credential record. If the passkey was removed or its counter has not
// grown, the error is [value.ErrPasskeyNotFound]. It may also be [value.ErrChallengeUsed].
func (s *SignIn) WithPasskey(ctx context.Context, passkey Passkey, challenge string, client Client) (SignedIn, error) {
	return db.InTx(ctx, s.db, "sign in with a passkey", func(ctx context.Context, tx db.Tx) (SignedIn, error) {
		user, err := findEnabled(ctx, tx, value.ErrPasskeyNotFound, "u.id = ? AND u.removed_at IS NULL", passkey.UserID)
		if err != nil {
			return SignedIn{}, err
		}
		// The sign-in is first, because it locks the account and the user.
		signedIn, err := s.begin(ctx, tx, user, byPasskey, client)
		if err != nil {
			return SignedIn{}, err
		}
		if err := useChallenge(ctx, tx, challenge); err != nil {
			return SignedIn{}, err
		}
		// A counter that does not grow is a sign of a copied authenticator (WebAuthn
		// section 6.1.1). The caller refuses one that has become 0.
		result, err := tx.NewUpdate().Model((*Passkey)(nil)).
			Set("sign_count = ?, credential = ?, last_used_at = ?", passkey.SignCount, passkey.Credential, tx.Now()).
			Where("id = ? AND (sign_count < ? OR ? = 0)", passkey.ID, passkey.SignCount, passkey.SignCount).Exec(ctx)
		return signedIn, value.UnlessAffected(result, err, fmt.Errorf("%w, or its signature counter has not grown", value.ErrPasskeyNotFound))
	})
}

// useChallenge returns [value.ErrChallengeUsed] if the challenge has been answered before.
func useChallenge(ctx context.Context, tx db.Tx, challenge string) error {
	used := usedChallenge{ChallengeHash: value.HashToken(challenge), ExpiresAt: tx.Now().Add(2 * ChallengeLife)}
	result, err := tx.NewInsert().Model(&used).On("CONFLICT (challenge_hash) DO NOTHING").Exec(ctx)
	return value.UnlessAffected(result, err, value.ErrChallengeUsed)
}
