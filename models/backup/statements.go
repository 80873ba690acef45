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
	return strings.NewReplacer(
		"PREFIX", prefix, "COMPARED", strconv.FormatBool(r.compared), "AGENT_REMOVED", "'"+string(models.ActionAgentRemoved)+"'",
	).Replace(`
CREATE TEMPORARY TABLE current_keys AS
	SELECT id, revoked_at, expires_at, lifetime, expiry_warned_at, expiry_recorded, agents, networks, limits, revocation_reason, leak_reporter, leak_url
	FROM PREFIXapi_keys WHERE COMPARED;
CREATE TEMPORARY TABLE removed_agents AS
	SELECT DISTINCT removal.subject_id AS id, removal.account_id FROM PREFIXactivities AS removal
	WHERE COMPARED AND removal.action = AGENT_REMOVED AND NOT EXISTS (SELECT 1 FROM PREFIXagents AS a
		WHERE a.id = removal.subject_id AND a.account_id = removal.account_id);
CREATE TEMPORARY TABLE current_accounts AS
	SELECT id, disabled_at, limits, second_factor_required FROM PREFIXaccounts WHERE COMPARED;
CREATE TEMPORARY TABLE current_agents AS SELECT id, paused_at FROM PREFIXagents WHERE COMPARED;
CREATE TEMPORARY TABLE current_users AS
	SELECT id, email, email_hash, email_proven_at, password_hash, known_browsers, role, disabled_at, removed_at FROM PREFIXusers WHERE COMPARED;
CREATE TEMPORARY TABLE current_identities AS SELECT issuer, subject, user_id FROM PREFIXidentities WHERE COMPARED;
CREATE TEMPORARY TABLE current_authenticators AS
	SELECT user_id, secret, key_id, created_at, enabled_at, last_step, refused_codes, refused_since
	FROM PREFIXauthenticators WHERE COMPARED;
CREATE TEMPORARY TABLE current_recovery_codes AS SELECT code_hash, user_id FROM PREFIXrecovery_codes WHERE COMPARED;
CREATE TEMPORARY TABLE current_erasures AS SELECT id, account_id, erased_at FROM PREFIXerasures WHERE COMPARED;
CREATE TEMPORARY TABLE current_endpoints AS
	SELECT id, secret, key_id, previous, previous_key_id, previous_until, disabled_at FROM PREFIXwebhook_endpoints WHERE COMPARED AND removed_at IS NULL;
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
		"NOW", at(r.now),
		"KEY_REVOKED", "'"+string(models.ActionKeyRevoked)+"'", "AGENT_REMOVED", "'"+string(models.ActionAgentRemoved)+"'",
		"DATABASE_RESTORED", "'"+string(models.ActionDatabaseRestored)+"'", "ERASED", "'"+models.ErasedName+"'",
	).Replace(revokeKeys + removeAgents + beginErasures + keepUsers + hideErased + keepFactors + keepEndpoints + forgetSent + record), "SELECT count(*) FROM closed_keys"
}

const revokeKeys = `
CREATE TEMPORARY TABLE closed_keys AS
	SELECT k.id, c.revoked_at FROM api_keys AS k LEFT JOIN current_keys AS c ON c.id = k.id
	WHERE k.revoked_at IS NULL AND (CONDITION);
UPDATE api_keys SET revoked_at =
		COALESCE((SELECT c.revoked_at FROM closed_keys AS c WHERE c.id = api_keys.id), NOW)
	WHERE id IN (SELECT id FROM closed_keys);
UPDATE api_keys SET expires_at = c.expires_at, lifetime = c.lifetime, expiry_warned_at = c.expiry_warned_at, expiry_recorded = c.expiry_recorded,
		agents = c.agents, networks = c.networks, limits = c.limits, revocation_reason = c.revocation_reason, leak_reporter = c.leak_reporter, leak_url = c.leak_url
	FROM current_keys AS c WHERE c.id = api_keys.id;
`

// removeAgents removes the agents that are removed in the current database, by its activities. An
// agent that is missing there for another reason comes back.
const removeAgents = `
CREATE TEMPORARY TABLE closed_agents AS
	SELECT a.id, a.account_id, a.name FROM agents AS a JOIN removed_agents AS r ON r.id = a.id AND r.account_id = a.account_id;
DELETE FROM agents WHERE id IN (SELECT id FROM closed_agents);
`

// beginErasures begins the erasures that came after the backup. [models.Erasures.Finish] completes
// them.
const beginErasures = `
INSERT INTO erasures (id, account_id, erased_at, emails)
	SELECT c.id, c.account_id, c.erased_at, COALESCE((SELECT u.email FROM users AS u WHERE u.id = c.id), '')
	FROM current_erasures AS c WHERE true
	ON CONFLICT (id) DO UPDATE SET erased_at = excluded.erased_at, emails = excluded.emails, finished_at = NULL
	WHERE erasures.erased_at < excluded.erased_at;
`

// hideErased lets nobody see the users and accounts that are to be erased.
const hideErased = `
UPDATE accounts SET disabled_at = COALESCE(disabled_at, NOW)
	WHERE id IN (SELECT id FROM erasures WHERE finished_at IS NULL);
UPDATE users SET email = ERASED, email_hash = NO_HASH, disabled_at = COALESCE(disabled_at, NOW), removed_at = COALESCE(removed_at, NOW)
	WHERE id IN (SELECT id FROM erasures WHERE finished_at IS NULL);
`

// keepUsers first frees the emails of the current users, because one user may have another's old
// email. A user who is removed in the current database has an email hash there that no email has.
const keepUsers = `
UPDATE accounts SET disabled_at = c.disabled_at, limits = c.limits, second_factor_required = c.second_factor_required
	FROM current_accounts AS c WHERE c.id = accounts.id;
UPDATE agents SET paused_at = c.paused_at FROM current_agents AS c WHERE c.id = agents.id;
UPDATE users SET email_hash = NO_HASH
	WHERE id IN (SELECT id FROM current_users) OR email_hash IN (SELECT email_hash FROM current_users);
UPDATE users SET email = c.email, email_hash = c.email_hash, email_proven_at = c.email_proven_at, password_hash = c.password_hash,
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

// keepEndpoints removes the webhooks that are missing in the current database, and keeps which ones
// are disabled and the current secrets. What waited may have been sent since the backup, so it is
// not sent again unless a user asks for it.
const keepEndpoints = `
DELETE FROM webhook_endpoints WHERE COMPARED AND id NOT IN (SELECT id FROM current_endpoints);
UPDATE webhook_endpoints SET secret = c.secret, key_id = c.key_id, previous = c.previous, previous_key_id = c.previous_key_id,
		previous_until = c.previous_until, disabled_at = c.disabled_at
	FROM current_endpoints AS c WHERE c.id = webhook_endpoints.id;
UPDATE webhook_deliveries SET due_at = NULL, response = 'Not sent again, because a backup was restored.' WHERE due_at IS NOT NULL;
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
`

// record renews the epoch and makes a round of calls due, which ends the calls of the keys that the
// restore has revoked and of the agents that it has removed.
const record = `
INSERT INTO activities (id, account_id, actor_kind, action, subject_id, label, address, at)
	SELECT NEW_ID, k.account_id, 'operator', KEY_REVOKED, k.id, k.label, '', NOW
	FROM api_keys AS k JOIN closed_keys AS c ON c.id = k.id;
INSERT INTO activities (id, account_id, actor_kind, action, subject_id, label, address, at)
	SELECT NEW_ID, account_id, 'operator', AGENT_REMOVED, id, name, '', NOW FROM closed_agents;
INSERT INTO activities (id, account_id, actor_kind, action, label, address, at)
	SELECT NEW_ID, accounts.id, 'operator', DATABASE_RESTORED, '', '', NOW FROM accounts;
UPDATE call_rounds SET round = round + 1, lease_until = NOW, due_at = NOW;
UPDATE auth_epoch SET value = EPOCH;
`

// newID returns the expression of an id. The format makes the random part, and has two verbs for
// the time.
func (r restoring) newID(format string) string {
	milliseconds := fmt.Sprintf("%012x", r.now.UnixMilli())
	return fmt.Sprintf(format, milliseconds[:8], milliseconds[8:])
}
