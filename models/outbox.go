package models

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

const (
	// mailLease is how long a claimed mail belongs to one instance. It is longer than an attempt
	// to send, so that two instances do not send the same mail.
	mailLease = 2 * time.Minute
	// mailKept is how long the portal tries to send a mail. For a password reset it is
	// resetMailKept, because the user waits for it and can ask for another one.
	mailKept      = 72 * time.Hour
	resetMailKept = time.Hour

	shortestMailRetry = 30 * time.Second
	longestMailRetry  = 15 * time.Minute
)

// MailPasswordForgotten is the kind of a mail with a link to set a new password. All other kinds
// are the action that the mail reports.
const MailPasswordForgotten Action = "password.forgotten"

// Mail is an email in the outbox. It holds no secret: the token of its link is created when it is
// sent.
type Mail struct {
	bun.BaseModel `bun:"table:outbox,alias:mail"`

	ID         uuid.UUID `bun:",pk"` // the same in each attempt
	Kind       Action
	AccountID  *uuid.UUID
	ActivityID *uuid.UUID // the activity that the mail reports
	Recipient  string     // email address
	EmailHash  []byte     `bun:",nullzero"` // of the recipient of a password reset
	CreatedAt  time.Time
	DueAt      time.Time // of the next attempt, or the end of the lease
	Attempts   int       // including the current one

	// The activity. ActorName is the user's email, "Operator" or "Visitor".
	AccountName string    `bun:",scanonly"`
	ActorName   string    `bun:",scanonly"`
	Label       string    `bun:",scanonly"`
	KeyLastFour string    `bun:",scanonly"`
	Address     string    `bun:",scanonly"`
	UserAgent   string    `bun:",scanonly"` // of the session that began; empty if it has ended
	At          time.Time `bun:",scanonly"`

	// The invitation, of a mail that has one.
	Role      Role      `bun:"-"`
	ExpiresAt time.Time `bun:"-"`
}

// MaskedKey returns the masked key that the mail is about, or "" if there is none.
func (m Mail) MaskedKey() string { return maskedIfKnown(m.KeyLastFour) }

// Outbox holds the mails that are to be sent.
type Outbox struct{ db *DB }

// Claim returns the mail that has been due longest, and the token of its link if it has one.
// For the next two minutes no other caller gets the same mail. The caller sends it, then calls
// [Outbox.Sent] or [Outbox.Failed]. The error may be [ErrNoMail] or [ErrUnavailable].
func (o *Outbox) Claim(ctx context.Context) (mail Mail, token string, err error) {
	for {
		// A transaction would lock the whole SQLite file, so the usual case avoids it.
		due, err := o.due(o.db).Exists(ctx)
		if err == nil && !due {
			err = ErrNoMail
		}
		if err != nil {
			return Mail{}, "", failed("claim a mail", err)
		}
		err = o.db.InTx(ctx, "claim a mail", func(ctx context.Context, tx Tx) error {
			mail, token, err = o.claim(ctx, tx)
			return err
		})
		if err != nil {
			return Mail{}, "", err
		}
		if mail.Recipient != "" {
			return mail, token, nil
		}
	}
}

// due selects the id of the mail that has been due longest.
func (o *Outbox) due(db bun.IDB) *bun.SelectQuery {
	return db.NewSelect().Model((*Mail)(nil)).Column("id").Where("mail.due_at <= ?", o.db.Now()).
		OrderExpr("mail.due_at, mail.id").Limit(1)
}

// claim leases the next mail. If the returned mail has no recipient, it was deleted, because
// nobody should get it.
func (o *Outbox) claim(ctx context.Context, tx Tx) (mail Mail, token string, err error) {
	due := o.db.locked(o.due(tx), "UPDATE SKIP LOCKED")
	var id uuid.UUID
	err = tx.NewUpdate().Model((*Mail)(nil)).Set("due_at = ?, attempts = attempts + 1", tx.Now().Add(mailLease)).
		Where("id = (?)", due).Returning("id").Scan(ctx, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return Mail{}, "", ErrNoMail
	}
	if err != nil {
		return Mail{}, "", err
	}
	err = tx.NewSelect().Model(&mail).ColumnExpr("?TableColumns").
		ColumnExpr("COALESCE(a.name, '') AS account_name").
		ColumnExpr("COALESCE(u.email, CASE activity.actor_kind WHEN ? THEN 'Operator' ELSE 'Visitor' END) AS actor_name", ActorOperator).
		ColumnExpr("COALESCE(activity.label, '') AS label, COALESCE(activity.address, '') AS address").
		ColumnExpr("COALESCE(activity.at, mail.created_at) AS at").
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
	switch mail.Kind {
	case MailPasswordForgotten:
		mail.Recipient, token, err = createPasswordResetLink(ctx, tx, mail)
	case ActionInvitationCreated:
		if token, err = createInvitationLink(ctx, tx, &mail); token == "" {
			mail.Recipient = ""
		}
	default: // the others have no link of their own
	}
	if err == nil && mail.Recipient == "" {
		err = deleteMail(ctx, tx, mail)
	}
	return mail, token, err
}

// Sent deletes a mail that has been sent. The error may be [ErrUnavailable].
func (o *Outbox) Sent(ctx context.Context, mail Mail) error {
	return failed("delete a sent mail", deleteMail(ctx, o.db, mail))
}

// deleteMail deletes a mail unless its lease has ended and another instance has claimed it since.
func deleteMail(ctx context.Context, db bun.IDB, mail Mail) error {
	_, err := db.NewDelete().Model((*Mail)(nil)).Where("id = ? AND attempts = ?", mail.ID, mail.Attempts).Exec(ctx)
	return err
}

// Failed schedules the next attempt of a mail. It deletes the mail instead and reports this if
// no attempt can succeed or the mail is too old. The error may be [ErrUnavailable].
func (o *Outbox) Failed(ctx context.Context, mail Mail, permanent bool) (dropped bool, err error) {
	kept := mailKept
	if mail.Kind == MailPasswordForgotten {
		kept = resetMailKept
	}
	retry := o.db.Now().Add(mailRetry(mail.Attempts))
	if permanent || retry.Sub(mail.CreatedAt) > kept {
		return true, failed("drop a mail", deleteMail(ctx, o.db, mail))
	}
	_, err = o.db.NewUpdate().Model((*Mail)(nil)).Set("due_at = ?", retry).
		Where("id = ? AND attempts = ?", mail.ID, mail.Attempts).Exec(ctx)
	return false, failed("schedule a mail", err)
}

// mailRetry returns the time from a failed attempt to the next one.
func mailRetry(attempts int) time.Duration {
	wait := shortestMailRetry
	for range min(attempts, 10) - 1 {
		wait *= 2
	}
	return min(wait, longestMailRetry)
}
