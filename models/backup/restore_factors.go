package backup

import "strings"

// readCurrentFactors returns the statements that copy the factors of the current database. The
// names of its tables have this prefix.
func (r restoring) readCurrentFactors(prefix string) string {
	if r.state != withAccounts {
		return `
CREATE TEMPORARY TABLE current_required (id uuid, required boolean);
CREATE TEMPORARY TABLE current_authenticators (
	user_id uuid, secret bytea, key_id bytea, created_at timestamptz, enabled_at timestamptz, last_step bigint);
CREATE TEMPORARY TABLE current_recovery_codes (code_hash bytea, user_id uuid);
CREATE TEMPORARY TABLE current_passkeys (
	id uuid, user_id uuid, credential_id bytea, credential text, sign_count bigint, name text, created_at timestamptz, last_used_at timestamptz);
`
	}
	return strings.ReplaceAll(`
CREATE TEMPORARY TABLE current_required AS SELECT id, second_factor_required AS required FROM PREFIXaccounts;
CREATE TEMPORARY TABLE current_authenticators AS
	SELECT user_id, secret, key_id, created_at, enabled_at, last_step FROM PREFIXauthenticators;
CREATE TEMPORARY TABLE current_recovery_codes AS SELECT code_hash, user_id FROM PREFIXrecovery_codes;
CREATE TEMPORARY TABLE current_passkeys AS
	SELECT id, user_id, credential_id, credential, sign_count, name, created_at, last_used_at FROM PREFIXpasskeys;
`, "PREFIX", prefix)
}

// keepFactors keeps the factors of the users of the current database, so that no used recovery code
// and no removed factor comes back.
const keepFactors = `
DELETE FROM pending_sign_ins;
DELETE FROM authenticators WHERE user_id IN (SELECT id FROM current_users);
DELETE FROM recovery_codes WHERE user_id IN (SELECT id FROM current_users);
DELETE FROM passkeys WHERE user_id IN (SELECT id FROM current_users);
INSERT INTO authenticators (user_id, secret, key_id, created_at, enabled_at, last_step)
	SELECT user_id, secret, key_id, created_at, enabled_at, last_step FROM current_authenticators
	WHERE user_id IN (SELECT id FROM users);
INSERT INTO recovery_codes (code_hash, user_id)
	SELECT code_hash, user_id FROM current_recovery_codes WHERE user_id IN (SELECT id FROM users);
INSERT INTO passkeys (id, user_id, credential_id, credential, sign_count, name, created_at, last_used_at)
	SELECT id, user_id, credential_id, credential, sign_count, name, created_at, last_used_at FROM current_passkeys
	WHERE user_id IN (SELECT id FROM users);
UPDATE accounts SET second_factor_required = (SELECT c.required FROM current_required AS c WHERE c.id = accounts.id)
	WHERE id IN (SELECT id FROM current_required);
`
