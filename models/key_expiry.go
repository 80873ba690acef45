package models

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

const (
	// Mails are queued firstWarning and lastWarning before a key expires.
	firstWarning = 7 * Day
	lastWarning  = Day
	// warningSlack is how much earlier a mail may be queued, so that one mail reports keys that
	// were generated together, and no address reaches its limit of mails.
	warningSlack = time.Hour
	// warningInterval is the time between two looks for keys that expire.
	warningInterval = time.Minute
	// warningBatch is the number of keys that one statement finds.
	warningBatch = 100
)

// WarnOfExpiry queues the mails about keys that expire within seven days, and once more within one
// day. The owners get one mail about all these keys of their account, and a member who generated
// some of them gets one about those. The transaction that queues the mails also marks the keys, so
// several instances can call WarnOfExpiry at the same time.
func (k *Keys) WarnOfExpiry(ctx context.Context) error {
	for {
		// A transaction would lock the whole SQLite file, so the usual case avoids it.
		var accounts []uuid.UUID
		err := k.whereUnwarned(k.db.NewSelect().Model((*Key)(nil)), 0).
			Column("account_id").OrderExpr("api_key.expires_at").Limit(warningBatch).Scan(ctx, &accounts)
		if err != nil {
			return failed("find API keys that expire", err)
		}
		found := len(accounts)
		slices.SortFunc(accounts, compareIDs)
		var errs []error
		for _, id := range slices.Compact(accounts) {
			errs = append(errs, k.db.InTx(ctx, "warn of the expiry of API keys", func(ctx context.Context, tx Tx) error {
				return k.warn(ctx, tx, id)
			}))
		}
		if err := errors.Join(errs...); err != nil || found < warningBatch {
			return err
		}
	}
}

// whereUnwarned selects the active keys whose next mail about the expiry is due, or will be within
// the slack.
func (k *Keys) whereUnwarned(q *bun.SelectQuery, slack time.Duration) *bun.SelectQuery {
	now := k.db.Now()
	return q.Where("api_key.revoked_at IS NULL AND api_key.expires_at > ? AND api_key.expires_at <= ?", now, now.Add(firstWarning+slack)).
		Where("(api_key.expiry_warned_at IS NULL OR api_key.expires_at <= ? AND ? - ? > ?)", now.Add(lastWarning+slack),
			k.db.unixTime("api_key.expires_at"), k.db.unixTime("api_key.expiry_warned_at"), int64((lastWarning+warningSlack)/time.Second))
}

// warn queues the mails about the keys of an account.
func (k *Keys) warn(ctx context.Context, tx Tx, accountID uuid.UUID) error {
	if err := tx.lockAccount(ctx, accountID); err != nil {
		return err
	}
	var ids []uuid.UUID
	err := k.whereUnwarned(tx.NewSelect().Model((*Key)(nil)), warningSlack).
		Column("id").Where("api_key.account_id = ?", accountID).Scan(ctx, &ids)
	if err != nil || len(ids) == 0 {
		return err
	}
	now := tx.Now()
	_, err = tx.NewUpdate().Model((*Key)(nil)).Set("expiry_warned_at = ?", now).Where("id IN (?)", bun.List(ids)).Exec(ctx)
	if err != nil {
		return err
	}
	recipients, err := ownersAndCreators(ctx, tx, accountID, ids...)
	if err != nil || len(recipients) == 0 {
		return err
	}
	mails := make([]Mail, len(recipients))
	for i, recipient := range recipients {
		mails[i] = Mail{Kind: MailKeysExpiring, AccountID: &accountID, Recipient: recipient, CreatedAt: now}
	}
	_, err = queueMails(ctx, tx, mails)
	return err
}

// readExpiring reads the keys that a mail about their expiry reports to its recipient. Because it
// reads them when the mail is sent, it leaves out those that were revoked or edited since.
func readExpiring(ctx context.Context, tx Tx, mail Mail) (keys []Key, err error) {
	err = tx.NewSelect().Model(&keys).
		Where("api_key.account_id = ? AND api_key.expiry_warned_at = ?", mail.AccountID, mail.CreatedAt).
		Where("api_key.revoked_at IS NULL AND api_key.expires_at > ?", tx.Now()).
		Where("EXISTS (SELECT 1 FROM users AS u WHERE u.account_id = api_key.account_id AND u.email = ? AND (u.role = ? OR u.id = api_key.created_by))",
			mail.Recipient, RoleOwner).
		OrderExpr("api_key.expires_at, api_key.id").Scan(ctx)
	return keys, err
}
