package backup

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"portal/models"
)

// expressions are the SQL expressions that differ between the databases.
type expressions struct {
	epoch  string // a random epoch
	id     string // a new UUIDv7 with the time of the restore
	noHash string // a hash for the user in a row of users that no email has
}

// readCurrent returns the statements that copy what a restore keeps of the current database, whose
// tables' names have this prefix. If there is no current database to compare with, the tables are
// those of the restored state, and the copies are empty.
func (r restoring) readCurrent(prefix string) string {
	return strings.NewReplacer("PREFIX", prefix, "COMPARED", strconv.FormatBool(r.compared)).Replace(`
CREATE TEMPORARY TABLE current_keys AS
	SELECT id, revoked_at, expires_at, lifetime, expiry_warned_at, agents, networks, revocation_reason, leak_source, leak_url
	FROM PREFIXapi_keys WHERE COMPARED;
CREATE TEMPORARY TABLE current_accounts AS
	SELECT id, disabled_at, second_factor_required FROM PREFIXaccounts WHERE COMPARED;
CREATE TEMPORARY TABLE current_users AS
	SELECT id, email, email_hash, password_hash, known_browsers, role, disabled_at, removed_at FROM PREFIXusers WHERE COMPARED;
CREATE TEMPORARY TABLE current_identities AS SELECT issuer, subject, user_id FROM PREFIXidentities WHERE COMPARED;
CREATE TEMPORARY TABLE current_authenticators AS
	SELECT user_id, secret, key_id, created_at, enabled_at, last_step, refused_codes, refused_since
	FROM PREFIXauthenticators WHERE COMPARED;
CREATE TEMPORARY TABLE current_recovery_codes AS SELECT code_hash, user_id FROM PREFIXrecovery_codes WHERE COMPARED;
CREATE TEMPORARY TABLE current_passkeys AS
	SELECT id, user_id, credential_id, credential, sign_count, name, created_at, last_used_at
	FROM PREFIXpasskeys WHERE COMPARED;
`)
}

// secure returns the statements that make the restored state safe, and the query for the number of
// revoked keys.
func (r restoring) secure(e expressions) (statements, count string) {
	condition := map[RestoredKeys]string{
		KeepUnrevokedKeys: "c.id IS NULL OR c.revoked_at IS NOT NULL",
		RevokeAllKeys:     "true",
		KeepUnknownKeys:   "c.revoked_at IS NOT NULL",
	}[r.keys]
	at := func(t time.Time) string { return "'" + t.Format("2006-01-02 15:04:05.999999-07:00") + "'" }
	return strings.NewReplacer(
		"CONDITION", condition, "COMPARED", strconv.FormatBool(r.compared), "EPOCH", e.epoch, "NEW_ID", e.id, "NO_HASH", e.noHash,
		"NOW", at(r.now), "EXPIRY", at(r.now.Add(models.HangUpLife)),
	).Replace(revokeKeys + keepUsers + keepFactors + forgetSent + record), "SELECT count(*) FROM closed_keys"
}

const revokeKeys = `
CREATE TEMPORARY TABLE closed_keys AS
	SELECT k.id, c.revoked_at FROM api_keys AS k LEFT JOIN current_keys AS c ON c.id = k.id
	WHERE k.revoked_at IS NULL AND (CONDITION);
UPDATE api_keys SET revoked_at =
		COALESCE((SELECT c.revoked_at FROM closed_keys AS c WHERE c.id = api_keys.id), NOW)
	WHERE id IN (SELECT id FROM closed_keys);
UPDATE api_keys SET expires_at = c.expires_at, lifetime = c.lifetime, expiry_warned_at = c.expiry_warned_at,
		agents = c.agents, networks = c.networks, revocation_reason = c.revocation_reason, leak_source = c.leak_source, leak_url = c.leak_url
	FROM current_keys AS c WHERE c.id = api_keys.id;
`

