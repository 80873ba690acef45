// Package outbox claims the mails that wait in the database, says what each one contains, and
// queues the warnings about keys that expire.
package outbox

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/keys"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
	"portal/models/webhooks"
)

const (
	// mailLease is how long a claimed mail belongs to one instance. It is longer than an
	// attempt to send, so that two instances do not send the same mail.
	mailLease = 2 * time.Minute
	// MailKept is how long the portal tries to send a mail. For a password reset it is
	// resetMailKept, because the user waits for it and can ask for another one.
	MailKept      = 72 * time.Hour
	resetMailKept = time.Hour

	shortestMailRetry = 30 * time.Second
	longestMailRetry  = 15 * time.Minute
)

// Outbox holds the mails that are to be sent.
type Outbox struct{ db *db.DB }

// New returns the service.
func New(db *db.DB) *Outbox { return &Outbox{db} }

// Claim returns a mail that is due, and the token of its link if it has one. Of those with the
// fewest attempts, it is the one that has been due longest, so mails that fail again and again do
// not hold up the others. For the next two minutes no other caller gets the same mail. After
// sending it, the caller calls [Outbox.Sent] or [Outbox.Failed]. If no mail is due, the error is
// [value.ErrNoMail].
func (o *Outbox) Claim(ctx context.Context) (mail record.Mail, token string, err error) {
	for {
		// A transaction would lock the whole SQLite file, so the usual case avoids it.
		due, err := o.due(o.db).Exists(ctx)
		if err == nil && !due {
			err = value.ErrNoMail
		}
		if err != nil {
			return record.Mail{}, "", value.Failed("claim a mail", err)
		}
		err = o.db.InTx(ctx, "claim a mail", func(ctx context.Context, tx db.Tx) error {
			mail, token, err = o.claimNext(ctx, tx)
			return err
		})
		if err != nil {
			return record.Mail{}, "", err
		}
		if mail.Recipient != "" {
			return mail, token, nil
		}
	}
}

// due selects the id of the mail that is next.
func (o *Outbox) due(db bun.IDB) *bun.SelectQuery {
	return db.NewSelect().Model((*record.Mail)(nil)).Column("id").Where("mail.due_at <= ?", o.db.Now()).
		OrderExpr("mail.attempts, mail.due_at, mail.id").Limit(1)
}

// claimNext leases the next mail. If the returned mail has no recipient, it was deleted and is no
// longer counted, because nobody should get it.
func (o *Outbox) claimNext(ctx context.Context, tx db.Tx) (mail record.Mail, token string, err error) {
	due := o.db.Locked(o.due(tx), "UPDATE SKIP LOCKED")
	var id uuid.UUID
	err = tx.NewUpdate().Model((*record.Mail)(nil)).Set("due_at = ?, attempts = attempts + 1", tx.Now().Add(mailLease)).
		Where("id = (?)", due).Returning("id").Scan(ctx, &id)
	if err != nil {
		return record.Mail{}, "", value.NoRows(err, value.ErrNoMail)
	}
	err = tx.NewSelect().Model(&mail).ColumnExpr("?TableColumns").
		ColumnExpr("COALESCE(a.name, '') AS account_name").
		ColumnExpr("COALESCE(u.email, CASE activity.actor_kind WHEN ? THEN 'Operator' WHEN ? THEN 'The portal' ELSE 'Someone' END) AS actor_name", record.ActorOperator, record.ActorSystem).
		ColumnExpr("COALESCE(activity.label, '') AS label, COALESCE(activity.address, '') AS address, COALESCE(activity.detail, '') AS detail").
		ColumnExpr("COALESCE(activity.at, mail.created_at) AS at").
		ColumnExpr("COALESCE(k.revocation_reason, '') AS reason").
		ColumnExpr("COALESCE(k.last_four, '') AS key_last_four, COALESCE(session.user_agent, '') AS user_agent").
		Join("LEFT JOIN accounts AS a ON a.id = mail.account_id").
		Join("LEFT JOIN activities AS activity ON activity.id = mail.activity_id").
		Join("LEFT JOIN users AS u ON u.id = activity.actor_id").
		Join("LEFT JOIN api_keys AS k ON k.id = activity.subject_id AND k.account_id = activity.account_id").
		Join("LEFT JOIN sessions AS session ON session.id = activity.subject_id").
		Where("mail.id = ?", id).Scan(ctx)
	if err != nil {
		return mail, "", err
	}
	if complete := contents[mail.Kind]; complete != nil {
		token, err = complete(ctx, tx, &mail)
	}
	if err != nil || mail.Recipient != "" {
		return mail, token, err
	}
	if err := deleteMail(ctx, tx, mail); err != nil {
		return mail, "", err
	}
	return mail, "", tx.Delete(ctx, (*record.RecentMail)(nil), "id = ?", mail.ID)
}

// Sent deletes a mail that has been sent.
func (o *Outbox) Sent(ctx context.Context, mail record.Mail) error {
	if mail.Kind == record.MailKeysUnused {
		if err := keys.UnusedMailSent(ctx, o.db, mail); err != nil {
			return value.Failed("record a sent mail", err)
		}
	}
	return value.Failed("delete a sent mail", deleteMail(ctx, o.db, mail))
}

// deleteMail deletes a mail unless its lease has ended and another instance has claimed it since.
func deleteMail(ctx context.Context, db bun.IDB, mail record.Mail) error {
	_, err := db.NewDelete().Model((*record.Mail)(nil)).Where("id = ? AND attempts = ?", mail.ID, mail.Attempts).Exec(ctx)
	return err
}

