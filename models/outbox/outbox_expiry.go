package outbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/keys"
	"portal/models/record"
	"portal/models/value"
)

// warningSlack is how much earlier a mail may be queued, so that one mail reports keys that were
// generated together. Without it, they could reach the limit of mails to one address.
const warningSlack = time.Hour

// WarnOfExpiry queues the mails about keys that expire within seven days, and once more within one
// day. A key whose whole life is as short gets no such mail. The owners get one mail about all
// these keys of their account, and a member who generated some of them gets one about those. The
// transaction that queues the mails also marks the keys, so several instances can call WarnOfExpiry
// at the same time.
func (o *Outbox) WarnOfExpiry(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keys.WarningInterval)
	defer cancel()
	// A transaction would lock the whole SQLite file, so the usual case avoids it.
	accounts, err := o.accountsToWarn(ctx)
	if err != nil {
		return value.Failed("find API keys that expire", err)
	}
	var errs []error
	for _, id := range accounts {
		err := o.db.InTx(ctx, "warn of the expiry of API keys", func(ctx context.Context, tx db.Tx) error {
			return o.warn(ctx, tx, id)
		})
		if ctx.Err() != nil {
			break // The next call continues.
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// accountsToWarn returns the accounts with keys whose next mail about the expiry is due.
func (o *Outbox) accountsToWarn(ctx context.Context) (accounts []uuid.UUID, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.db.Timeout)
	defer cancel()
	err = o.whereUnwarned(o.db.NewSelect().Model((*keys.Key)(nil)), 0).Column("account_id").Scan(ctx, &accounts)
	slices.SortFunc(accounts, value.CompareIDs)
	return slices.Compact(accounts), err
}

// whereUnwarned selects the active keys whose next mail about the expiry is due, or will be within
// the slack. Keys of disabled accounts are left out, because they are refused already.
func (o *Outbox) whereUnwarned(q *bun.SelectQuery, slack time.Duration) *bun.SelectQuery {
	now := o.db.Now()
	return q.Where("api_key.revoked_at IS NULL AND api_key.expires_at > ? AND api_key.expires_at <= ?", now, now.Add(keys.FirstWarning+slack)).
		Where("(api_key.lifetime > ? AND api_key.expiry_warned_at IS NULL OR api_key.lifetime > ? AND api_key.expires_at <= ? AND "+
			"(api_key.expiry_warned_at IS NULL OR ? - ? > ?))", keys.FirstWarning, keys.LastWarning, now.Add(keys.LastWarning+slack),
			o.db.UnixTime("api_key.expires_at"), o.db.UnixTime("api_key.expiry_warned_at"), int64((keys.LastWarning+warningSlack)/time.Second)).
		Where("(SELECT a.disabled_at FROM accounts AS a WHERE a.id = api_key.account_id) IS NULL")
}

// warn queues the mails about the keys of an account.
func (o *Outbox) warn(ctx context.Context, tx db.Tx, accountID uuid.UUID) error {
	if err := tx.LockAccount(ctx, accountID); err != nil {
		return err
	}
	var ids []uuid.UUID
	err := o.whereUnwarned(tx.NewSelect().Model((*keys.Key)(nil)), warningSlack).
		Column("id").Where("api_key.account_id = ?", accountID).Scan(ctx, &ids)
	if err != nil || len(ids) == 0 {
		return err
	}
	now := tx.Now()
	if queued, err := queueWarnings(ctx, tx, accountID, ids, now); err != nil || !queued {
		return err
	}
	_, err = tx.NewUpdate().Model((*keys.Key)(nil)).Set("expiry_warned_at = ?", now).Where("id IN (?)", bun.List(ids)).Exec(ctx)
	return err
}

// queueWarnings queues the mails about keys of an account. If there is no room, or each recipient
// has reached the limit of mails, it reports false, and the next round tries again.
func queueWarnings(ctx context.Context, tx db.Tx, accountID uuid.UUID, keys []uuid.UUID, now time.Time) (bool, error) {
	recipients, err := record.OwnersAndCreators(ctx, tx, accountID, keys...)
	if err != nil || len(recipients) == 0 {
		return true, err
	}
	if room, err := record.HasMailRoom(ctx, tx, &accountID); err != nil || !room {
		return false, err
	}
	return record.QueueMails(ctx, tx, recipients, record.Mail{Kind: record.MailKeysExpiring, AccountID: &accountID, CreatedAt: now})
}
