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

	// ReplacesID is the key that this one was made to take the place of.
	ReplacesID *uuid.UUID

	// LastUsedAt is the time of the latest authenticated API request; nil
	// before the first.
	LastUsedAt *time.Time `bun:",scanonly"`
}

// Masked returns the key as lists show it (spec section 2).
func (k APIKey) Masked() string { return masked(k.LastFour) }

func masked(lastFour string) string { return keyPrefix + "..." + lastFour }

// NewAPIKey is a key to be made.
type NewAPIKey struct {
	Label  string    // 1 to 100 characters, no control characters
	FormID uuid.UUID // the rendered form, which makes one key at the most

	// Replaces is an active key of the same account that this one is to take
	// the place of, in a rotation; zero: none.
	Replaces uuid.UUID
}

// GenerateAPIKey makes a key and records the activity. The second result is
// the whole key, which nothing else holds: it cannot be had again.
//
// It returns an [*InvalidError] for the field "label", a [*RepeatedFormError],
// [ErrKeyLimit], [ErrKeyNotFound] or [ErrKeyAlreadyRevoked] for a key that
// cannot be replaced, or [ErrUnavailable].
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
	if n.Replaces != uuid.Nil {
		key.ReplacesID = &n.Replaces
	}
	err = s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if err := s.lockAccount(ctx, tx, accountID); err != nil {
			return err
		}
		if err := checkNewKey(ctx, tx, &key); err != nil {
			return err
		}
		if _, err := tx.NewInsert().Model(&key).Exec(ctx); err != nil {
			return err
		}
		return s.record(ctx, tx, accountID, actor, ActionKeyGenerated, key.ID, key.Label)
	})
	if err != nil {
		return APIKey{}, "", failed("generate API key", err)
	}
	return key, secret, nil
}

// checkNewKey returns why a key cannot be made: its form has made one, the
// account is full, or the key that it replaces is not there to be replaced.
func checkNewKey(ctx context.Context, tx bun.Tx, key *APIKey) error {
	var made APIKey
	err := tx.NewSelect().Model(&made).
		Where("account_id = ? AND form_id = ?", key.AccountID, key.FormID).Scan(ctx)
	if err == nil {
		return &RepeatedFormError{made}
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	active, err := tx.NewSelect().Model((*APIKey)(nil)).
		Where("account_id = ? AND revoked_at IS NULL", key.AccountID).Count(ctx)
	if err != nil {
		return err
	}
	if active >= MaxActiveKeys {
		return ErrKeyLimit
	}
	if key.ReplacesID == nil {
		return nil
	}
	var replaced APIKey
	err = tx.NewSelect().Model(&replaced).
		Where("account_id = ? AND id = ?", key.AccountID, key.ReplacesID).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrKeyNotFound
	}
	if err == nil && replaced.RevokedAt != nil {
		return ErrKeyAlreadyRevoked
	}
	return err
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
	// Looked for first: even an update of no row would renew the epoch, and who
	// guesses ids could have every instance forget what it remembers.
	if key, err := s.APIKey(ctx, accountID, id); err != nil {
		return APIKey{}, err
	} else if key.RevokedAt != nil {
		return key, ErrKeyAlreadyRevoked
	}
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

// Replacement returns the newest of the account's active keys that were made to
// take the place of this one, or [ErrKeyNotFound] or [ErrUnavailable].
func (s *Store) Replacement(ctx context.Context, accountID, id uuid.UUID) (APIKey, error) {
	return s.findKey(ctx, "api_key.id = (SELECT k.id FROM api_keys AS k "+
		"WHERE k.account_id = ? AND k.replaces_id = ? AND k.revoked_at IS NULL ORDER BY k.id DESC LIMIT 1)", accountID, id)
}

// RenameAPIKey gives one of the account's active keys another label and records
// the activity. It returns the key as it is now, or an [*InvalidError] for the
// field "label", [ErrKeyNotFound], [ErrKeyAlreadyRevoked] or [ErrUnavailable].
func (s *Store) RenameAPIKey(ctx context.Context, accountID, id uuid.UUID, label string, actor Actor) (APIKey, error) {
	label, err := cleanName("label", "Label", label)
	if err != nil {
		return APIKey{}, err
	}
	err = s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		// Of two renamings at once, the second is over the first one's label.
		if err := s.lockAccount(ctx, tx, accountID); err != nil {
			return err
		}
		var former string
		err := tx.NewSelect().Model((*APIKey)(nil)).Column("label").
			Where("account_id = ? AND id = ?", accountID, id).Scan(ctx, &former)
		if errors.Is(err, sql.ErrNoRows) {
			return errUnchanged
		}
		if err != nil {
			return err
		}
		result, err := tx.NewUpdate().Model((*APIKey)(nil)).Set("label = ?", label).
			Where("account_id = ? AND id = ? AND revoked_at IS NULL AND label <> ?", accountID, id, label).Exec(ctx)
		if err := unlessAffected(result, err, errUnchanged); err != nil {
			return err
		}
		return s.recordActivity(ctx, tx, actor, Activity{
			AccountID: accountID, Action: ActionKeyRenamed, SubjectID: &id, Label: label, FormerLabel: former,
		})
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return APIKey{}, failed("rename API key", err)
	}
	key, err := s.APIKey(ctx, accountID, id)
	if err == nil && key.RevokedAt != nil {
		err = ErrKeyAlreadyRevoked
	}
	return key, err
}

// errUnchanged ends a transaction that had nothing to do.
var errUnchanged = errors.New("nothing to change")

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
