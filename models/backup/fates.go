package backup

import "strings"

// rows are the rows that a table has after a restore.
type rows int

const (
	ofBackup rows = iota // those of the backup
	ofBoth               // those of the backup, and those that only the current database has
	ofUsers              // those of the current database, and those of users whom only the backup has
	none
)

// table says what a restore makes of a table. Each column has one fate, which says what a row of
// the backup gets there if the current database has the row too. A list of columns is separated by
// spaces.
type table struct {
	name string
	rows rows
	key  string // the columns by which both databases have the same row
	// The condition for the rows that only the current database has, without which they would
	// refer to nothing. Empty: all of them.
	referring string

	restored string // as in the backup
	current  string // as in the current database
	lower    string // the lower value of both; NULL is none
	higher   string // the higher value of both; NULL is none
	stated   string // a statement of its own decides
	gone     string // of a table without rows
	// These are set last, also if there is no current database.
	renewed []renewal
}

// renewal is a column that a restore sets to an expression.
type renewal struct{ column, value, where string }

const (
	ofAnAccount = "account_id IN (SELECT id FROM accounts)"
	ofAKey      = "api_key_id IN (SELECT id FROM api_keys)"
	ofASubject  = "(subject_id IN (SELECT id FROM api_keys) OR subject_id IN (SELECT id FROM accounts))"
)

// tables has the fate of every column of every table, in the order of the migrations. A test fails
// for a column that is missing here. The question about a new one is: if it is as in the backup,
// what comes back that somebody has taken away since?
var tables = []table{
	{
		name: "accounts", key: "id", restored: "id name created_at",
		current: "second_factor_required seeded disabled_at limits", lower: "unused_lifetime",
	},
	{
		name: "users", key: "id", restored: "id account_id created_at",
		current: "role email email_hash email_proven_at password_hash known_browsers last_sign_in_at disabled_at removed_at",
	},
	{name: "agents", key: "id", restored: "id account_id name created_at", current: "paused_at"},
	{
		name: "api_keys", key: "id", stated: "revoked_at",
		restored: "id account_id label key_hash last_four access form_id replaces_id created_by created_at note credential " +
			"unused_policy unused_check_at unused_since unused_warned_at unused_warnings unused_mailed",
		current: "leak_reporter leak_url expires_at lifetime expiry_warned_at expiry_recorded agents networks limits " +
			"revocation_reason trust trust_pins",
		renewed: []renewal{
			{column: "trust_version", value: "NEW_VERSION", where: "trust IS NOT NULL"}, // ends the access tokens
		},
	},
	{name: "exchanges", restored: "id api_key_id at reason address"},
	{name: "used_tokens", rows: ofBoth, key: "token_hash", restored: "token_hash", higher: "expires_at"},
	{
		name: "api_key_last_uses", rows: ofBoth, key: "api_key_id", referring: ofAKey,
		restored: "api_key_id hour requests refusals", higher: "used_at",
	},
	{name: "api_key_hourly_usage", restored: "api_key_id hour requests refusals"},
	{name: "api_key_daily_usage", restored: "api_key_id day requests refusals"},
	{name: "api_key_sources", restored: "api_key_id day address client requests first_seen last_seen"},
	{name: "api_key_refusals", restored: "api_key_id id at reason route address client request_id"},
	{name: "api_key_agents", restored: "api_key_id agent_id used_at"},
	{
		name: "sessions", rows: none,
		gone: "id user_id token_hash created_at last_seen_at expires_at authenticated_at first_address last_address user_agent",
	},
	{name: "sign_in_failures", rows: ofBoth, key: "id", restored: "id", current: "subject at"},
	{name: "pending_sign_ins", rows: none, gone: "token_hash user_id expires_at"},
	{name: "sign_in_links", rows: none, gone: "token_hash user_id expires_at"},
	{name: "password_reset_links", rows: none, gone: "token_hash user_id expires_at"},
	{name: "email_changes", rows: none, gone: "user_id email mail_id token_hash expires_at"},
	{
		name: "authenticators", rows: ofUsers, key: "user_id",
		current: "user_id secret key_id created_at enabled_at last_step refused_codes refused_since",
	},
	{name: "recovery_codes", rows: ofUsers, key: "code_hash", current: "code_hash user_id"},
	{
		name: "passkeys", rows: ofUsers, key: "id",
		current: "id user_id credential_id credential sign_count name created_at last_used_at",
	},
	{name: "used_challenges", rows: ofBoth, key: "challenge_hash", restored: "challenge_hash", higher: "expires_at"},
	{name: "identities", rows: ofUsers, key: "issuer subject", current: "issuer subject user_id email created_at"},
	{
		name: "invitations", rows: none,
		gone: "id account_id email email_hash role token_hash mail_token_hash inviter_id created_at expires_at",
	},
	{
		name: "recent_mails", rows: ofBoth, key: "id", referring: ofAnAccount,
		restored: "id", current: "kind account_id email_hash device_hash at",
	},
	{
		name: "outbox", rows: none,
		gone: "id kind account_id activity_id recipient email_hash created_at due_at attempts",
	},
	{
		name:     "activities",
		restored: "id account_id actor_kind actor_id action subject_id label former_label detail count address at",
	},
	{name: "erasing", rows: none, gone: "account_id"},
	{
		name:     "activity_repeats",
		restored: "account_id user_id action period activity_id address repeats elsewhere last_id last_at",
	},
	// Customers pay for calls, and what the portal has ended stays ended. A call that begins
	// anew after its row was lost has another id.
	{
		name: "calls", rows: ofBoth, key: "room_id", referring: ofAnAccount, restored: "room_id",
		current: "id account_id agent_id api_key_id room_name user_id started_at ended_at end_reason exact final ending " +
			"unseen_since visitors unrecorded",
	},
	{name: "call_totals", rows: ofBoth, key: "subject_id day", referring: ofASubject, restored: "subject_id day", higher: "calls seconds"},
	{name: "limit_notices", rows: ofBoth, key: "subject_id month percent", referring: ofASubject, restored: "subject_id month percent"},
	{
		name: "call_rounds", rows: ofBoth, key: "only_row", restored: "only_row",
		current: "listed_at checked_at epoch", higher: "round watch_until", stated: "lease_until due_at",
	},
	{name: "erasures", key: "id", restored: "id", stated: "account_id erased_at emails finished_at"},
	{name: "last_backup", rows: ofBoth, key: "only_row", restored: "only_row", higher: "began_at"},
	{
		name: "webhook_endpoints", key: "id", restored: "id account_id created_at",
		current: "url event_groups secret key_id previous previous_key_id previous_until disabled_at removed_at " +
			"failing_since failures failure_mailed_at",
	},
	// What waited in the backup may have been sent since.
	{
		name: "webhook_deliveries", restored: "endpoint_id event_id event account_id created_at attempts final delivered_at status",
		renewed: []renewal{
			{column: "response", value: "'Not sent again, because a backup was restored.'", where: "due_at IS NOT NULL"},
			{column: "due_at", value: "NULL", where: "due_at IS NOT NULL"},
		},
	},
	{name: "auth_epoch", restored: "only_row", renewed: []renewal{{column: "value", value: "NEW_EPOCH"}}},
	{name: "secret_check", rows: ofBoth, key: "only_row", restored: "only_row", current: "current previous"},
	{name: "last_start", rows: ofBoth, key: "only_row", restored: "only_row", current: "passwords_off"},
	{name: "api_key_days", rows: ofBoth, key: "account_id day api_key_id", referring: ofAKey, restored: "account_id day api_key_id"},
	// The mails about unused keys begin anew, so none is revoked within 14 days.
	{
		name: "key_warnings", restored: "api_key_id check_at since ends_at warning_id warnings mailed",
		renewed: []renewal{{column: "policy", value: "-1"}},
	},
	{name: "applied_migrations", restored: "file"},
}

