package keys

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/google/uuid"

	"portal/models/internal/db"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
	"portal/models/workload"
)

// SetTrust replaces the trust rule of one of the account's active keys without a secret, clears its
// pins, and records the activity. After it returns the changed key, every instance refuses the
// access tokens from before.
//
// The rule was made from the one with this TrustVersion of the key; "" is any. If the key has
// another one by now, the error is [value.ErrTrustChanged] with the unchanged key, or nil if its
// rule is equal to the new one.
//
// The error may also be those of [Keys.CheckTrust], [value.ErrKeyNotFound], also for a key with a
// secret, or [value.ErrKeyAlreadyRevoked] with the unchanged key.
func (w *Workload) SetTrust(ctx context.Context, accountID, id uuid.UUID, version string, rule workload.Rule, actor record.Actor) (Key, error) {
	rule, invalid := w.keys.CheckTrust(rule)
	return db.InTx(ctx, w.keys.db, "change a trust rule", func(ctx context.Context, tx db.Tx) (Key, error) {
		key, err := w.keys.lockActive(ctx, tx, accountID, id)
		if err != nil {
			return key, err
		}
		if !key.IsWorkload() {
			return Key{}, value.ErrKeyNotFound
		}
		switch {
		case invalid != nil:
			return Key{}, invalid
		case version == "" || version == key.TrustVersion.String():
			return w.setTrust(ctx, tx, key, rule, actor)
		case key.Trust.Equal(rule): // a double click
			return key, nil
		default:
			return key, db.Committed(value.ErrTrustChanged) // The caller gets the key too.
		}
	})
}

func (w *Workload) setTrust(ctx context.Context, tx db.Tx, key Key, rule workload.Rule, actor record.Actor) (Key, error) {
	old := key
	if err := w.keys.trust(&key, rule); err != nil {
		return Key{}, err
	}
	if err := tx.Update(ctx, &key, "trust", "trust_version", "trust_pins"); err != nil {
		return Key{}, err
	}
	detail, err := describeChange(ctx, tx, &old, &key)
	if err != nil {
		return Key{}, err
	}
	if old.TrustPins != nil {
		detail = strings.TrimPrefix(detail+"\nPins: cleared", "\n")
	}
	return key, record.Add(ctx, tx, actor, record.Activity{
		AccountID: key.AccountID, Action: record.ActionKeyTrusted, SubjectID: &key.ID, Label: key.Label, Detail: detail,
	})
}

// PutKey is the input of [Workload.Put].
type PutKey struct {
	Label string
	Trust workload.Rule
	// Changes the current restrictions, which a new key does not have.
	Restrict func(*Restrictions)
}

// Put creates a key without a secret, or changes an existing one where it differs, and records the
// activities. It reports whether it has created the key.
//
// The error may be those of [Keys.Restrict] and [Keys.CheckTrust], [value.ErrAccountNotFound],
// [value.ErrKeyLimit], [value.ErrKeyIDTaken], or [value.ErrKeyAlreadyRevoked].
func (w *Workload) Put(ctx context.Context, accountID, id uuid.UUID, put PutKey, actor record.Actor) (key Key, created bool, err error) {
	if _, err = people.FindAccount(ctx, w.keys.db, accountID); err != nil {
		return Key{}, false, err
	}
	label, invalidLabel := value.CleanName("label", "Label", put.Label)
	rule, invalidTrust := w.keys.CheckTrust(put.Trust)
	if err := errors.Join(invalidLabel, invalidTrust); err != nil {
		return Key{}, false, err
	}
	put.Label, put.Trust = label, rule
	err = w.keys.db.InTx(ctx, "put API key", func(ctx context.Context, tx db.Tx) error {
		// While the account is locked, nobody adds its keys.
		if err := tx.LockAccount(ctx, accountID); err != nil {
			return err
		}
		var owner uuid.UUID
		err := tx.NewSelect().Model((*Key)(nil)).Column("account_id").Where("id = ?", id).Scan(ctx, &owner)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			created = true
			key, err = w.create(ctx, tx, Key{ID: id, AccountID: accountID, FormID: id}, put, actor)
		case err == nil && owner != accountID:
			err = value.ErrKeyIDTaken
		case err == nil:
			key, err = w.change(ctx, tx, accountID, id, put, actor)
		}
		return err
	})
	if err != nil {
		return Key{}, false, err
	}
	return key, created, nil
}

// create inserts a key with these ids.
func (w *Workload) create(ctx context.Context, tx db.Tx, key Key, put PutKey, actor record.Actor) (Key, error) {
	if err := checkCount(ctx, tx, key.AccountID); err != nil {
		return Key{}, err
	}
	key.Label, key.Credential, key.Access, key.CreatedAt = put.Label, CredentialWorkload, AccessAgents, tx.Now()
	var r Restrictions
	put.Restrict(&r)
	err := errors.Join(w.keys.trust(&key, put.Trust), w.keys.restrictNew(ctx, tx, NewKey{Restrictions: r}, &key))
	if err == nil {
		err = insertKey(ctx, tx, key, actor)
	}
	return key, err
}

// change changes a key where it differs.
func (w *Workload) change(ctx context.Context, tx db.Tx, accountID, id uuid.UUID, put PutKey, actor record.Actor) (Key, error) {
	key, err := w.keys.lockActive(ctx, tx, accountID, id)
	switch {
	case db.IsCommitted(err) || err == nil && !key.IsWorkload():
		return Key{}, value.ErrKeyIDTaken
	case err != nil:
		return Key{}, err
	}
	if key, err = renameKey(ctx, tx, key, put.Label, actor); err != nil {
		return Key{}, err
	}
	restricted := key
	r := key.Restrictions()
	put.Restrict(&r)
	if err := w.keys.setRestrictions(ctx, tx, &restricted, r); err != nil {
		return Key{}, err
	}
	if key, err = saveRestrictions(ctx, tx, key, restricted, actor); err != nil {
		return Key{}, err
	}
	if key.Trust.Equal(put.Trust) {
		return key, nil
	}
	return w.setTrust(ctx, tx, key, put.Trust, actor)
}
