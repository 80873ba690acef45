package keys

import (
	"bytes"
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

// leakBatch is the number of keys that one statement looks up.
const leakBatch = 100

// Revoke revokes the reported keys that are active, of any account, records who reported
// them, and returns the outcome of each text. The address is that of a reporter without
// credentials.
//
// Each key has a transaction of its own, and each transaction and each look-up the time limit of
// the database. With an error come the outcomes of the texts before it: those keys stay revoked,
// and the call can be repeated.
func (l *Leaks) Revoke(ctx context.Context, texts []LeakedText, reporter record.LeakReporter, address string) ([]LeakOutcome, error) {
	outcomes := make([]LeakOutcome, 0, len(texts))
	for batch := range slices.Chunk(texts, leakBatch) {
		known, err := l.find(ctx, batch)
		if err != nil {
			return outcomes, err
		}
		for _, text := range batch {
			key, found := known[text.key]
			outcome := LeakUnknown
			switch {
			case !found:
			case reporter == record.LeakPublic && key.RevokedAt != nil:
				// Without a lock, because anyone can repeat this.
				outcome = LeakInactive
			default:
				outcome, err = db.InTx(ctx, l.keys.db, "revoke leaked API key", func(ctx context.Context, tx db.Tx) (LeakOutcome, error) {
					return l.revokeOne(ctx, tx, key, record.Leak{Reporter: reporter, URL: text.url}, record.VisitorActor(address))
				})
				if err != nil {
					return outcomes, err
				}
			}
			outcomes = append(outcomes, outcome)
		}
	}
	return outcomes, nil
}

// find returns the keys, active or not, among the texts of a batch.
func (l *Leaks) find(ctx context.Context, batch []LeakedText) (map[keyHash]Key, error) {
	var hashes [][]byte
	for _, text := range batch {
		if text.hasKey {
			hashes = append(hashes, text.key[:])
		}
	}
	if len(hashes) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.keys.db.Timeout)
	defer cancel()
	var keys []Key
	err := l.keys.db.NewSelect().Model(&keys).Where("api_key.key_hash IN (?)", bun.List(hashes)).Scan(ctx)
	if err != nil {
		return nil, value.Failed("find leaked API keys", err)
	}
	known := make(map[keyHash]Key, len(keys))
	for _, key := range keys {
		known[keyHash(key.KeyHash)] = key
	}
	return known, nil
}

// revokeOne also locks a key that is revoked already; see [Keys.lockActive].
func (l *Leaks) revokeOne(ctx context.Context, tx db.Tx, key Key, leak record.Leak, actor record.Actor) (LeakOutcome, error) {
	key, err := l.keys.lockActive(ctx, tx, key.AccountID, key.ID)
	switch {
	case errors.Is(err, value.ErrKeyAlreadyRevoked):
		return LeakInactive, nil
	case errors.Is(err, value.ErrKeyNotFound): // deleted since
		return LeakUnknown, nil
	case err != nil:
		return "", err
	}
	key.RevokedAt, key.Leak = new(tx.Now()), leak
	if err := tx.Update(ctx, &key, "revoked_at", "leak_reporter", "leak_url"); err != nil {
		return "", err
	}
	activity := record.Activity{ID: record.NewActivityID(tx), AccountID: key.AccountID, Action: record.ActionKeyLeaked, SubjectID: &key.ID, Label: key.Label}
	if err := record.Add(ctx, tx, actor, activity); err != nil {
		return "", err
	}
	return LeakRevoked, queueLeak(ctx, tx, key, activity.ID)
}

const (
	// leakMailDelay is how long the mail about a leaked key waits for other keys of the same
	// report, and leakMailInterval is the time between two such mails to one address.
	leakMailDelay    = 10 * time.Second
	leakMailInterval = 5 * time.Minute
)

// queueLeak queues the mails about a leaked key. If a recipient's mail about another leaked key of
// the account waits, it reports both.
func queueLeak(ctx context.Context, tx db.Tx, key Key, activityID uuid.UUID) error {
	if !tx.DB.Mails {
		return nil
	}
	recipients, err := record.OwnersAndCreators(ctx, tx, key.AccountID, key.ID)
	if err != nil {
		return err
	}
	// Otherwise, two reports could queue two mails to one address. Only locks of mails follow
	// this one.
	if err := tx.LockHash(ctx, key.AccountID[8:]); err != nil {
		return err
	}
	// A mail that is being claimed is locked. The update waits and then leaves it out.
	var waiting []string
	err = tx.NewUpdate().Model((*record.Mail)(nil)).
		Set("created_at = CASE WHEN created_at < ?0 THEN created_at ELSE ?0 END", *key.RevokedAt).
		Where("account_id = ? AND kind = ? AND attempts = 0", key.AccountID, record.ActionKeyLeaked).
		Returning("recipient").Scan(ctx, &waiting)
	if err != nil {
		return err
	}
	now := tx.Now()
	var recent []record.RecentMail
	err = tx.NewSelect().Model(&recent).Column("email_hash", "at").
		Where("account_id = ? AND kind = ? AND at > ?", key.AccountID, record.ActionKeyLeaked, now.Add(-leakMailInterval)).Scan(ctx)
	if err != nil {
		return err
	}
	dueTo := map[time.Time][]string{}
	for _, recipient := range recipients {
		if slices.Contains(waiting, recipient) {
			continue
		}
		due := now.Add(leakMailDelay)
		for _, last := range recent {
			if next := last.At.Add(leakMailInterval); bytes.Equal(last.EmailHash, value.HashEmail(recipient)) && next.After(due) {
				due = next
			}
		}
		dueTo[due] = append(dueTo[due], recipient)
	}
	for due, recipients := range dueTo {
		_, err := record.QueueMails(ctx, tx, recipients, record.Mail{
			Kind: record.ActionKeyLeaked, AccountID: &key.AccountID, ActivityID: &activityID, CreatedAt: *key.RevokedAt, DueAt: due,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
