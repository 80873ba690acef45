package backup

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"portal/models/erasure"
	"portal/models/record"
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

// restoring is a restore in progress.
type restoring struct {
	keys     RestoredKeys
	compared bool // with the accounts of the current database
	now      time.Time
	wait     time.Duration // for the locks of other sessions of PostgreSQL
}

// expressions are the SQL expressions that differ between the databases.
type expressions struct {
	epoch   string // a random epoch
	id      string // a new UUIDv7 with the time of the restore
	version string // a random UUID
	noHash  string // a hash for the user in a row of users that no email has
}

// readCurrent returns the statements that copy what a restore keeps of the current database, whose
// tables' names have this prefix. If there is no current database to compare with, the tables are
// those of the restored state, and the copies are empty.
func (r restoring) readCurrent(prefix string) string {
	statements := removedAgents
	for _, t := range erasure.Tables {
		statements += table(t).readCurrent()
	}
	return strings.NewReplacer(
		"PREFIX", prefix, "COMPARED", strconv.FormatBool(r.compared), "AGENT_REMOVED", "'"+string(record.ActionAgentRemoved)+"'",
	).Replace(statements)
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
	statements = revokeKeys + removeAgents + beginErasures + freeEmails + removeEndpoints + noteUnseen
	for _, t := range erasure.Tables {
		statements += table(t).restore()
	}
	statements += disableUsers + hideErased
	for _, t := range erasure.Tables {
		statements += table(t).renew()
	}
	return strings.NewReplacer(
		"CONDITION", condition, "COMPARED", strconv.FormatBool(r.compared), "NEW_EPOCH", e.epoch, "NEW_ID", e.id, "NEW_VERSION", e.version, "NO_HASH", e.noHash,
		"NOW", at(r.now),
		"KEY_REVOKED", "'"+string(record.ActionKeyRevoked)+"'", "AGENT_REMOVED", "'"+string(record.ActionAgentRemoved)+"'",
		"DATABASE_RESTORED", "'"+string(record.ActionDatabaseRestored)+"'", "ERASED", "'"+erasure.ErasedName+"'",
	).Replace(statements + recordRestore), "SELECT count(*) FROM closed_keys"
}

// removedAgents copies the agents that are removed in the current database, by its activities. An
// agent that is missing there for another reason comes back.
const removedAgents = `
CREATE TEMPORARY TABLE removed_agents AS
	SELECT removal.subject_id AS id, removal.account_id, max(removal.label) AS name FROM PREFIXactivities AS removal
	WHERE COMPARED AND removal.action = AGENT_REMOVED AND NOT EXISTS (SELECT 1 FROM PREFIXagents AS a
		WHERE a.id = removal.subject_id AND a.account_id = removal.account_id)
	GROUP BY removal.subject_id, removal.account_id;
`

const revokeKeys = `
CREATE TEMPORARY TABLE closed_keys AS
	SELECT k.id, c.revoked_at FROM api_keys AS k LEFT JOIN current_api_keys AS c ON c.id = k.id
	WHERE k.revoked_at IS NULL AND (CONDITION);
UPDATE api_keys SET revoked_at =
		COALESCE((SELECT c.revoked_at FROM closed_keys AS c WHERE c.id = api_keys.id), NOW)
	WHERE id IN (SELECT id FROM closed_keys);
`

// removeAgents also notes agents that were created and removed after the backup. Otherwise the
// restore of another backup would bring them back.
const removeAgents = `
CREATE TEMPORARY TABLE closed_agents AS
	SELECT r.id, r.account_id, COALESCE(a.name, r.name) AS name
	FROM removed_agents AS r LEFT JOIN agents AS a ON a.id = r.id AND a.account_id = r.account_id
	WHERE r.account_id IN (SELECT id FROM accounts) AND (a.id IS NOT NULL OR NOT EXISTS (SELECT 1 FROM activities AS removal
		WHERE removal.subject_id = r.id AND removal.action = AGENT_REMOVED));
DELETE FROM agents WHERE id IN (SELECT id FROM closed_agents);
`

// beginErasures begins the erasures that came after the backup. [erasure.Erasures.Finish] completes
// them.
const beginErasures = `
INSERT INTO erasures (id, account_id, erased_at, emails)
	SELECT c.id, c.account_id, c.erased_at, COALESCE((SELECT u.email FROM users AS u WHERE u.id = c.id), '')
	FROM current_erasures AS c WHERE true
	ON CONFLICT (id) DO UPDATE SET erased_at = excluded.erased_at, emails = excluded.emails, finished_at = NULL
	WHERE erasures.erased_at < excluded.erased_at;
`

// freeEmails frees the emails of the current users before they get them, because one user may have
// another's old email. A user who is removed in the current database has an email hash there that
// no email has.
const freeEmails = `
UPDATE users SET email_hash = NO_HASH
	WHERE id IN (SELECT id FROM current_users) OR email_hash IN (SELECT email_hash FROM current_users);
`

const removeEndpoints = `
DELETE FROM webhook_endpoints WHERE COMPARED AND id NOT IN (SELECT id FROM current_webhook_endpoints);
`

// noteUnseen lets a call of the backup end at about that time if its room is gone by now.
const noteUnseen = `
UPDATE calls SET unseen_since = (SELECT listed_at FROM call_rounds) WHERE ended_at IS NULL AND unseen_since IS NULL;
`

// disableUsers disables the users who are missing in the current database.
const disableUsers = `
UPDATE users SET disabled_at = NOW
	WHERE disabled_at IS NULL AND COMPARED AND id NOT IN (SELECT id FROM current_users);
`

// hideErased lets nobody see the users and accounts that are to be erased.
const hideErased = `
UPDATE accounts SET disabled_at = COALESCE(disabled_at, NOW)
	WHERE id IN (SELECT id FROM erasures WHERE finished_at IS NULL);
UPDATE users SET email = ERASED, email_hash = NO_HASH, disabled_at = COALESCE(disabled_at, NOW), removed_at = COALESCE(removed_at, NOW)
	WHERE id IN (SELECT id FROM erasures WHERE finished_at IS NULL);
`

// recordRestore records the restore, and the keys and agents that it has revoked and removed. It
// makes a round of calls due, which ends their calls.
const recordRestore = `
INSERT INTO activities (id, account_id, actor_kind, action, subject_id, label, address, at)
	SELECT NEW_ID, k.account_id, 'operator', KEY_REVOKED, k.id, k.label, '', NOW
	FROM api_keys AS k JOIN closed_keys AS c ON c.id = k.id;
INSERT INTO activities (id, account_id, actor_kind, action, subject_id, label, address, at)
	SELECT NEW_ID, account_id, 'operator', AGENT_REMOVED, id, name, '', NOW FROM closed_agents;
INSERT INTO activities (id, account_id, actor_kind, action, label, address, at)
	SELECT NEW_ID, accounts.id, 'operator', DATABASE_RESTORED, '', '', NOW FROM accounts;
UPDATE call_rounds SET round = round + 1, lease_until = NOW, due_at = NOW;
`

// newID returns the expression of an id. The format makes the random part, and has two verbs for
// the time.
func (r restoring) newID(format string) string {
	milliseconds := fmt.Sprintf("%012x", r.now.UnixMilli())
	return fmt.Sprintf(format, milliseconds[:8], milliseconds[8:])
}
