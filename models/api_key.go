package models

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// MaxActiveKeys is how many active keys an account can have.
const MaxActiveKeys = 100

// APIKey is what is known of a key: everything but its value.
type APIKey struct {
	bun.BaseModel `bun:"table:api_keys,alias:api_key"`

	ID        uuid.UUID `bun:",pk"`
	AccountID uuid.UUID
	Label     string
	KeyHash   []byte // SHA-256 of the whole key
	LastFour  string
	FormID    uuid.UUID // the rendered form that made it
	CreatedAt time.Time
	RevokedAt *time.Time

	// LastUsedAt is the time of the latest authenticated API request; nil
	// before the first.
	LastUsedAt *time.Time `bun:",scanonly"`
}

// Masked returns the key as lists show it (spec section 2).
func (k APIKey) Masked() string { return keyPrefix + "..." + k.LastFour }

// NewAPIKey is a key to be made.
type NewAPIKey struct {
	Label  string    // 1 to 100 characters, no control characters
	FormID uuid.UUID // the rendered form, which makes one key at the most
}

// GenerateAPIKey makes a key and records the activity. The second result is
// the whole key, which nothing else holds: it cannot be had again.
//
// It returns an [*InvalidError] for the field "label", a [*RepeatedFormError],
// [ErrKeyLimit], or [ErrUnavailable].
func (s *Store) GenerateAPIKey(ctx context.Context, accountID uuid.UUID, n NewAPIKey, actor Actor) (APIKey, string, error) {
	label, err := cleanName("label", "Label", n.Label)
	if err != nil {
		return APIKey{}, "", err
	}
	secret := newKeySecret()
	hash := hashKey(secret)
	key := APIKey{
		ID: newID(), AccountID: accountID, Label: label, KeyHash: hash[:],
		LastFour: secret[keyLength-4:], FormID: n.FormID, CreatedAt: s.clock(),
	}
	var made APIKey
	err = s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if err := s.lockAccount(ctx, tx, accountID); err != nil {
			return err
		}
		err := tx.NewSelect().Model(&made).
			Where("account_id = ? AND form_id = ?", accountID, n.FormID).Scan(ctx)
		if err == nil {
			return &RepeatedFormError{made}
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		active, err := tx.NewSelect().Model((*APIKey)(nil)).
			Where("account_id = ? AND revoked_at IS NULL", accountID).Count(ctx)
		if err != nil {
			return err
		}
		if active >= MaxActiveKeys {
			return ErrKeyLimit
		}
		if _, err := tx.NewInsert().Model(&key).Exec(ctx); err != nil {
			return err
		}
		return s.record(ctx, tx, accountID, actor, ActionKeyGenerated, key.ID, key.Label)
	})
	var repeated *RepeatedFormError
	switch {
	case errors.As(err, &repeated), errors.Is(err, ErrKeyLimit):
		return APIKey{}, "", err
	case err != nil:
		return APIKey{}, "", failed("generate API key", err)
	}
	return key, secret, nil
}

// APIKeys returns the account's active keys, newest first, with the uses that
// this instance has seen and not written yet; the error may be
// [ErrUnavailable].
func (s *Store) APIKeys(ctx context.Context, accountID uuid.UUID) ([]APIKey, error) {
	keys := []APIKey{}
	err := s.selectKeys(&keys).Where("api_key.account_id = ? AND api_key.revoked_at IS NULL", accountID).
		OrderExpr("api_key.id DESC").Scan(ctx)
	if err != nil {
		return nil, failed("list API keys", err)
	}
	for i := range keys {
		keys[i].LastUsedAt = s.usage.latest(keys[i].ID, keys[i].LastUsedAt)
	}
	return keys, nil
}

// APIKey returns one of the account's keys, active or revoked, or
// [ErrKeyNotFound] or [ErrUnavailable].
func (s *Store) APIKey(ctx context.Context, accountID, id uuid.UUID) (APIKey, error) {
	return s.findKey(ctx, "api_key.account_id = ? AND api_key.id = ?", accountID, id)
}

// FindAPIKey returns a key of any account, or [ErrKeyNotFound] or
// [ErrUnavailable]. It is for operators.
func (s *Store) FindAPIKey(ctx context.Context, id uuid.UUID) (APIKey, error) {
	return s.findKey(ctx, "api_key.id = ?", id)
}

// FindAPIKeyBySecret returns the key of any account that has this value, or
// [ErrKeyMissingPrefix], [ErrKeyMalformed], [ErrKeyNotFound] or
// [ErrUnavailable]. It is for operators who hold a leaked key.
func (s *Store) FindAPIKeyBySecret(ctx context.Context, secret string) (APIKey, error) {
	if err := checkKeySecret(secret); err != nil {
		return APIKey{}, err
	}
	hash := hashKey(secret)
	return s.findKey(ctx, "api_key.key_hash = ?", hash[:])
}

// RevokeAPIKey revokes one of the account's keys and records the activity.
// Once it has returned, no instance accepts the key. It returns the key as it
// is now, with [ErrKeyAlreadyRevoked] if it was revoked before; or
// [ErrKeyNotFound], or [ErrUnavailable], after which the outcome is unknown.
func (s *Store) RevokeAPIKey(ctx context.Context, accountID, id uuid.UUID, actor Actor) (APIKey, error) {
	var revoked bool
	err := s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		var label string
		err := tx.NewUpdate().Model((*APIKey)(nil)).Set("revoked_at = ?", s.clock()).
			Where("account_id = ? AND id = ? AND revoked_at IS NULL", accountID, id).
			Returning("label").Scan(ctx, &label)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		revoked = true
		return s.record(ctx, tx, accountID, actor, ActionKeyRevoked, id, label)
	})
	if err != nil {
		return APIKey{}, failed("revoke API key", err)
	}
	key, err := s.APIKey(ctx, accountID, id)
	if err == nil && !revoked {
		err = ErrKeyAlreadyRevoked
	}
	return key, err
}

func (s *Store) selectKeys(into any) *bun.SelectQuery {
	return s.db.NewSelect().Model(into).ColumnExpr("api_key.*").
		ColumnExpr("last_use.used_at AS last_used_at").
		Join("LEFT JOIN api_key_last_uses AS last_use ON last_use.api_key_id = api_key.id")
}

func (s *Store) findKey(ctx context.Context, where string, args ...any) (APIKey, error) {
	var key APIKey
	err := s.selectKeys(&key).Where(where, args...).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return APIKey{}, ErrKeyNotFound
	}
	if err != nil {
		return APIKey{}, failed("find API key", err)
	}
	key.LastUsedAt = s.usage.latest(key.ID, key.LastUsedAt)
	return key, nil
}
