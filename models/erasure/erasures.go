// Package erasure deletes data: that of accounts and users for good, and rows that have expired.
// [Tables] says what an erasure, the purge and a restore do with each table.
package erasure

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/agents"
	"portal/models/internal/db"
	"portal/models/internal/throttle"
	"portal/models/keys"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
)

// FinishSoon lets the background finish the erasures that have begun.
func (e *Erasures) FinishSoon() {
	select {
	case e.wake <- struct{}{}:
	default: // the background has not seen the last call yet
	}
}

// BeginAccount begins the erasure of an account, which must be disabled. From then on it is not
// found. The error may be [value.ErrAccountNotFound] or [value.ErrAccountEnabled].
func (e *Erasures) BeginAccount(ctx context.Context, id uuid.UUID) error {
	return e.db.InTx(ctx, "erase account", func(ctx context.Context, tx db.Tx) error {
		if err := tx.LockAccount(ctx, id); err != nil {
			return err
		}
		account, err := people.FindAccount(ctx, tx, id)
		if err != nil {
			return err
		}
		if account.DisabledAt == nil {
			return value.ErrAccountEnabled
		}
		return e.begin(ctx, tx, erasure{ID: id, AccountID: id})
	})
}

// BeginUser begins the erasure of one of the account's users, who is removed if that has not
// happened. The user's keys stay. The error may be [value.ErrUserNotFound] or [value.ErrLastOwner].
func (e *Erasures) BeginUser(ctx context.Context, accountID, id uuid.UUID, actor record.Actor) error {
	return e.db.InTx(ctx, "erase user", func(ctx context.Context, tx db.Tx) error {
		if err := tx.LockAccount(ctx, accountID); err != nil {
			return err
		}
		user, err := people.FindUser(ctx, tx, "u.account_id = ? AND u.id = ?", accountID, id)
		if err != nil {
			return err
		}
		emails, err := emailsOfUser(ctx, tx, user)
		if err != nil {
			return err
		}
		if user.RemovedAt == nil {
			if err := e.people.RemoveIn(ctx, tx, user, actor); err != nil {
				return err
			}
		}
		if err := e.begin(ctx, tx, erasure{ID: id, AccountID: accountID, Emails: strings.Join(emails, "\n")}); err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model((*people.User)(nil)).Set("email = ?, last_sign_in_at = NULL", ErasedName).Where("id = ?", id).Exec(ctx)
		return err
	})
}

func (e *Erasures) begin(ctx context.Context, tx db.Tx, row erasure) error {
	row.ErasedAt = tx.Now()
	_, err := tx.NewInsert().Model(&row).On("CONFLICT (id) DO UPDATE").
		// An erasure that is going on may have more emails than were found now.
		Set("erased_at = EXCLUDED.erased_at, finished_at = NULL, emails = erasure.emails || ? || EXCLUDED.emails", "\n").Exec(ctx)
	return err
}

// ErasedAt returns when the erasure of an account or a user began, or nil if it has not.
func (e *Erasures) ErasedAt(ctx context.Context, id uuid.UUID) (at *time.Time, err error) {
	var row erasure
	err = e.db.NewSelect().Model(&row).Where("id = ?", id).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &row.ErasedAt, value.Failed("find an erasure", err)
}

// FindUser returns the user with this email, also a removed one or one whose erasure has begun but
// not ended, or with this id, also an erased one, or [value.ErrUserNotFound].
func (e *Erasures) FindUser(ctx context.Context, email string) (people.User, error) {
	if id, ok := value.ParseID(email); ok {
		return people.FindUser(ctx, e.db, "u.id = ?", id)
	}
	user, err := e.people.FindByEmail(ctx, email)
	if !errors.Is(err, value.ErrUserNotFound) {
		return user, err
	}
	hash := string(value.HashEmail(email))
	for page := (value.Page{Limit: value.MaintenanceBatch}); ; {
		removed := []people.User{}
		if err := page.ByID(people.SelectUsers(e.db, &removed)).Where("u.removed_at IS NOT NULL").Scan(ctx); err != nil {
			return people.User{}, value.Failed("find a removed user", err)
		}
		list := value.Cut(removed, page)
		for _, user := range list.Items {
			if string(value.HashEmail(user.Email)) == hash {
				return user, nil
			}
		}
		if list.Next == uuid.Nil {
			return e.findBegun(ctx, hash)
		}
		page.After = list.Next
	}
}

