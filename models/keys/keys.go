// Package keys has the API keys of accounts: generation, restrictions, rotation, revocation, usage,
// refused requests, reported leaks, trust in workload identities, and the authentication of
// requests.
package keys

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
	"portal/models/workload"
)

// Active returns the account's active keys, the newest first. Expired keys are not active.
func (k *Keys) Active(ctx context.Context, accountID uuid.UUID) ([]Key, error) {
	keys, err := k.listWhere(ctx, k.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		return whereActive(k.db, q).Where("api_key.account_id = ?", accountID).OrderExpr("api_key.id DESC")
	})
	return keys, value.Failed("list API keys", err)
}

// All returns a page of the account's keys, active and revoked, by id, for operators.
func (k *Keys) All(ctx context.Context, accountID uuid.UUID, page value.Page) (value.List[Key], error) {
	keys, err := k.listWhere(ctx, k.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		return page.ByID(q).Where("api_key.account_id = ?", accountID)
	})
	return value.Cut(keys, page), value.Failed("list API keys", err)
}

// Find returns one of the account's keys, active or revoked, or [value.ErrKeyNotFound].
func (k *Keys) Find(ctx context.Context, accountID, id uuid.UUID) (Key, error) {
	return k.findWhere(ctx, k.db, whereID(accountID, id))
}

// Replacement returns the newest of the account's active keys that replace this one, or
// [value.ErrKeyNotFound].
func (k *Keys) Replacement(ctx context.Context, accountID, id uuid.UUID) (Key, error) {
	return k.findWhere(ctx, k.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		return whereActive(k.db, q).Where("api_key.account_id = ? AND api_key.replaces_id = ?", accountID, id).
			OrderExpr("api_key.id DESC").Limit(1)
	})
}

// FindAsOperator returns a key of any account, or [value.ErrKeyNotFound].
func (k *Keys) FindAsOperator(ctx context.Context, id uuid.UUID) (Key, error) {
	return k.findWhere(ctx, k.db, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("api_key.id = ?", id) })
}

// FindBySecret returns the key, of any account, with this secret, for operators who hold a leaked
// key. The error may be [value.ErrKeyMissingPrefix], [value.ErrKeyMalformed] or
// [value.ErrKeyNotFound].
func (k *Keys) FindBySecret(ctx context.Context, secret string) (Key, error) {
	if err := checkKeySecret(secret); err != nil {
		return Key{}, err
	}
	hash := hashKey(secret)
	return k.findWhere(ctx, k.db, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("api_key.key_hash = ?", hash[:]) })
}

type keyFilter func(*bun.SelectQuery) *bun.SelectQuery

func whereID(accountID, id uuid.UUID) keyFilter {
	return func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("api_key.account_id = ? AND api_key.id = ?", accountID, id)
	}
}

// selectKeys selects keys and when they were last used.
func selectKeys(conn bun.IDB, into any) *bun.SelectQuery {
	return conn.NewSelect().Model(into).ColumnExpr("?TableColumns").
		ColumnExpr("last_use.used_at AS last_used_at").
		Join(db.JoinLastUses)
}

// findWhere returns the only key that filter selects, or [value.ErrKeyNotFound].
func (k *Keys) findWhere(ctx context.Context, db bun.IDB, filter keyFilter) (Key, error) {
	keys, err := k.listWhere(ctx, db, filter)
	switch {
	case err != nil:
		return Key{}, value.Failed("find API key", err)
	case len(keys) == 0:
		return Key{}, value.ErrKeyNotFound
	}
	return keys[0], nil
}

// lock returns one of the account's keys, or [value.ErrKeyNotFound], and locks its row until the
// transaction ends.
func (k *Keys) lock(ctx context.Context, tx db.Tx, accountID, id uuid.UUID) (Key, error) {
	return k.findWhere(ctx, tx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return k.db.Locked(whereID(accountID, id)(q), "NO KEY UPDATE OF api_key")
	})
}

// listWhere returns the keys that filter selects. Their last uses include unwritten ones.
func (k *Keys) listWhere(ctx context.Context, db bun.IDB, filter keyFilter) ([]Key, error) {
	keys := []Key{}
	err := filter(selectKeys(db, &keys)).Scan(ctx)
	for i := range keys {
		keys[i].LastUsedAt = k.usage.LastUse(keys[i].ID, keys[i].LastUsedAt)
	}
	return keys, err
}

const (
	// keyEnd is the expression for when a key was revoked or, if it was not, when it expires.
	keyEnd = "COALESCE(api_key.revoked_at, api_key.expires_at)"
)

// RevokedKeysKept is how long a revoked or expired key is listed.
const RevokedKeysKept = 90 * value.Day

