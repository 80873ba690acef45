package keys

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/record"
	"portal/models/value"
)

// The activities about the expiry of a key that are recorded.
const (
	ExpiryUnrecorded KeyExpiry = iota
	ExpiryAnnounced            // [record.ActionKeyExpiring]
	ExpiryRecorded             // [record.ActionKeyExpired], the last one
)

const (
	// FirstWarning is how long before a key expires owners get the first mail about it. If the
	// lifetime of the key is not longer, there is no mail: the person who sets such an expiry
	// knows it.
	FirstWarning = 7 * value.Day
	// LastWarning is how long before a key expires owners get the last mail about it.
	LastWarning = value.Day
	// WarningInterval is the time between two looks for keys that expire.
	WarningInterval = time.Minute
)

// expiryBatch limits the activities of one round about the expiry of keys. The next round
// continues.
const expiryBatch = 1000

// RecordExpiry records that keys have expired, and once before that they expire soon, at the time
// of the first mail about it. It does so for at most [expiryBatch] keys, those that expire first.
// The transaction that records also marks the keys, so several instances can call RecordExpiry at
// the same time.
func (k *Keys) RecordExpiry(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, WarningInterval)
	defer cancel()
	// A transaction would lock the whole SQLite file, so the usual case avoids it.
	due, err := expiryDue(ctx, k.db)
	if err != nil {
		return value.Failed("find API keys that expire", err)
	}
	ofAccount := map[uuid.UUID][]uuid.UUID{}
	var accounts []uuid.UUID // that of the key that expires first is the first
	for _, key := range due {
		if ofAccount[key.AccountID] == nil {
			accounts = append(accounts, key.AccountID)
		}
		ofAccount[key.AccountID] = append(ofAccount[key.AccountID], key.ID)
	}
	var errs []error
	for _, id := range accounts {
		// An account has no more active keys, unless somebody changed it by hand.
		for ids := range slices.Chunk(ofAccount[id], value.MaxActiveKeys) {
			err := k.db.InTx(ctx, "record the expiry of API keys", func(ctx context.Context, tx db.Tx) error {
				if err := tx.LockAccount(ctx, id); err != nil {
					return err
				}
				return recordExpiry(ctx, tx, ids)
			})
			if ctx.Err() != nil {
				return errors.Join(errs...) // The next call continues.
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// expiredBy returns the time by whose expiry a key is refused on all instances, although keys
// expire by the clock of the database.
func expiredBy(d *db.DB) time.Time { return d.Now().Add(-db.MaxClockSkew) }

// expiryDue returns the keys about whose expiry an activity is due, each once.
func expiryDue(ctx context.Context, d *db.DB) (due []Key, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	now := d.Now()
	// The index has the keys of each state apart, by their expiry.
	for _, query := range []*bun.SelectQuery{
		d.NewSelect().Where("api_key.expiry_recorded = ? AND api_key.expires_at <= ?", ExpiryAnnounced, expiredBy(d)),
		d.NewSelect().Where("api_key.expiry_recorded = ? AND api_key.expires_at <= ?", ExpiryUnrecorded, now.Add(FirstWarning)).
			Where("(api_key.expires_at <= ? OR api_key.lifetime > ? OR api_key.lifetime > ? AND api_key.expires_at <= ?)",
				expiredBy(d), FirstWarning, LastWarning, now.Add(LastWarning)),
	} {
		var found []Key
		err := query.Model(&found).Column("id", "account_id", "expires_at").Where("api_key.revoked_at IS NULL AND api_key.expiry_recorded < 2").
			OrderExpr("api_key.expires_at, api_key.id").Limit(expiryBatch).Scan(ctx)
		if err != nil {
			return nil, err
		}
		due = append(due, found...)
	}
	slices.SortFunc(due, func(a, b Key) int { return cmp.Or(a.ExpiresAt.Compare(*b.ExpiresAt), value.CompareIDs(a.ID, b.ID)) })
	return due[:min(len(due), expiryBatch)], nil
}

// recordExpiry records what is due about keys of an account. Another instance may have done so.
func recordExpiry(ctx context.Context, tx db.Tx, ids []uuid.UUID) error {
	for _, id := range ids {
		var key Key
		query := tx.NewSelect().Model(&key).Column("id", "account_id", "label", "expires_at", "expiry_recorded").
			Where("api_key.id = ? AND api_key.revoked_at IS NULL AND api_key.expires_at IS NOT NULL", id)
		if err := tx.DB.Locked(query, "UPDATE").Scan(ctx); err != nil {
			if err := value.NoRows(err, nil); err != nil {
				return err
			}
			continue
		}
		action, state := record.ActionKeyExpiring, ExpiryAnnounced
		if !key.ExpiresAt.After(expiredBy(tx.DB)) {
			action, state = record.ActionKeyExpired, ExpiryRecorded
		}
		early := state == ExpiryAnnounced && key.ExpiresAt.After(tx.Now().Add(FirstWarning))
		if key.ExpiryRecorded >= state || early {
			continue
		}
		key.ExpiryRecorded = state
		if err := tx.Update(ctx, &key, "expiry_recorded"); err != nil {
			return err
		}
		err := record.Add(ctx, tx, record.System, record.Activity{
			AccountID: key.AccountID, Action: action, SubjectID: &key.ID, Label: key.Label, Detail: expiryText(key.ExpiresAt),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// expiryText returns when a key expires. What ends at midnight is valid until the end of a day.
func expiryText(at *time.Time) string {
	if at == nil {
		return "never"
	}
	if end := at.UTC(); end.Equal(end.Truncate(value.Day)) {
		return end.AddDate(0, 0, -1).Format("2 Jan 2006, end of day UTC")
	}
	return at.UTC().Format("2 Jan 2006, 15:04:05 UTC")
}