// findBegun returns the user who had the email with this hash and whose erasure has begun.
func (e *Erasures) findBegun(ctx context.Context, hash string) (people.User, error) {
	var begun []erasure
	if err := e.db.NewSelect().Model(&begun).Where("finished_at IS NULL").Scan(ctx); err != nil {
		return people.User{}, value.Failed("list erasures", err)
	}
	for _, row := range begun {
		for email := range strings.SplitSeq(row.Emails, "\n") {
			if string(value.HashEmail(email)) == hash {
				return people.User{ID: row.ID, AccountID: row.AccountID}, nil
			}
		}
	}
	return people.User{}, value.ErrUserNotFound
}

// Finish finishes all erasures that have begun. If it is called again before it has returned, the
// calls take turns. Several instances may do so at the same time.
func (e *Erasures) Finish(ctx context.Context) error {
	select {
	case e.busy <- struct{}{}:
		defer func() { <-e.busy }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var begun []erasure
	err := e.db.NewSelect().Model(&begun).Where("finished_at IS NULL").OrderExpr("id").Limit(value.MaintenanceBatch).Scan(ctx)
	if err != nil {
		return value.Failed("list erasures", err)
	}
	var errs []error
	done := begun[:0]
	for _, row := range begun {
		finish := e.finishUser
		if row.ofAccount() {
			finish = e.finishAccount
		}
		err := finish(ctx, row)
		if err == nil {
			err = e.update(ctx, row, "emails = ''")
		}
		if err == nil {
			done = append(done, row)
		}
		errs = append(errs, value.Failed("finish an erasure", err))
	}
	if len(done) > 0 {
		if err := e.db.TruncateLog(ctx); err != nil {
			return errors.Join(append(errs, value.Failed("empty the log of the database after an erasure", err))...)
		}
	}
	for _, row := range done {
		errs = append(errs, value.Failed("finish an erasure", e.update(ctx, row, "finished_at = ?", e.db.Now())))
	}
	return errors.Join(errs...)
}

// update changes the row of an erasure, unless it has begun again.
func (e *Erasures) update(ctx context.Context, row erasure, set string, args ...any) error {
	_, err := e.db.NewUpdate().Model((*erasure)(nil)).Set(set, args...).Where("id = ? AND erased_at = ?", row.ID, row.ErasedAt).Exec(ctx)
	return err
}

// finishAccount deletes the rows of an account, first those that refer to others. It reads keys and
// users in pages, because an account can have had any number of them.
func (e *Erasures) finishAccount(ctx context.Context, row erasure) error {
	err := eachPage(ctx, e.db, row.AccountID, func(keys []keys.Key) error {
		ids := value.IDs(keys)
		if err := e.deleteRows(ctx, someKeys, bun.List(ids)); err != nil {
			return err
		}
		for batch := range slices.Chunk(ids, value.WriteBatch) {
			if err := e.deleteKeys(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := e.deleteRows(ctx, anAccount, row.AccountID); err != nil {
		return err
	}
	if err := inBatches(ctx, func() (int64, error) { return e.deleteActivities(ctx, row.AccountID) }); err != nil {
		return err
	}
	if err := eachPage(ctx, e.db, row.AccountID, func(users []people.User) error { return e.deleteUsers(ctx, users) }); err != nil {
		return err
	}
	return e.deleteRows(ctx, remains, row.AccountID)
}

// deleteKeys deletes keys, and then their rows again: transactions that hold the keys, whose end it
// waits for, may have written some since. Later ones write none; see [db.Tx.KeepKeys], which locks
// several keys in the same order.
func (e *Erasures) deleteKeys(ctx context.Context, ids []uuid.UUID) error {
	return e.db.InTx(ctx, "erase API keys", func(ctx context.Context, tx db.Tx) error {
		ordered := e.db.Locked(tx.NewSelect().Table("api_keys").Column("id").Where("id IN (?)", bun.List(ids)).OrderExpr("id"), waits)
		if _, err := tx.NewDelete().TableExpr("api_keys").Where("id IN (?)", ordered).Exec(ctx); err != nil {
			return err
		}
		for table, where := range rowsOf(someKeys) {
			if _, err := tx.NewDelete().TableExpr(table.Name).Where(where, bun.List(ids)).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// deleteUsers deletes users of an account that is being erased, and what belongs to them.
func (e *Erasures) deleteUsers(ctx context.Context, users []people.User) error {
	var hashes [][]byte
	for _, user := range users {
		hashes = append(hashes, user.EmailHash)
		// Another user may have the email of a removed one.
		if user.RemovedAt == nil {
			hashes = append(hashes, value.EmailHashes(user.Email)...)
		}
	}
	if err := e.deleteHashed(ctx, hashes); err != nil {
		return err
	}
	if err := tableNamed("outbox").deleteWhere(ctx, e.db, waits, "email_hash IN (?)", bun.List(hashes)); err != nil {
		return err
	}
	return e.deleteRows(ctx, someUsers, bun.List(value.IDs(users)))
}

// deleteRows deletes the rows of an owner. arg is the argument of the conditions.
func (e *Erasures) deleteRows(ctx context.Context, of owner, arg any) error {
	for table, where := range rowsOf(of) {
		if err := table.deleteWhere(ctx, e.db, waits, where, arg); err != nil {
			return err
		}
	}
	return nil
}

// deleteActivities deletes a batch of the activities of an account and returns its size.
func (e *Erasures) deleteActivities(ctx context.Context, accountID uuid.UUID) (n int64, err error) {
	err = e.db.InTx(ctx, "erase activities", func(ctx context.Context, tx db.Tx) error {
		return tx.Erasing(ctx, accountID, func() error {
			n, err = value.Affected(tableNamed("activities").deleteBatch(e.db, tx, waits, "account_id = ?", accountID).Exec(ctx))
			return err
		})
	})
	return n, err
}

// deleteHashed deletes the sign-in failures of emails with these hashes.
func (e *Erasures) deleteHashed(ctx context.Context, hashes [][]byte) error {
	for batch := range slices.Chunk(hashes, 100) {
		var subjects [][]byte
		for _, hash := range batch {
			for _, kind := range []string{"email", "right", "reset email"} {
				subjects = append(subjects, throttle.SubjectOf(kind, string(hash)).Hash)
			}
		}
		if _, err := e.db.NewDelete().Model((*throttle.Failure)(nil)).Where("subject IN (?)", bun.List(subjects)).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// finishUser removes a user's emails, addresses and browsers from the rows of the account.
func (e *Erasures) finishUser(ctx context.Context, row erasure) error {
	emails, err := e.collectEmails(ctx, row)
	if err != nil {
		return err
	}
	if err := e.deleteAddressed(ctx, row.AccountID, emails); err != nil {
		return err
	}
	texts := newEmailsInText(emails)
	if err := e.replaceNames(ctx, row.AccountID, texts); err != nil {
		return err
	}
	_, err = e.db.NewUpdate().Model((*record.ActivityRepeat)(nil)).Set("address = ''").Where("account_id = ? AND user_id = ?", row.AccountID, row.ID).Exec(ctx)
	if err != nil {
		return err
	}
	err = rewrite(ctx, e.db, row.AccountID, func(a *record.Activity) bool {
		before := *a
		eraseFrom(a, row.ID)
		return texts.replaceIn(e.db, a) || *a != before
	}, "address")
	if err != nil {
		return err
	}
	// After the activities, with which webhooks are sent.
	return errors.Join(e.replaceReasons(ctx, row.AccountID, texts), e.eraseFromWebhooks(ctx, row, texts))
}

// deleteAddressed deletes what is addressed to these emails or counts them.
func (e *Erasures) deleteAddressed(ctx context.Context, accountID uuid.UUID, emails []string) error {
	if len(emails) == 0 {
		return nil
	}
	var hashes [][]byte
	for _, email := range emails {
		hashes = append(hashes, value.EmailHashes(email)...)
	}
	for _, name := range []string{"invitations", "recent_mails"} {
		if err := tableNamed(name).deleteWhere(ctx, e.db, waits, "account_id = ? AND email_hash IN (?)", accountID, bun.List(hashes)); err != nil {
			return err
		}
	}
	err := tableNamed("outbox").deleteWhere(ctx, e.db, waits, "account_id = ? AND recipient IN (?) OR email_hash IN (?)", accountID, bun.List(emails), bun.List(hashes))
	if err != nil {
		return err
	}
	return e.deleteHashed(ctx, hashes)
}

// collectEmails returns the emails of a user who is being erased. It stores them first: after a
// crash the rows may not have all of them any more.
func (e *Erasures) collectEmails(ctx context.Context, row erasure) ([]string, error) {
	return db.InTx(ctx, e.db, "collect emails", func(ctx context.Context, tx db.Tx) ([]string, error) {
		emails, err := emailsOfUser(ctx, tx, people.User{ID: row.ID, AccountID: row.AccountID})
		if err != nil {
			return nil, err
		}
		for stored := range strings.SplitSeq(row.Emails, "\n") {
			if stored != "" && !slices.Contains(emails, stored) {
				emails = append(emails, stored)
			}
		}
		row.Emails = strings.Join(emails, "\n")
		return emails, tx.Update(ctx, &row, "emails")
	})
}

// replaceNames replaces the emails in the names and notes that the account's users have chosen.
func (e *Erasures) replaceNames(ctx context.Context, accountID uuid.UUID, emails emailsInText) error {
	account, err := people.FindAccount(ctx, e.db, accountID)
	if errors.Is(err, value.ErrAccountNotFound) {
		return nil // the account is being erased too
	}
	if err == nil && emails.replaceIn(e.db, &account) {
		_, err = e.db.NewUpdate().Model(&account).Column(searchedIn(e.db, reflect.TypeOf(account))...).WherePK().Exec(ctx)
	}
	return errors.Join(err,
		rewrite(ctx, e.db, accountID, func(a *agents.Agent) bool { return emails.replaceIn(e.db, a) }),
		rewrite(ctx, e.db, accountID, func(k *keys.Key) bool { return emails.replaceIn(e.db, k) }))
}

// rewrite calls change with each of the account's rows. Of the rows that change has changed, it
// writes the searched columns and these further columns, in short transactions with pauses for
// other writers.
func rewrite[T value.Entry](ctx context.Context, db *db.DB, accountID uuid.UUID, change func(*T) bool, columns ...string) error {
	columns = append(searchedIn(db, reflect.TypeFor[T]()), columns...)
	return eachPage(ctx, db, accountID, func(rows []T) error {
		var ids []uuid.UUID
		for _, row := range rows {
			if change(&row) {
				ids = append(ids, row.EntryID())
			}
		}
		batches := slices.Collect(slices.Chunk(ids, value.WriteBatch))
		return inBatches(ctx, func() (int64, error) {
			if len(batches) == 0 {
				return 0, nil
			}
			batch := batches[0]
			batches = batches[1:]
			return int64(len(batch)), rewriteRows(ctx, db, accountID, batch, change, columns)
		})
	})
}

// rewriteRows reads rows again, because users or another erasure may have changed them, and writes
// what change makes of them.
func rewriteRows[T value.Entry](ctx context.Context, conn *db.DB, accountID uuid.UUID, ids []uuid.UUID, change func(*T) bool, columns []string) error {
	return conn.InTx(ctx, "erase a user from texts", func(ctx context.Context, tx db.Tx) error {
		return tx.Erasing(ctx, accountID, func() error {
			var rows []T
			query := tx.NewSelect().Model(&rows).Where("?TableAlias.id IN (?)", bun.List(ids)).OrderExpr("?TableAlias.id")
			if err := conn.Locked(query, "NO KEY UPDATE").Scan(ctx); err != nil || len(rows) == 0 {
				return err
			}
			for i := range rows {
				change(&rows[i])
			}
			// For PostgreSQL the models name the type of their ids.
			_, err := tx.NewUpdate().Model(&rows).Column(columns...).Bulk().Exec(ctx)
			return err
		})
	})
}

// emailsOfUser returns the emails that a user has or had.
func emailsOfUser(ctx context.Context, tx db.Tx, user people.User) (emails []string, err error) {
	err = tx.NewRaw(`SELECT email FROM users WHERE id = ?0
		UNION SELECT email FROM identities WHERE user_id = ?0
		UNION SELECT email FROM email_changes WHERE user_id = ?0
		UNION SELECT label FROM activities WHERE account_id = ?1 AND subject_id = ?0
		UNION SELECT former_label FROM activities WHERE account_id = ?1 AND subject_id = ?0 AND former_label IS NOT NULL`,
		user.ID, user.AccountID).Scan(ctx, &emails)
	return slices.DeleteFunc(emails, func(email string) bool { return !strings.Contains(email, "@") }), err
}

// browsers are the actions whose label is the browser, the passkey or the device of the actor.
var browsers = []record.Action{
	record.ActionSignedOut, record.ActionSessionRevoked, record.ActionPasskeyAdded, record.ActionPasskeyRemoved,
}

// eraseFrom removes a user's address and browser from an activity.
func eraseFrom(a *record.Activity, userID uuid.UUID) {
	acted := a.ActorID != nil && *a.ActorID == userID
	if acted || a.ActorKind == record.ActorVisitor && a.SubjectID != nil && *a.SubjectID == userID {
		a.Address = ""
	}
	if acted && slices.Contains(browsers, a.Action) {
		a.Label = ""
	}
}

func newEmailsInText(emails []string) (found emailsInText) {
	for _, email := range emails {
		pattern := inURLs.Replace(regexp.QuoteMeta(email))
		found = append(found, regexp.MustCompile("(?i)"+pattern))
	}
	return found
}

// inURLs lets the pattern of an email match its form in a URL too.
var inURLs = strings.NewReplacer("@", "(?:@|%40)", `\+`, `(?:\+|%2b)`)
