package keys

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
	"portal/models/workload"
)

// NewKey is the input of [Keys.Generate].
type NewKey struct {
	Label    string    // 1 to 100 characters, no control characters
	FormID   uuid.UUID // of the rendered form; each form generates at most one key
	Access   Access    // empty: [AccessAgents]
	Replaces uuid.UUID // an active key of the same account, in a rotation; zero if none

	Trust *workload.Rule // the rule of a key without a secret; nil: the key has one

	// A key that replaces another one has its access, restrictions and note in place of these.
	Restrictions Restrictions
	Note         string // at most 500 characters
}

// Generate creates a key, records the activity, and returns the key and its secret, which is stored
// nowhere and cannot be read again. The secret of a key with a trust rule is empty.
//
// The error may be an [*value.InvalidError] for the field "label", "access", "expires", "agents",
// "networks" or "note", those of [value.CheckLimits] and [Keys.CheckTrust], or several joined, a
// [*RepeatedFormError], [value.ErrKeyLimit] or, for the key to replace, [value.ErrKeyNotFound],
// [value.ErrKeyAlreadyRevoked] or [value.ErrKeyWithoutSecret].
func (k *Keys) Generate(ctx context.Context, accountID uuid.UUID, n NewKey, actor record.Actor) (Key, string, error) {
	label, invalidLabel := value.CleanName("label", "Label", n.Label)
	note, invalidNote := value.CleanNote("note", "Note", n.Note)
	key := Key{
		ID: value.NewID(), AccountID: accountID, Label: label, FormID: n.FormID,
		Access: cmp.Or(n.Access, AccessAgents), CreatedAt: k.db.Now(), Note: note,
	}
	var secret string
	var invalidTrust error
	if n.Trust != nil {
		key.Credential = CredentialWorkload
		invalidTrust = k.trust(&key, *n.Trust)
	} else {
		secret = newKeySecret()
		hash := hashKey(secret)
		key.Credential, key.KeyHash, key.LastFour = CredentialSecret, hash[:], secret[value.KeyLength-4:]
	}
	if n.Replaces != uuid.Nil {
		key.ReplacesID = &n.Replaces
	}
	if actor.Kind == record.ActorUser {
		key.CreatedBy = &actor.ID
	}
	err := k.db.InTx(ctx, "generate API key", func(ctx context.Context, tx db.Tx) error {
		if err := tx.LockAccount(ctx, accountID); err != nil {
			return err
		}
		if err := checkNew(ctx, tx, n, accountID); err != nil {
			return err
		}
		if err := errors.Join(invalidLabel, invalidNote, invalidTrust, k.restrictNew(ctx, tx, n, &key)); err != nil {
			return err
		}
		return insertKey(ctx, tx, key, actor)
	})
	if err != nil {
		return Key{}, "", err
	}
	return key, secret, nil
}

// insertKey inserts a key and records the activity. If the id is taken, the error is
// [value.ErrKeyIDTaken].
func insertKey(ctx context.Context, tx db.Tx, key Key, actor record.Actor) error {
	result, err := tx.NewInsert().Model(&key).On("CONFLICT (id) DO NOTHING").Exec(ctx)
	if err := value.UnlessAffected(result, err, value.ErrKeyIDTaken); err != nil {
		return err
	}
	detail, err := describeChange(ctx, tx, nil, &key)
	if err != nil {
		return err
	}
	return record.Add(ctx, tx, actor, record.Activity{
		AccountID: key.AccountID, Action: record.ActionKeyGenerated, SubjectID: &key.ID, Label: key.Label, Detail: detail,
	})
}

// restrictNew sets the restrictions of a new key: those of the key that it replaces, or else those
// of the input.
func (k *Keys) restrictNew(ctx context.Context, tx db.Tx, n NewKey, key *Key) error {
	if n.Replaces == uuid.Nil {
		if key.Access != AccessAgents && key.Access != AccessReports {
			return &value.InvalidError{Field: "access", Message: "Choose Agents and tokens, or Reports only."}
		}
		if n.Restrictions.ExpiresAt == nil && k.maxLifetime > 0 {
			return k.setExpiry(ctx, tx, key, nil)
		}
		return k.setRestrictions(ctx, tx, key, n.Restrictions)
	}
	replaced, err := k.lockActive(ctx, tx, key.AccountID, n.Replaces)
	if err != nil {
		return err
	}
	if replaced.IsWorkload() {
		return value.ErrKeyWithoutSecret
	}
	key.Access, key.Note = replaced.Access, replaced.Note
	key.Agents, key.Networks, key.Limits = replaced.Agents, replaced.Networks, replaced.Limits
	if key.ExpiresAt = k.RenewedExpiry(replaced, key.CreatedAt); key.ExpiresAt != nil {
		key.Lifetime = key.ExpiresAt.Sub(key.CreatedAt)
	}
	return nil
}

// checkNew returns an error if the form has already generated a key, or the account has too many
// keys.
func checkNew(ctx context.Context, tx db.Tx, n NewKey, accountID uuid.UUID) error {
	var made Key
	err := tx.NewSelect().Model(&made).Where("account_id = ? AND form_id = ?", accountID, n.FormID).Scan(ctx)
	if err == nil {
		return &RepeatedFormError{made}
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return checkCount(ctx, tx, accountID)
}

// checkCount returns [value.ErrKeyLimit] if the account has too many keys for another one.
func checkCount(ctx context.Context, tx db.Tx, accountID uuid.UUID) error {
	active, err := whereActive(tx.DB, tx.NewSelect().Model((*Key)(nil))).Where("account_id = ?", accountID).Count(ctx)
	if err == nil && active >= value.MaxActiveKeys {
		return value.ErrKeyLimit
	}
	return err
}

// RenewedExpiry returns when a key expires that replaces another one now; nil: never.
func (k *Keys) RenewedExpiry(replaced Key, now time.Time) *time.Time {
	lifetime := replaced.Lifetime
	if k.maxLifetime > 0 && (lifetime == 0 || lifetime > k.maxLifetime) {
		lifetime = k.maxLifetime
	}
	if lifetime == 0 {
		return nil
	}
	return new(now.Add(lifetime))
}
