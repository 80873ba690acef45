package keys

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

const (
	// Mails are sent firstUnusedMail and lastUnusedMail before an unused key is revoked.
	firstUnusedMail = 14 * value.Day
	lastUnusedMail  = 3 * value.Day
	// unusedMargin is added to the time without a use. Instances write uses twice a second, so
	// a use that an instance could not write for a while still counts. It is also the time
	// until the next look if mails could not be queued or sent.
	unusedMargin = time.Hour
	// unusedBatch limits the keys of each kind that one round looks at. The next round
	// continues.
	unusedBatch = 200
)

// unusedLifetimes are the choices of an account.
var unusedLifetimes = []time.Duration{30 * value.Day, 90 * value.Day, 180 * value.Day, 365 * value.Day}

// UnusedKey is a key and what is known about its revocation for lack of use.
type UnusedKey struct {
	bun.BaseModel `bun:"table:api_keys,alias:api_key"`

	ID        uuid.UUID `bun:",pk"`
	AccountID uuid.UUID
	CreatedAt time.Time
	RevokedAt *time.Time
	ExpiresAt *time.Time

	// UnusedPolicy is [Options.KeyUnusedLifetime] at the last look; negative: the next look
	// starts anew.
	UnusedPolicy   time.Duration
	UnusedCheckAt  *time.Time // the time of the next look; nil: never
	UnusedSince    *time.Time // the start of the 14 days before the revocation; nil: not yet
	UnusedWarnedAt *time.Time // when the last mails were queued
	UnusedWarnings int        // the number of times that mails were queued
	UnusedMailed   int        // those of them that somebody got

	LastUsedAt *time.Time `bun:",scanonly"`
}

// unusedState are the columns of the state.
var unusedState = []string{"unused_policy", "unused_check_at", "unused_since", "unused_warned_at", "unused_warnings", "unused_mailed"}

// unusedStep is what is due for an unused key.
type unusedStep int

const (
	unusedWait unusedStep = iota
	unusedMail
	unusedRevoke
)

// reset starts anew.
func (u *UnusedKey) reset() {
	u.UnusedSince, u.UnusedWarnedAt, u.UnusedWarnings, u.UnusedMailed = nil, nil, 0, 0
}

// postpone sets the next look.
func (u *UnusedKey) postpone(now time.Time, by time.Duration) {
	check := now.Add(by)
	u.UnusedCheckAt = &check
}

// look is next, but while mails about the key wait in the outbox, the key waits too.
func (u *UnusedKey) look(now time.Time, lifetime time.Duration, mail, waiting bool) unusedStep {
	if waiting && u.UnusedMailed < u.UnusedWarnings {
		u.postpone(now, unusedMargin)
		return unusedWait
	}
	return u.next(now, lifetime, mail)
}

// next returns what is due now, and sets the state after that and the time of the next look. A key
// is revoked after lifetime without a use; 0: never.
func (u *UnusedKey) next(now time.Time, lifetime time.Duration, mail bool) unusedStep {
	if lifetime == 0 || u.RevokedAt != nil || u.ExpiresAt != nil && !now.Before(*u.ExpiresAt) {
		u.reset()
		u.UnusedCheckAt = nil
		return unusedWait
	}
	used := u.CreatedAt
	if u.LastUsedAt != nil && u.LastUsedAt.After(used) {
		used = *u.LastUsedAt
	}
	if mail { // what nobody got is sent again
		u.UnusedWarnings = min(u.UnusedWarnings, u.UnusedMailed)
	}
	if since := u.UnusedSince; since != nil && (used.After(*since) || mail && u.UnusedWarnings == 0) {
		u.reset()
	}
	end := used.Add(lifetime)
	if u.UnusedSince == nil {
		// With a short lifetime, no mail is about a key that is used every day.
		if begin := latest(end.Add(-firstUnusedMail), used.Add(value.Day)); now.Before(begin) {
			u.UnusedCheckAt = &begin
			return unusedWait
		}
		u.UnusedSince = &now
		if mail {
			return u.mail(now, end)
		}
	}
	if mail && u.UnusedWarnings == 1 {
		due := latest(end.Add(-lastUnusedMail), u.UnusedSince.Add(firstUnusedMail-lastUnusedMail))
		if now.Before(due) {
			u.UnusedCheckAt = &due
			return unusedWait
		}
		return u.mail(now, end)
	}
	revocation := u.revocation(end).Add(unusedMargin)
	if now.Before(revocation) {
		u.UnusedCheckAt = &revocation
		return unusedWait
	}
	u.postpone(now, unusedMargin)
	return unusedRevoke
}