// Revoked returns a page of the account's keys that were revoked or expired in the last 90 days,
// the latest first, with RevokedBy.
func (k *Keys) Revoked(ctx context.Context, accountID uuid.UUID, page value.Page) (value.List[Key], error) {
	now := k.db.Now()
	keys, err := k.listWhere(ctx, k.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		q = q.Where("NOT "+db.ActiveKey, now).Where(keyEnd+" >= ?", now.Add(-RevokedKeysKept)).
			ColumnExpr("COALESCE(u.email, CASE activity.actor_kind WHEN ? THEN 'Operator' ELSE '' END) AS revoked_by", record.ActorOperator).
			Join("LEFT JOIN activities AS activity ON activity.account_id = api_key.account_id AND activity.subject_id = api_key.id AND activity.action = ?", record.ActionKeyRevoked).
			Join("LEFT JOIN users AS u ON u.id = activity.actor_id").
			Where("api_key.account_id = ?", accountID).
			OrderExpr(keyEnd + " DESC, api_key.id DESC").Limit(int64(page.Limit) + 1)
		if page.After != uuid.Nil {
			q = q.Where("("+keyEnd+", api_key.id) < (SELECT COALESCE(revoked_at, expires_at), id FROM api_keys WHERE account_id = ? AND id = ?)",
				accountID, page.After)
		}
		return q
	})
	return value.Cut(keys, page), value.Failed("list revoked API keys", err)
}

// Choices returns what a filter offers: the account's active keys, the newest first, and those that
// ended last, the latest first, at most limit of them. The chosen key is among these also if it
// ended long ago; zero: none. If the account has no such key, the error is [value.ErrKeyNotFound].
func (k *Keys) Choices(ctx context.Context, accountID, chosen uuid.UUID, limit int) (active, ended []Key, err error) {
	now := k.db.Now()
	last := idsOf(k.db, accountID).Where(keyEnd+" BETWEEN ? AND ?", now.Add(-RevokedKeysKept), now).
		OrderExpr(keyEnd + " DESC, api_key.id DESC").Limit(int64(limit))
	keys, err := k.listWhere(ctx, k.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("api_key.id IN (SELECT id FROM (?) AS active UNION ALL SELECT id FROM (?) AS ended UNION ALL SELECT id FROM (?) AS chosen)",
			whereActive(k.db, idsOf(k.db, accountID)), last, idsOf(k.db, accountID).Where("api_key.id = ?", chosen)).OrderExpr("api_key.id DESC")
	})
	if err != nil {
		return nil, nil, value.Failed("list API keys", err)
	}
	if chosen != uuid.Nil && !slices.ContainsFunc(keys, func(key Key) bool { return key.ID == chosen }) {
		return nil, nil, value.ErrKeyNotFound
	}
	for _, key := range keys {
		if key.EndedAt(now) == nil {
			active = append(active, key)
		} else {
			ended = append(ended, key)
		}
	}
	slices.SortStableFunc(ended, func(a, b Key) int { return b.EndedAt(now).Compare(*a.EndedAt(now)) })
	return active, ended, nil
}

// idsOf selects the ids of an account's keys.
func idsOf(d *db.DB, accountID uuid.UUID) *bun.SelectQuery {
	return d.NewSelect().Model((*Key)(nil)).Column("id").Where("api_key.account_id = ?", accountID)
}

// Creator returns the email of the user who generated one of the account's keys. If an operator
// generated it, or if the account has never had another user, it returns "".
func (k *Keys) Creator(ctx context.Context, accountID, keyID uuid.UUID) (string, error) {
	var email string
	err := k.db.NewSelect().Model((*Key)(nil)).ColumnExpr("u.email").
		Join("JOIN users AS u ON u.id = api_key.created_by").
		Where("api_key.account_id = ? AND api_key.id = ? AND u.account_id = ?", accountID, keyID, accountID).
		Where("EXISTS (SELECT 1 FROM users AS other WHERE other.account_id = ? AND other.id <> u.id)", accountID).
		Scan(ctx, &email)
	return email, value.NotFound("find the creator of an API key", err, nil)
}

// GeneratedBy returns the account's active keys that a user has generated, the newest first.
func (k *Keys) GeneratedBy(ctx context.Context, accountID, userID uuid.UUID) ([]Key, error) {
	keys := []Key{}
	err := whereActive(k.db, k.db.NewSelect().Model(&keys)).Where("api_key.account_id = ?", accountID).
		Where("api_key.created_by = ?", userID).OrderExpr("api_key.id DESC").Scan(ctx)
	return keys, value.Failed("list the API keys of a user", err)
}

// whereActive selects the keys that are neither revoked nor expired.
func whereActive(d *db.DB, q *bun.SelectQuery) *bun.SelectQuery {
	return q.Where(db.ActiveKey, d.Now())
}

// Issuers returns the issuers whose public keys are fetched, and whether keys without a secret are
// off.
func (w *Workload) Issuers() workload.Issuers { return w.keys.issuers }

// MaxLifetime returns the longest time until a new key expires; 0 if keys need no expiry.
func (k *Keys) MaxLifetime() time.Duration { return k.maxLifetime }

