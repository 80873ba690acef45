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

// keyWarning is what is known about the revocation of a key for lack of use.
type keyWarning struct {
	bun.BaseModel `bun:"table:key_warnings,alias:warning"`

	KeyID uuid.UUID `bun:"api_key_id,pk"`
	// Policy is [Options.UnusedLifetime] at the last look; negative: the next look starts anew.
	Policy    time.Duration
	CheckAt   *time.Time // the time of the next look; nil: never
	Since     *time.Time // the start of the 14 days before the revocation; nil: not yet
	EndsAt    *time.Time // when these end
	WarningID *uuid.UUID // of the last mails; nil: none
	Warnings  int        // the number of times that mails were queued
	Mailed    int        // those of them that somebody got

	AccountID  uuid.UUID  `bun:",scanonly"`
	CreatedAt  time.Time  `bun:",scanonly"`
	RevokedAt  *time.Time `bun:",scanonly"`
	ExpiresAt  *time.Time `bun:",scanonly"`
	LastUsedAt *time.Time `bun:",scanonly"`
}

// warningState are the columns of the state.
var warningState = []string{"policy", "check_at", "since", "ends_at", "warning_id", "warnings", "mailed"}

// unusedStep is what is due for an unused key.
type unusedStep int

const (
	unusedWait unusedStep = iota
	unusedWarn
	unusedRevoke
	unusedEnded // the key is not active any more
)

// reset starts anew.
func (w *keyWarning) reset() {
	w.Since, w.EndsAt, w.WarningID, w.Warnings, w.Mailed = nil, nil, nil, 0, 0
}

// postpone sets the time of the next look: now plus by.
func (w *keyWarning) postpone(now time.Time, by time.Duration) {
	w.CheckAt = new(now.Add(by))
}

// next returns what is due now, and sets the time of the next look. A key is revoked after lifetime
// without a use; 0: never.
func (w *keyWarning) next(now time.Time, lifetime time.Duration, mail bool) unusedStep {
	if lifetime == 0 {
		w.reset()
		w.CheckAt = nil
		return unusedWait
	}
	used := w.CreatedAt
	if w.LastUsedAt != nil {
		used = db.Later(used, *w.LastUsedAt)
	}
	if mail { // what nobody got is sent again
		w.Warnings = min(w.Warnings, w.Mailed)
	}
	// With a short lifetime, no mail is about a key that is used every day.
	due, step := db.Later(used.Add(lifetime-firstUnusedMail), used.Add(value.Day)), unusedWarn
	again := now.Before(due) || w.Since != nil && used.After(*w.Since)
	if again || mail && w.Warnings == 0 {
		w.reset()
	}
	if w.Since != nil {
		due, step = w.following(mail)
	}
	if now.Before(due) {
		w.CheckAt = &due
		return unusedWait
	}
	w.postpone(now, unusedMargin)
	return step
}

// following returns when the next step of the 14 days is due, and which one it is.
func (w *keyWarning) following(mail bool) (time.Time, unusedStep) {
	if mail && w.Warnings == 1 {
		return w.EndsAt.Add(-lastUnusedMail), unusedWarn
	}
	return w.EndsAt.Add(unusedMargin), unusedRevoke
}

// warn begins the 14 days before the revocation, or else the last 3 of them. The id is that of the
// mails about it; nil: there are none.
func (w *keyWarning) warn(now time.Time, id *uuid.UUID) {
	left := lastUnusedMail
	if w.Since == nil {
		w.Since, left = &now, firstUnusedMail
	}
	if id != nil {
		w.Warnings++
	}
	w.EndsAt, w.WarningID = new(now.Add(left)), id
	check, _ := w.following(id != nil)
	w.CheckAt = &check
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
		// A trigger has the next look at each key start anew.
		if err := tx.Update(ctx, &account, "unused_lifetime"); err != nil {
			return err
		}
		return record.Add(ctx, tx, actor, record.Activity{
			AccountID: accountID, Action: record.ActionUnusedKeysSet, SubjectID: &accountID, Label: account.Name, Detail: detail,
		})
	})
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
		ofAccount[key.AccountID] = append(ofAccount[key.AccountID], key.KeyID)
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

// postpone lets these keys start anew in an hour, because their account is being erased or their
// state could not be written.
func (u *Unused) postpone(ctx context.Context, ids []uuid.UUID) error {
	anew := keyWarning{Policy: u.keys.unusedLifetime, CheckAt: new(u.keys.db.Now().Add(unusedMargin))}
	_, err := u.keys.db.NewUpdate().Model(&anew).Column(warningState...).Where("api_key_id IN (?)", bun.List(ids)).Exec(ctx)
	return value.Failed("postpone unused API keys", err)
}

// due returns the keys whose next look is due: those that were looked at with another
// setting, or not yet, and those whose time has come.
func (u *Unused) due(ctx context.Context) (due []keyWarning, err error) {
	ctx, cancel := context.WithTimeout(ctx, u.keys.db.Timeout)
	defer cancel()
	for _, query := range []*bun.SelectQuery{
		u.keys.db.NewSelect().Where("warning.policy = ? AND warning.check_at <= ?", u.keys.unusedLifetime, u.keys.db.Now()),
		u.keys.db.NewSelect().Where("warning.policy < ?", u.keys.unusedLifetime),
		u.keys.db.NewSelect().Where("warning.policy > ?", u.keys.unusedLifetime),
	} {
		var found []keyWarning
		err := query.Model(&found).Column("api_key_id").ColumnExpr("api_key.account_id").
			Join("JOIN api_keys AS api_key ON api_key.id = warning.api_key_id").
			OrderExpr("warning.policy, warning.check_at").Limit(unusedBatch).Scan(ctx)
		if err != nil {
			return nil, err
		}
		due = append(due, found...)
	}
	return due, nil
}