func (u *UnusedKey) mail(now, end time.Time) unusedStep {
	u.UnusedWarnedAt = &now
	u.UnusedWarnings++
	check := u.revocation(end).Add(unusedMargin)
	if u.UnusedWarnings == 1 {
		check = latest(end.Add(-lastUnusedMail), u.UnusedSince.Add(firstUnusedMail-lastUnusedMail))
	}
	u.UnusedCheckAt = &check
	return unusedMail
}

// revocation returns when the key is revoked at the earliest, if its time without a use ends at
// end.
func (u *UnusedKey) revocation(end time.Time) time.Time {
	at := latest(end, u.UnusedSince.Add(firstUnusedMail))
	if u.UnusedWarnings == 2 {
		at = latest(at, u.UnusedWarnedAt.Add(lastUnusedMail))
	}
	return at
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Lifetimes returns the times without a use after which an account can have its keys revoked,
// the shortest first. If the account can choose that they never are, 0 is the first one.
func (u *Unused) Lifetimes() []time.Duration {
	if u.keys.unusedLifetime == 0 {
		return append([]time.Duration{0}, unusedLifetimes...)
	}
	choices := slices.DeleteFunc(slices.Clone(unusedLifetimes), func(d time.Duration) bool { return d >= u.keys.unusedLifetime })
	return append(choices, u.keys.unusedLifetime)
}

// Lifetime returns the time without a use after which the account's keys are revoked; 0:
// never.
func (u *Unused) Lifetime(account people.Account) time.Duration {
	if u.keys.unusedLifetime == 0 || account.UnusedLifetime == 0 {
		return max(account.UnusedLifetime, u.keys.unusedLifetime)
	}
	return min(account.UnusedLifetime, u.keys.unusedLifetime)
}

// SetLifetime sets the time without a use after which the account's keys are revoked, one of
// [Unused.Lifetimes], and records the activity unless nothing changes. No key is revoked within
// 14 days after that. The error may be an [*value.InvalidError] for the field "after",
// [value.ErrAccountNotFound] or [value.ErrNotOwner].
func (u *Unused) SetLifetime(ctx context.Context, accountID uuid.UUID, after time.Duration, actor record.Actor) error {
	if !slices.Contains(u.Lifetimes(), after) {
		return &value.InvalidError{Field: "after", Message: "Choose one of the options."}
	}
	return u.keys.db.InTx(ctx, "set the lifetime of unused API keys", func(ctx context.Context, tx db.Tx) error {
		if err := tx.LockAccount(ctx, accountID); err != nil {
			return err
		}
		if err := people.CheckOwner(ctx, tx, accountID, actor); err != nil {
			return err
		}
		account, err := people.FindAccount(ctx, tx, accountID)
		if err != nil || u.Lifetime(account) == after {
			return err
		}
		detail := UnusedText(u.Lifetime(account)) + " → " + UnusedText(after)
		account.UnusedLifetime = after
		if err := tx.Update(ctx, &account, "unused_lifetime"); err != nil {
			return err
		}
		// The account has at most MaxActiveKeys of these.
		_, err = u.whereActiveUpdate(tx.NewUpdate().Model((*UnusedKey)(nil))).Set("unused_policy = -1").
			Where("api_key.account_id = ?", accountID).Exec(ctx)
		if err != nil {
			return err
		}
		return record.Add(ctx, tx, actor, record.Activity{
			AccountID: accountID, Action: record.ActionUnusedKeysSet, SubjectID: &accountID, Label: account.Name, Detail: detail,
		})
	})
}

func (u *Unused) whereActiveUpdate(q *bun.UpdateQuery) *bun.UpdateQuery {
	return q.Where(db.ActiveKey, u.keys.db.Now())
}

// UnusedText returns the name of a choice of [Unused.Lifetimes].
func UnusedText(after time.Duration) string {
	if after == 0 {
		return "Never"
	}
	return "After " + value.WholeDays(after)
}

// Revoke revokes keys that were not used for the lifetime that their account has chosen, and
// queues the mails about that before. It looks at keys whose next look is due, so keys in use are
// little work. Several instances can call Revoke at the same time.
func (u *Unused) Revoke(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, WarningInterval)
	defer cancel()
	// A transaction would lock the whole SQLite file, so the usual case avoids it.
	due, err := u.due(ctx)
	if err != nil {
		return value.Failed("find unused API keys", err)
	}
	ofAccount := map[uuid.UUID][]uuid.UUID{}
	var accounts []uuid.UUID
	for _, key := range due {
		if ofAccount[key.AccountID] == nil {
			accounts = append(accounts, key.AccountID)
		}
		ofAccount[key.AccountID] = append(ofAccount[key.AccountID], key.ID)
	}
	var errs []error
	for _, account := range accounts {
		revoked, err := db.InTx(ctx, u.keys.db, "look at unused API keys", func(ctx context.Context, tx db.Tx) ([]uuid.UUID, error) {
			return u.lookAt(ctx, tx, account, ofAccount[account])
		})
		if err != nil {
			// Keys of other accounts must not wait behind these.
			errs = append(errs, noAccount(err), u.postpone(ctx, ofAccount[account]))
		}
		for _, id := range revoked {
			errs = append(errs, u.revoke(ctx, account, id))
		}
		if ctx.Err() != nil {
			break // The next call continues.
		}
	}
	return errors.Join(errs...)
}