// Revoke revokes one of the account's keys for a reason of at most 500 characters, which may be
// empty, and records the activity. After it returns, no instance accepts the key. If the key was
// revoked before or has expired, it returns the unchanged key with [value.ErrKeyAlreadyRevoked].
// The error may also be an [*value.InvalidError] for the field "reason", [value.ErrKeyNotFound], or
// [value.ErrUnavailable], after which the outcome is unknown.
func (k *Keys) Revoke(ctx context.Context, accountID, id uuid.UUID, reason string, actor record.Actor) (Key, error) {
	reason, err := value.CleanNote("reason", "Reason", reason)
	if err != nil {
		return Key{}, err
	}
	return db.InTx(ctx, k.db, "revoke API key", func(ctx context.Context, tx db.Tx) (Key, error) {
		return k.revoke(ctx, tx, accountID, id, reason, actor)
	})
}

// RevokeAll revokes several keys of the account as [Keys.Revoke] does, all or none. It returns
// those that were active. The order of ids does not matter. At most [value.MaxActiveKeys] are
// revoked.
func (k *Keys) RevokeAll(ctx context.Context, accountID uuid.UUID, ids []uuid.UUID, reason string, actor record.Actor) ([]Key, error) {
	reason, err := value.CleanNote("reason", "Reason", reason)
	if err != nil {
		return nil, err
	}
	ids = value.SortedIDs(ids) // so that no two calls wait for each other
	return db.InTx(ctx, k.db, "revoke API keys", func(ctx context.Context, tx db.Tx) (revoked []Key, err error) {
		for _, id := range ids[:min(len(ids), value.MaxActiveKeys)] {
			key, err := k.revoke(ctx, tx, accountID, id, reason, actor)
			switch {
			case errors.Is(err, value.ErrKeyAlreadyRevoked):
			case err != nil:
				return nil, err
			default:
				revoked = append(revoked, key)
			}
		}
		return revoked, nil
	})
}

func (k *Keys) revoke(ctx context.Context, tx db.Tx, accountID, id uuid.UUID, reason string, actor record.Actor) (Key, error) {
	key, err := k.lockActive(ctx, tx, accountID, id)
	if err != nil {
		return key, err
	}
	key.RevokedAt, key.RevocationReason = new(tx.Now()), reason
	if err := tx.Update(ctx, &key, "revoked_at", "revocation_reason"); err != nil {
		return key, err
	}
	return key, record.Add(ctx, tx, actor, record.Activity{
		AccountID: accountID, Action: record.ActionKeyRevoked, SubjectID: &id, Label: key.Label, Detail: reason,
	})
}

// Rename gives one of the account's active keys another label, records the activity and returns the
// changed key. The error may be an [*value.InvalidError] for the field "label",
// [value.ErrKeyNotFound] or [value.ErrKeyAlreadyRevoked] with the unchanged key.
func (k *Keys) Rename(ctx context.Context, accountID, id uuid.UUID, label string, actor record.Actor) (Key, error) {
	label, err := value.CleanName("label", "Name", label) // the field is called "New name"
	if err != nil {
		return Key{}, err
	}
	return db.InTx(ctx, k.db, "rename API key", func(ctx context.Context, tx db.Tx) (Key, error) {
		key, err := k.lockActive(ctx, tx, accountID, id)
		if err != nil {
			return key, err
		}
		return renameKey(ctx, tx, key, label, actor)
	})
}

// renameKey renames a key and records the activity, unless the key has the label.
func renameKey(ctx context.Context, tx db.Tx, key Key, label string, actor record.Actor) (Key, error) {
	if key.Label == label {
		return key, nil
	}
	former := key.Label
	key.Label = label
	if err := tx.Update(ctx, &key, "label"); err != nil {
		return key, err
	}
	return key, record.Add(ctx, tx, actor, record.Activity{
		AccountID: key.AccountID, Action: record.ActionKeyRenamed, SubjectID: &key.ID, Label: label, FormerLabel: former,
	})
}

// FindDurable returns one of the account's keys, or [value.ErrKeyNotFound], in a state that no
// failover can undo. A plain read may show a revocation that a synchronous standby does not have
// yet.
func (k *Keys) FindDurable(ctx context.Context, accountID, id uuid.UUID) (Key, error) {
	return db.InTx(ctx, k.db, "find API key", func(ctx context.Context, tx db.Tx) (Key, error) {
		if err := tx.LockAccountsTable(ctx, accountID); err != nil {
			return Key{}, err
		}
		return k.lock(ctx, tx, accountID, id)
	})
}

// lockActive locks one of the account's active keys and returns it, or [value.ErrKeyNotFound]. If
// the key is revoked or has expired, lockActive returns it with [value.ErrKeyAlreadyRevoked].
func (k *Keys) lockActive(ctx context.Context, tx db.Tx, accountID, id uuid.UUID) (Key, error) {
	if err := tx.LockAccountsTable(ctx, accountID); err != nil {
		return Key{}, err
	}
	key, err := k.lock(ctx, tx, accountID, id)
	if err != nil {
		return Key{}, err
	}
	now := tx.Now()
	if key.ExpiresAt != nil {
		now, err = tx.DatabaseNow(ctx)
	}
	if err == nil && key.EndedAt(now) != nil {
		// An earlier revocation may have stopped waiting for a synchronous standby, so the
		// commit of this row lock waits until the standby has both.
		err = db.Committed(value.ErrKeyAlreadyRevoked)
	}
	return key, err
}