// readCurrent returns the statement that copies what a restore keeps of the current database, or ""
// if it keeps nothing. The copy's name is that of the table with the prefix "current_".
func (t table) readCurrent() string {
	columns := words(t.current, t.lower, t.higher, t.stated)
	if len(columns) == 0 && t.rows != ofBoth {
		return ""
	}
	switch t.rows {
	case ofBoth:
		columns = append(words(t.restored), columns...)
	case ofBackup:
		columns = append(words(t.key), columns...)
	case ofUsers, none:
	}
	return "CREATE TEMPORARY TABLE current_" + t.name + " AS SELECT " + strings.Join(columns, ", ") + " FROM PREFIX" + t.name + " WHERE COMPARED;\n"
}

// restore returns the statements that make of the table of the backup that of the restored state.
func (t table) restore() string {
	switch t.rows {
	case none:
		return "DELETE FROM " + t.name + ";\n"
	case ofUsers:
		return t.replaceUsers()
	case ofBoth:
		return t.update() + t.insert("NOT "+t.sameRow(t.name), t.referring)
	default:
		return t.update()
	}
}

// update changes the rows that both databases have.
func (t table) update() string {
	var set []string
	for _, column := range words(t.current) {
		set = append(set, column+" = c."+column)
	}
	choose := func(columns, operator string) {
		for _, column := range words(columns) {
			own, other := t.name+"."+column, "c."+column
			set = append(set, column+" = COALESCE(CASE WHEN "+other+operator+own+" THEN "+other+" ELSE "+own+" END, "+other+")")
		}
	}
	choose(t.lower, " < ")
	choose(t.higher, " > ")
	if set == nil {
		return ""
	}
	return "UPDATE " + t.name + " SET " + strings.Join(set, ", ") + " FROM current_" + t.name + " AS c WHERE " + t.equalKeys() + ";\n"
}

// insert adds rows of the current database that meet the conditions.
func (t table) insert(conditions ...string) string {
	columns := strings.Join(words(t.restored, t.current, t.lower, t.higher, t.stated), ", ")
	where := ""
	for _, condition := range conditions {
		if condition != "" {
			where += " AND " + condition
		}
	}
	return "INSERT INTO " + t.name + " (" + columns + ") SELECT " + columns + " FROM current_" + t.name + " AS c WHERE true" + where + ";\n"
}

// replaceUsers takes the rows of the users whom the current database has from there.
func (t table) replaceUsers() string {
	return "DELETE FROM " + t.name + " WHERE user_id IN (SELECT id FROM current_users) OR " + t.sameRow("current_"+t.name+" AS c") + ";\n" +
		t.insert("user_id IN (SELECT id FROM users)")
}

// renew sets the columns that are renewed.
func (t table) renew() (statements string) {
	for _, r := range t.renewed {
		statements += "UPDATE " + t.name + " SET " + r.column + " = " + r.value
		if r.where != "" {
			statements += " WHERE " + r.where
		}
		statements += ";\n"
	}
	return statements
}

// sameRow returns the condition that the other one of the table and the copy has the same row.
func (t table) sameRow(other string) string {
	return "EXISTS (SELECT 1 FROM " + other + " WHERE " + t.equalKeys() + ")"
}

// equalKeys returns the condition that a row and one of the copy, c, have the same key.
func (t table) equalKeys() string {
	var equal []string
	for _, column := range words(t.key) {
		equal = append(equal, "c."+column+" = "+t.name+"."+column)
	}
	return strings.Join(equal, " AND ")
}

// words returns the words of all lists.
func words(lists ...string) []string { return strings.Fields(strings.Join(lists, " ")) }