// postpone starts anew in an hour for keys of an account that is being erased or whose state
// could not be written.
func (u *Unused) postpone(ctx context.Context, ids []uuid.UUID) error {
	check := u.keys.db.Now().Add(unusedMargin)
	key := UnusedKey{UnusedPolicy: u.keys.unusedLifetime, UnusedCheckAt: &check}
	_, err := u.keys.db.NewUpdate().Model(&key).Column(unusedState...).
		Where("api_key.id IN (?)", bun.List(ids)).Exec(ctx)
	return value.Failed("postpone unused API keys", err)
}

// due returns the keys whose next look is due: those that were looked at with another
// setting, or not yet, and those whose time has come.
func (u *Unused) due(ctx context.Context) (due []UnusedKey, err error) {
	ctx, cancel := context.WithTimeout(ctx, u.keys.db.Timeout)
	defer cancel()
	for _, query := range []*bun.SelectQuery{
		u.keys.db.NewSelect().Where("api_key.unused_policy = ? AND api_key.unused_check_at <= ?", u.keys.unusedLifetime, u.keys.db.Now()),
		u.keys.db.NewSelect().Where("api_key.unused_policy < ?", u.keys.unusedLifetime),
		u.keys.db.NewSelect().Where("api_key.unused_policy > ?", u.keys.unusedLifetime),
	} {
		var found []UnusedKey
		err := query.Model(&found).Column("id", "account_id").Where("api_key.revoked_at IS NULL AND api_key.unused_policy >= -1").
			OrderExpr("api_key.unused_policy, api_key.unused_check_at").Limit(unusedBatch).Scan(ctx)
		if err != nil {
			return nil, err
		}
		due = append(due, found...)
	}
	return due, nil
}

// selectUnused selects keys of an account as unused keys, and locks them. Their last uses include
// those that this instance has not written.
func (u *Unused) selectUnused(ctx context.Context, tx db.Tx, accountID uuid.UUID, ids ...uuid.UUID) (keys []UnusedKey, err error) {
	query := tx.NewSelect().Model(&keys).ColumnExpr("?TableColumns").ColumnExpr("last_use.used_at AS last_used_at").Join(db.JoinLastUses).
		Where("api_key.account_id = ? AND api_key.id IN (?)", accountID, bun.List(ids)).OrderExpr("api_key.id")
	err = u.keys.db.Locked(query, "NO KEY UPDATE OF api_key").Scan(ctx)
	for i := range keys {
		keys[i].LastUsedAt = u.keys.usage.LastUse(keys[i].ID, keys[i].LastUsedAt)
	}
	return keys, err
}