// selectUnused selects what is known about keys of an account, and locks it. The last uses include
// those that this instance has not written.
func (u *Unused) selectUnused(ctx context.Context, tx db.Tx, accountID uuid.UUID, ids ...uuid.UUID) (keys []keyWarning, err error) {
	query := tx.NewSelect().Model(&keys).ColumnExpr("?TableColumns").
		ColumnExpr("api_key.account_id, api_key.created_at, api_key.revoked_at, api_key.expires_at, last_use.used_at AS last_used_at").
		Join("JOIN api_keys AS api_key ON api_key.id = warning.api_key_id").Join(db.JoinLastUses).
		Where("api_key.account_id = ? AND api_key.id IN (?)", accountID, bun.List(ids)).OrderExpr("api_key.id")
	err = u.keys.db.Locked(query, "NO KEY UPDATE OF warning").Scan(ctx)
	for i := range keys {
		keys[i].LastUsedAt = u.keys.usage.LastUse(keys[i].KeyID, keys[i].LastUsedAt)
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
	steps := make([]unusedStep, len(keys))
	var warned []uuid.UUID
	for i := range keys {
		if steps[i] = u.look(&keys[i], account, now, waiting); steps[i] == unusedWarn {
			warned = append(warned, keys[i].KeyID)
		}
	}
	id, queued, err := queueUnusedMails(ctx, tx, accountID, warned, now)
	for i := 0; i < len(keys) && err == nil; i++ {
		key := &keys[i]
		switch {
		case steps[i] == unusedEnded:
			_, err = tx.NewDelete().Model(key).WherePK().Exec(ctx)
			continue
		case steps[i] == unusedRevoke:
			revoked = append(revoked, key.KeyID)
		case steps[i] == unusedWarn && queued:
			key.warn(now, id)
		}
		err = tx.Update(ctx, key, warningState...)
	}
	return revoked, err
}

// look returns what is due about a key, and sets the time of the next look. While mails about the
// key wait in the outbox, the key waits too.
func (u *Unused) look(key *keyWarning, account people.Account, now time.Time, waiting bool) unusedStep {
	if key.Policy != u.keys.unusedLifetime {
		key.reset()
	}
	key.Policy = u.keys.unusedLifetime
	switch {
	case key.RevokedAt != nil || key.ExpiresAt != nil && !now.Before(*key.ExpiresAt):
		return unusedEnded
	case account.DisabledAt != nil: // its keys are refused already
		key.reset()
		key.postpone(now, value.Day)
	case waiting && key.Mailed < key.Warnings:
		key.postpone(now, unusedMargin)
	default:
		return key.next(now, u.Lifetime(account), u.keys.db.Mails)
	}
	return unusedWait
}

func noAccount(err error) error {
	if errors.Is(err, value.ErrAccountNotFound) {
		return nil // it is being erased
	}
	return err
}

// queueUnusedMails queues the mails about unused keys of an account, and returns their id; nil
// without mail. If nobody can get one, it reports false, and the keys are not revoked.
func queueUnusedMails(ctx context.Context, tx db.Tx, accountID uuid.UUID, keys []uuid.UUID, now time.Time) (*uuid.UUID, bool, error) {
	if len(keys) == 0 || !tx.DB.Mails {
		return nil, true, nil
	}
	recipients, err := record.OwnersAndCreators(ctx, tx, accountID, keys...)
	if err != nil {
		return nil, false, err
	}
	id := value.NewID()
	queued, err := record.QueueMails(ctx, tx, recipients, record.Mail{
		Kind: record.MailKeysUnused, AccountID: &accountID, ActivityID: &id, CreatedAt: now, DueAt: tx.Now(),
	})
	return &id, queued, err
}

// unusedMailsWait reports whether mails about unused keys of an account are in the outbox.
func unusedMailsWait(ctx context.Context, tx db.Tx, accountID uuid.UUID) (bool, error) {
	return tx.NewSelect().Model((*record.Mail)(nil)).Where("mail.account_id = ? AND mail.kind = ?", accountID, record.MailKeysUnused).Exists(ctx)
}

// UnusedMailSent records that somebody got a mail about unused keys.
func UnusedMailSent(ctx context.Context, db bun.IDB, mail record.Mail) error {
	_, err := db.NewUpdate().Model((*keyWarning)(nil)).Set("mailed = warnings").Where("warning_id = ?", mail.ActivityID).Exec(ctx)
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
		if err != nil || len(keys) == 0 || u.look(&keys[0], account, now, false) != unusedRevoke {
			return err
		}
		waiting, err := unusedMailsWait(ctx, tx, accountID)
		if err != nil || waiting {
			return err
		}
		_, err = u.keys.revoke(ctx, tx, accountID, id, "Unused for "+value.WholeDays(u.Lifetime(account)), record.System)
		return err
	})
}