// keepUsers first frees the emails of the current users, because one user may have another's old
// email. A user who is removed in the current database has an email hash there that no email has.
const keepUsers = `
UPDATE accounts SET disabled_at = c.disabled_at, second_factor_required = c.second_factor_required
	FROM current_accounts AS c WHERE c.id = accounts.id;
UPDATE users SET email_hash = NO_HASH
	WHERE id IN (SELECT id FROM current_users) OR email_hash IN (SELECT email_hash FROM current_users);
UPDATE users SET email = c.email, email_hash = c.email_hash, password_hash = c.password_hash,
		known_browsers = c.known_browsers, role = c.role, disabled_at = c.disabled_at, removed_at = c.removed_at
	FROM current_users AS c WHERE c.id = users.id;
UPDATE users SET disabled_at = NOW
	WHERE disabled_at IS NULL AND COMPARED AND id NOT IN (SELECT id FROM current_users);
DELETE FROM identities WHERE user_id IN (SELECT id FROM current_users) AND NOT EXISTS (SELECT 1 FROM current_identities AS c
	WHERE c.issuer = identities.issuer AND c.subject = identities.subject AND c.user_id = identities.user_id);
`

// keepFactors keeps the factors of the users of the current database, so that no used recovery code
// and no removed factor comes back.
const keepFactors = `
DELETE FROM authenticators WHERE user_id IN (SELECT id FROM current_users);
DELETE FROM recovery_codes WHERE user_id IN (SELECT id FROM current_users);
DELETE FROM passkeys WHERE user_id IN (SELECT id FROM current_users);
INSERT INTO authenticators (user_id, secret, key_id, created_at, enabled_at, last_step, refused_codes, refused_since)
	SELECT user_id, secret, key_id, created_at, enabled_at, last_step, refused_codes, refused_since
	FROM current_authenticators WHERE user_id IN (SELECT id FROM users);
INSERT INTO recovery_codes (code_hash, user_id)
	SELECT code_hash, user_id FROM current_recovery_codes WHERE user_id IN (SELECT id FROM users);
INSERT INTO passkeys (id, user_id, credential_id, credential, sign_count, name, created_at, last_used_at)
	SELECT id, user_id, credential_id, credential, sign_count, name, created_at, last_used_at
	FROM current_passkeys WHERE user_id IN (SELECT id FROM users);
`

// forgetSent deletes what may have been sent, used, cancelled or ended after the backup.
const forgetSent = `
DELETE FROM sessions;
DELETE FROM pending_sign_ins;
DELETE FROM sign_in_links;
DELETE FROM password_reset_links;
DELETE FROM email_changes;
DELETE FROM invitations;
DELETE FROM outbox;
DELETE FROM hang_ups;
`

// record also queues the end of the calls of the keys that the restore revokes, and of those that
// expire.
const record = `
INSERT INTO activities (id, account_id, actor_kind, action, subject_id, label, address, at)
	SELECT NEW_ID, k.account_id, 'operator', 'api_key.revoked', k.id, k.label, '', NOW
	FROM api_keys AS k JOIN closed_keys AS c ON c.id = k.id;
INSERT INTO hang_ups (activity_id, subject_id, due_at, expires_at)
	SELECT a.id, a.subject_id, NOW, EXPIRY FROM activities AS a JOIN closed_keys AS c ON c.id = a.subject_id
	WHERE a.action = 'api_key.revoked' AND a.at = NOW;
INSERT INTO hang_ups (activity_id, subject_id, due_at, expires_at)
	SELECT id, id, expires_at, expires_at FROM api_keys WHERE revoked_at IS NULL AND expires_at IS NOT NULL;
INSERT INTO activities (id, account_id, actor_kind, action, label, address, at)
	SELECT NEW_ID, accounts.id, 'operator', 'database.restored', '', '', NOW FROM accounts;
UPDATE auth_epoch SET value = EPOCH;
`

// newID returns the expression of an id. The format makes the random part, and has two verbs for
// the time.
func (r restoring) newID(format string) string {
	milliseconds := fmt.Sprintf("%012x", r.now.UnixMilli())
	return fmt.Sprintf(format, milliseconds[:8], milliseconds[8:])
}
