package backup

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"portal/models"
	"portal/models/database"
)

// RestoredKeys selects the keys of a backup that stay active. A key that is revoked in the current
// database is never among them.
type RestoredKeys int

const (
	// KeepUnrevokedKeys keeps the keys that are in the current database and not revoked there.
	KeepUnrevokedKeys RestoredKeys = iota
	// RevokeAllKeys revokes every key.
	RevokeAllKeys
	// KeepUnknownKeys also keeps the keys that the current database does not have. They may
	// have been revoked after the backup.
	KeepUnknownKeys
)

// ErrNothingToCompare means that the current database has no accounts, and therefore cannot show
// which keys were revoked after the backup.
var ErrNothingToCompare = errors.New("the current database has no accounts, so it cannot show which keys were revoked after the backup")

// migrate updates the schema of the current database or of the restored state.
func migrate(ctx context.Context, db *database.Connections) error {
	return db.Migrate(ctx, slog.New(slog.DiscardHandler), time.Minute)
}

// Restore replaces the database with a backup and returns how many active keys of the backup it
// revoked. It ends all sessions, renews the authentication epoch and records an activity in each
// account. Users and accounts keep the passwords, the factors, the roles and the disabled state of
// the current database. Users who were removed stay removed, and identities that were disconnected
// stay disconnected. Users who are not in the current database are disabled.
//
// Restore is atomic. Other processes may use the database meanwhile, and see either the old state
// or the new one. It returns [ErrNothingToCompare] for [KeepUnrevokedKeys] without a current
// database.
func Restore(ctx context.Context, databaseURL, file string, keys RestoredKeys) (revoked int, err error) {
	if err := database.CheckURL(databaseURL); err != nil {
		return 0, err
	}
	path, sqlite := database.SQLitePath(databaseURL)
	if sqlite {
		err = checkKind(file, "SQLite format 3\x00", "SQLite")
	} else {
		err = checkKind(file, "PGDMP", "PostgreSQL")
	}
	if err != nil {
		return 0, err
	}
	state, err := databaseState(ctx, databaseURL)
	if err != nil {
		return 0, err
	}
	if state != withAccounts && keys == KeepUnrevokedKeys {
		return 0, ErrNothingToCompare
	}
	if state == withAccounts {
		// The comparison needs the columns of the current schema.
		if err := updateSchema(ctx, databaseURL); err != nil {
			return 0, err
		}
	}
	r := restoring{keys: keys, state: state, now: time.Now().UTC()}
	if sqlite {
		return r.restoreSQLite(ctx, path, file)
	}
	return r.restorePostgres(ctx, databaseURL, file)
}

// restoring is a restore in progress.
type restoring struct {
	keys  RestoredKeys
	state schemaState // of the current database
	now   time.Time
}

// readCurrent returns the statements that copy the revoked keys, the disabled accounts and the
// users of the current database. The names of its tables have this prefix.
func (r restoring) readCurrent(prefix string) string {
	if r.state != withAccounts {
		return `
CREATE TEMPORARY TABLE current_keys (id uuid, revoked_at timestamptz);
CREATE TEMPORARY TABLE current_accounts (id uuid, disabled_at timestamptz);
CREATE TEMPORARY TABLE current_users (
	id uuid, disabled_at timestamptz, password_hash text, role text, removed_at timestamptz, email_hash bytea);
CREATE TEMPORARY TABLE current_identities (issuer text, subject text, user_id uuid);
`
	}
	return strings.ReplaceAll(`
CREATE TEMPORARY TABLE current_keys AS SELECT id, revoked_at FROM PREFIXapi_keys;
CREATE TEMPORARY TABLE current_accounts AS SELECT id, disabled_at FROM PREFIXaccounts;
CREATE TEMPORARY TABLE current_users AS
	SELECT id, disabled_at, password_hash, role, removed_at, email_hash FROM PREFIXusers;
CREATE TEMPORARY TABLE current_identities AS SELECT issuer, subject, user_id FROM PREFIXidentities;
`, "PREFIX", prefix)
}

