package record

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/value"
)

const (
	// maxMails limits the mails in the outbox, and maxAccountMails those of one account.
	// Further ones are dropped, because a change must not fail while no mail can be sent.
	maxMails        = 10_000
	maxAccountMails = 200
	// maxResetMails limits the password resets in the outbox, because any visitor can request
	// them.
	maxResetMails = 1000
)

// QueueMails adds a mail for each recipient to the outbox, and reports whether it has added any. If
// there is no room, it drops all of them and logs a warning. It also drops mails beyond the limits
// of their addresses, and mails that nobody can receive. Only a mail to one recipient can have an
// id.
func QueueMails(ctx context.Context, tx db.Tx, recipients []string, mail Mail) (bool, error) {
	var mails []Mail
	for _, mail.Recipient = range recipients {
		if !strings.HasSuffix(mail.Recipient, value.UnprovenDomain) {
			mails = append(mails, mail)
		}
	}
	if len(mails) == 0 {
		return false, nil
	}
	room, err := HasMailRoom(ctx, tx, mail.AccountID)
	if err != nil {
		return false, err
	}
	if !room {
		tx.DB.MailsDropped.Add(uint64(len(mails)))
		tx.DB.Logger.WarnContext(ctx, "too many mails wait, so this one is dropped", slog.String("kind", string(mail.Kind)))
		return false, nil
	}
	if mails, err = limitMails(ctx, tx, mails); err != nil || len(mails) == 0 {
		return false, err
	}
	now := tx.Now()
	for i := range mails {
		mails[i].CreatedAt = cmp.Or(mails[i].CreatedAt, now)
		mails[i].DueAt = cmp.Or(mails[i].DueAt, mails[i].CreatedAt)
	}
	err = tx.Insert(ctx, &mails)
	return err == nil, err
}

// DiscardMails deletes the mails that match where and that no instance has claimed, and no longer
// counts them. A transaction calls it before it locks what the links of the mails refer to, because
// Outbox.Claim locks the mail first.
func DiscardMails(ctx context.Context, tx db.Tx, where string, args ...any) error {
	var ids []uuid.UUID
	err := tx.NewDelete().Model((*Mail)(nil)).Where(where, args...).Where("mail.attempts = 0").Returning("id").Scan(ctx, &ids)
	if err != nil || len(ids) == 0 {
		return err
	}
	return tx.Delete(ctx, (*RecentMail)(nil), "id IN (?)", bun.List(ids))
}

// HasMailRoom reports whether the outbox has room for another mail of an account, or of none.
// Concurrent transactions can exceed the limits by a few mails.
func HasMailRoom(ctx context.Context, tx db.Tx, accountID *uuid.UUID) (bool, error) {
	own, limit := tx.NewSelect().Model((*Mail)(nil)), maxResetMails
	if accountID == nil {
		own = own.Where("mail.account_id IS NULL")
	} else {
		own, limit = own.Where("mail.account_id = ?", *accountID), maxAccountMails
	}
	count, err := own.Count(ctx)
	if err != nil || int(count) >= limit {
		return false, err
	}
	count, err = tx.NewSelect().Model((*Mail)(nil)).Count(ctx)
	return int(count) < maxMails, err
}

// maxRecentMails is the number of mails of one kind that one address gets in an hour because of one
// account, and maxStrangersMails that of a kind which anyone can cause at any address. All accounts
// together cause three times as many.
const (
	maxRecentMails    = 10
	maxStrangersMails = 3
)

// limitMails removes the mails whose addresses have reached a limit, or have got one about the same
// device, gives ids to the others and counts them. Password resets have a limit of their own, and
// leaked keys have none, because a mail about them waits for those of the next minutes. Concurrent
// transactions can exceed the limits by a few mails.
func limitMails(ctx context.Context, tx db.Tx, mails []Mail) ([]Mail, error) {
	for i := range mails {
		mails[i].ID = cmp.Or(mails[i].ID, value.NewID())
	}
	kind, now, limit := mails[0].Kind, tx.Now(), maxRecentMails
	switch kind {
	case MailPasswordForgotten:
		return mails, nil
	case ActionInvitationCreated, MailEmailConfirmation:
		limit = maxStrangersMails
	default:
	}
	recent := make([]RecentMail, len(mails))
	hashes := make([][]byte, len(mails))
	for i, mail := range mails {
		hashes[i] = value.HashEmail(mail.Recipient)
		recent[i] = RecentMail{
			ID: mail.ID, Kind: kind, AccountID: mail.AccountID, EmailHash: hashes[i], DeviceHash: mail.DeviceHash, At: cmp.Or(mail.DueAt, now),
		}
	}
	if kind == ActionKeyLeaked {
		return mails, tx.Insert(ctx, &recent)
	}
	var full [][]byte
	err := tx.NewSelect().Model((*RecentMail)(nil)).Column("email_hash").
		Where("email_hash IN (?) AND kind = ? AND at > ?", bun.List(hashes), kind, now.Add(-RecentMailWindow)).
		Group("email_hash").
		Having("count(*) >= ? OR count(*) FILTER (WHERE account_id = ?) >= ? OR max(CASE WHEN device_hash = ? THEN 1 ELSE 0 END) = 1",
			3*limit, mails[0].AccountID, limit, mails[0].DeviceHash).
		Scan(ctx, &full)
	if err != nil {
		return nil, err
	}
	isFull := func(hash []byte) bool {
		return slices.ContainsFunc(full, func(other []byte) bool { return bytes.Equal(hash, other) })
	}
	mails = slices.DeleteFunc(mails, func(m Mail) bool { return isFull(value.HashEmail(m.Recipient)) })
	recent = slices.DeleteFunc(recent, func(r RecentMail) bool { return isFull(r.EmailHash) })
	if len(recent) == 0 {
		return nil, nil
	}
	return mails, tx.Insert(ctx, &recent)
}