// Failed schedules the next attempt of a mail. If no attempt can succeed or the mail is too old, it
// deletes the mail instead and reports this.
func (o *Outbox) Failed(ctx context.Context, mail record.Mail, permanent bool) (dropped bool, err error) {
	kept := MailKept
	if mail.Kind == record.MailPasswordForgotten {
		kept = resetMailKept
	}
	retry := o.db.Now().Add(mailRetry(mail.Attempts))
	if permanent || retry.Sub(mail.CreatedAt) > kept {
		return true, value.Failed("drop a mail", deleteMail(ctx, o.db, mail))
	}
	_, err = o.db.NewUpdate().Model((*record.Mail)(nil)).Set("due_at = ?", retry).
		Where("id = ? AND attempts = ?", mail.ID, mail.Attempts).Exec(ctx)
	return false, value.Failed("schedule a mail", err)
}

// mailRetry returns the time from a failed attempt to the next one.
func mailRetry(attempts int) time.Duration {
	wait := shortestMailRetry
	for range min(attempts, 10) - 1 {
		wait *= 2
	}
	return min(wait, longestMailRetry)
}

// Enabled reports whether the store queues mails.
func (o *Outbox) Enabled() bool { return o.db.Mails }

// Waiting returns the number of mails in the outbox.
func (o *Outbox) Waiting(ctx context.Context) (int, error) {
	count, err := o.db.NewSelect().Model((*record.Mail)(nil)).Count(ctx)
	return int(count), value.Failed("count mails", err)
}

// content completes a mail that is sent, and returns the token of its link if it has one. It
// empties the recipient of a mail that nobody should get any more.
type content func(ctx context.Context, tx db.Tx, mail *record.Mail) (token string, err error)

// contents has a row for each kind of mail that says more than its activity.
var contents = map[record.Action]content{
	record.MailPasswordForgotten:   people.CreatePasswordResetLink,
	record.MailEmailConfirmation:   people.CreateEmailChangeLink,
	record.ActionInvitationCreated: people.CreateInvitationLink,
	record.MailWebhookFailing:      readURL,
	record.MailKeysExpiring:        listing(expiring),
	record.MailKeysUnused:          listing(unused),
	record.ActionKeyLeaked:         listing(leaked),
}

// readURL reads the URL of a webhook, unless it was removed since.
func readURL(ctx context.Context, tx db.Tx, mail *record.Mail) (string, error) {
	err := tx.NewSelect().Model((*webhooks.Endpoint)(nil)).Column("url").Where("endpoint.id = ? AND endpoint.removed_at IS NULL", mail.ActivityID).Scan(ctx, &mail.Label)
	if mail.Label == "" {
		mail.Recipient = ""
	}
	return "", value.NoRows(err, nil)
}

// listing reads the keys that a mail reports to its recipient: an owner, or the user who generated
// the key. It reads them when the mail is sent, so it leaves out those that were revoked, edited or
// used since. A recipient who was disabled or removed since gets no mail.
func listing(reported func(db.Tx, *record.Mail) *bun.SelectQuery) content {
	return func(ctx context.Context, tx db.Tx, mail *record.Mail) (string, error) {
		var found []keys.Key
		err := reported(tx, mail).Model(&found).Where("api_key.account_id = ?", mail.AccountID).
			Where("EXISTS (SELECT 1 FROM users AS u WHERE u.account_id = api_key.account_id AND u.email = ? AND "+
				"u.disabled_at IS NULL AND u.removed_at IS NULL AND (u.role = ? OR u.id = api_key.created_by))",
				mail.Recipient, people.RoleOwner).Scan(ctx)
		for _, key := range found {
			at := cmp.Or(key.RevokedAt, key.UnusedEnd, key.ExpiresAt)
			mail.Keys = append(mail.Keys, record.MailKey{Label: key.Label, Masked: key.Masked(), Leak: key.Leak, At: *at})
		}
		if len(found) == 0 {
			mail.Recipient = ""
		}
		return "", err
	}
}

// expiring selects the keys whose expiry a mail reports.
func expiring(tx db.Tx, mail *record.Mail) *bun.SelectQuery {
	return tx.NewSelect().Where("api_key.expiry_warned_at = ?", mail.CreatedAt).
		Where("api_key.revoked_at IS NULL AND api_key.expires_at > ?", tx.Now()).
		OrderExpr("api_key.expires_at, api_key.id")
}

// unused selects the keys that a mail about unused keys reports.
func unused(tx db.Tx, mail *record.Mail) *bun.SelectQuery {
	return tx.NewSelect().ColumnExpr("?TableColumns").ColumnExpr("warning.ends_at AS unused_end").
		Join("JOIN key_warnings AS warning ON warning.api_key_id = api_key.id").
		Where("warning.warning_id = ? AND warning.policy >= 0", mail.ActivityID).
		Where("api_key.revoked_at IS NULL AND (api_key.expires_at IS NULL OR api_key.expires_at > ?)", tx.Now()).
		Where("NOT EXISTS (SELECT 1 FROM api_key_last_uses AS last_use WHERE last_use.api_key_id = api_key.id AND last_use.used_at > ?)", mail.CreatedAt).
		OrderExpr("api_key.id")
}

// leaked selects the keys that a mail about leaked keys reports: those that were revoked since the
// first one, at most MaxLeakedKeys+1.
func leaked(tx db.Tx, mail *record.Mail) *bun.SelectQuery {
	return tx.NewSelect().Where("COALESCE(api_key.revoked_at, api_key.expires_at) >= ?", mail.CreatedAt).
		Where("api_key.leak_reporter IS NOT NULL").
		OrderExpr("api_key.revoked_at, api_key.id").Limit(record.MaxLeakedKeys + 1)
}