// keepRoles keeps the roles and the removals of the current database. A user who is removed there
// has an email hash that no email has.
const keepRoles = `
UPDATE users SET role = c.role, removed_at = c.removed_at,
		email_hash = CASE WHEN c.removed_at IS NULL THEN users.email_hash ELSE c.email_hash END
	FROM current_users AS c WHERE c.id = users.id;
DELETE FROM sign_in_links;
`

// keepDisconnected deletes the identities that were disconnected after the backup.
const keepDisconnected = `
DELETE FROM identities WHERE user_id IN (SELECT id FROM current_users) AND NOT EXISTS (SELECT 1 FROM current_identities AS c
	WHERE c.issuer = identities.issuer AND c.subject = identities.subject AND c.user_id = identities.user_id);
`

// endCalls queues the end of the calls of the keys that the restore revokes.
func (r restoring) endCalls() string {
	at := func(t time.Time) string { return "'" + t.Format("2006-01-02 15:04:05.999999-07:00") + "'" }
	return strings.NewReplacer("NOW", at(r.now), "EXPIRY", at(r.now.Add(models.HangUpLife))).Replace(`
DELETE FROM hang_ups;
INSERT INTO hang_ups (activity_id, subject_id, due_at, expires_at)
	SELECT a.id, a.subject_id, NOW, EXPIRY FROM activities AS a JOIN closed_keys AS c ON c.id = a.subject_id
	WHERE a.action = 'api_key.revoked' AND a.at = NOW;
`)
}

// forgetSent deletes the mails, links and invitations of the restored state. They may have been
// sent, used or cancelled after the backup.
const forgetSent = `
DELETE FROM invitations;
DELETE FROM outbox;
DELETE FROM password_reset_links;
`

// secure returns the statements that make the restored state safe, and the query for the number of
// revoked keys. randomEpoch and activityID are SQL expressions for new random values.
func (r restoring) secure(randomEpoch, activityID string) (statements, count string) {
	condition := map[RestoredKeys]string{
		KeepUnrevokedKeys: "c.id IS NULL OR c.revoked_at IS NOT NULL",
		RevokeAllKeys:     "true",
		KeepUnknownKeys:   "c.revoked_at IS NOT NULL",
	}[r.keys]
	statements = strings.NewReplacer(
		"CONDITION", condition, "COMPARED", strconv.FormatBool(r.state == withAccounts), "EPOCH", randomEpoch, "ID", activityID,
		"NOW", "'"+r.now.Format("2006-01-02 15:04:05.999999-07:00")+"'",
	).Replace(`
CREATE TEMPORARY TABLE closed_keys AS
	SELECT k.id, c.revoked_at FROM api_keys AS k LEFT JOIN current_keys AS c ON c.id = k.id
	WHERE k.revoked_at IS NULL AND (CONDITION);
UPDATE api_keys SET revoked_at =
		COALESCE((SELECT c.revoked_at FROM closed_keys AS c WHERE c.id = api_keys.id), NOW)
	WHERE id IN (SELECT id FROM closed_keys);
UPDATE accounts SET disabled_at = (SELECT c.disabled_at FROM current_accounts AS c WHERE c.id = accounts.id)
	WHERE id IN (SELECT id FROM current_accounts);
UPDATE users SET
		disabled_at = (SELECT c.disabled_at FROM current_users AS c WHERE c.id = users.id),
		password_hash = (SELECT c.password_hash FROM current_users AS c WHERE c.id = users.id)
	WHERE id IN (SELECT id FROM current_users);
UPDATE users SET disabled_at = NOW
	WHERE disabled_at IS NULL AND COMPARED AND id NOT IN (SELECT id FROM current_users);
DELETE FROM sessions;
INSERT INTO activities (id, account_id, actor_kind, action, subject_id, label, address, at)
	SELECT ID, k.account_id, 'operator', 'api_key.revoked', k.id, k.label, '', NOW
	FROM api_keys AS k JOIN closed_keys AS c ON c.id = k.id;
INSERT INTO activities (id, account_id, actor_kind, action, label, address, at)
	SELECT ID, accounts.id, 'operator', 'database.restored', '', '', NOW FROM accounts;
UPDATE auth_epoch SET value = EPOCH;
`)
	return statements + keepRoles + keepDisconnected + keepFactors + r.endCalls() + forgetSent, "SELECT count(*) FROM closed_keys"
}