// lookAt queues the mails that are due about keys of an account, and returns the keys that
// are to be revoked.
func (u *Unused) lookAt(ctx context.Context, tx db.Tx, accountID uuid.UUID, ids []uuid.UUID) (revoked []uuid.UUID, err error) {
	if err := tx.LockAccount(ctx, accountID); err != nil {
		return nil, err
	}
	account, err := people.FindAccount(ctx, tx, accountID)
	if err != nil {
		return nil, err
	}
	now, err := tx.DatabaseNow(ctx)
	if err != nil {
		return nil, err
	}
	now = now.UTC().Truncate(time.Microsecond)
	keys, err := u.selectUnused(ctx, tx, accountID, ids...)
	if err != nil {
		return nil, err
	}
	waiting, err := unusedMailsWait(ctx, tx, accountID)
	if err != nil {
		return nil, err
	}
	var mailed []uuid.UUID
	former := slices.Clone(keys)
	for i := range keys {
		key := &keys[i]
		if key.UnusedPolicy != u.keys.unusedLifetime {
			key.reset()
			former[i].reset()
		}
		key.UnusedPolicy = u.keys.unusedLifetime
		if account.DisabledAt != nil { // its keys are refused already
			key.reset()
			key.postpone(now, value.Day)
			continue
		}
		switch key.look(now, u.Lifetime(account), tx.DB.Mails, waiting) {
		case unusedMail:
			mailed = append(mailed, key.ID)
		case unusedRevoke:
			revoked = append(revoked, key.ID)
		case unusedWait:
		}
	}
	queued, err := queueUnusedMails(ctx, tx, accountID, mailed, now)
	if err != nil {
		return nil, err
	}
	for i, key := range keys {
		if !queued && slices.Contains(mailed, key.ID) {
			key = former[i]
			key.UnusedPolicy = u.keys.unusedLifetime
			key.postpone(now, unusedMargin)
		}
		if err := tx.Update(ctx, &key, unusedState...); err != nil {
			return nil, err
		}
	}
	return revoked, nil
}

func noAccount(err error) error {
	if errors.Is(err, value.ErrAccountNotFound) {
		return nil // it is being erased
	}
	return err
}

// queueUnusedMails queues the mails about unused keys of an account. If nobody can get one, it
// reports false, and the keys are not revoked.
func queueUnusedMails(ctx context.Context, tx db.Tx, accountID uuid.UUID, keys []uuid.UUID, now time.Time) (bool, error) {
	if len(keys) == 0 {
		return false, nil
	}
	recipients, err := record.OwnersAndCreators(ctx, tx, accountID, keys...)
	if err != nil {
		return false, err
	}
	mails := make([]record.Mail, len(recipients))
	for i, recipient := range recipients {
		mails[i] = record.Mail{Kind: record.MailKeysUnused, AccountID: &accountID, Recipient: recipient, CreatedAt: now, DueAt: tx.Now()}
	}
	return record.QueueMails(ctx, tx, mails)
}

// unusedMailsWait reports whether mails about unused keys of an account are in the outbox.
func unusedMailsWait(ctx context.Context, tx db.Tx, accountID uuid.UUID) (bool, error) {
	return tx.NewSelect().Model((*record.Mail)(nil)).Where("mail.account_id = ? AND mail.kind = ?", accountID, record.MailKeysUnused).Exists(ctx)
}

// UnusedMailSent records that somebody got a mail about unused keys.
func UnusedMailSent(ctx context.Context, db bun.IDB, mail record.Mail) error {
	_, err := db.NewUpdate().Model((*UnusedKey)(nil)).Set("unused_mailed = unused_warnings").
		Where("api_key.account_id = ? AND api_key.unused_warned_at = ?", mail.AccountID, mail.CreatedAt).Exec(ctx)
	return err
}

// revoke revokes a key of an account, unless it was used since or mails about it still wait.
func (u *Unused) revoke(ctx context.Context, accountID, id uuid.UUID) error {
	return u.keys.db.InTx(ctx, "revoke unused API key", func(ctx context.Context, tx db.Tx) error {
		_, err := u.keys.lockActive(ctx, tx, accountID, id)
		if errors.Is(err, value.ErrKeyAlreadyRevoked) || errors.Is(err, value.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		account, err := people.FindAccount(ctx, tx, accountID)
		if err != nil {
			return noAccount(err)
		}
		now, err := tx.DatabaseNow(ctx)
		if err != nil {
			return err
		}
		keys, err := u.selectUnused(ctx, tx, accountID, id)
		if err != nil || len(keys) == 0 || keys[0].UnusedPolicy != u.keys.unusedLifetime || account.DisabledAt != nil {
			return err
		}
		lifetime := u.Lifetime(account)
		if keys[0].next(now, lifetime, tx.DB.Mails) != unusedRevoke {
			return nil
		}
		waiting, err := unusedMailsWait(ctx, tx, accountID)
		if err != nil || waiting {
			return err
		}
		_, err = u.keys.revoke(ctx, tx, accountID, id, "Unused for "+value.WholeDays(lifetime), record.System)
		return err
	})
}

// MailedEnd returns when the key is revoked, as the mails say: 14 days after the first one and 3
// days after the second one.
func (u *UnusedKey) MailedEnd() *time.Time {
	end := u.UnusedWarnedAt.Add(firstUnusedMail)
	if u.UnusedWarnings == 2 {
		end = u.UnusedWarnedAt.Add(lastUnusedMail)
	}
	return &end
}
