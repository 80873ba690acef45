package erasure

import (
	"iter"
	"slices"
	"time"

	"portal/models/calls"
	"portal/models/internal/throttle"
	"portal/models/keys"
	"portal/models/outbox"
	"portal/models/people"
	"portal/models/record"
	"portal/models/value"
	"portal/models/webhooks"
)

// Rows says which rows a table has after a restore.
type Rows int

// The rows of a table after a restore.
const (
	RowsOfBackup Rows = iota // those of the backup
	RowsOfBoth               // those of the backup, and those that only the current database has
	RowsOfUsers              // those of the current database, and those of users whom only the backup has
	NoRows                   // none
)

// Table says what a restore, an erasure and the purge do with a table. A list of columns is
// separated by spaces.
type Table struct {
	Name string
	Key  string // the columns that identify a row
	Same string // those by which a backup and the current database have the same row; empty: Key
	Rows Rows
	// Referring is the condition on which a restore takes a row that only the current database
	// has: what the row refers to is restored too. Empty: it takes all of them.
	Referring string

	// Each column has one fate at a restore: the value that a row of the backup gets there if
	// the current database has the row too.
	Restored string // as in the backup
	Current  string // as in the current database
	Lower    string // the lower value of both; NULL is none
	Higher   string // the higher value of both; NULL is none
	Stated   string // a statement of its own decides
	Gone     string // of a table without rows
	// Renewed are set last, also if there is no current database.
	Renewed []Renewal

	of       map[owner]string // the conditions for the rows that an erasure deletes
	searched string           // texts in which the erasure of a user replaces the user's emails

	// The conditions for the rows that the purge deletes. ?0 is the time from which rows are
	// kept, ?1 the lowest id of that time, and ?2 the last use of a session that has just
	// become idle.
	purged []string
	kept   time.Duration
}

// Renewal is a column that a restore sets to an expression.
type Renewal struct{ Column, Value, Where string }

// owner is a kind of owner of rows. The erasure of an account deletes the rows of its keys first,
// then those of the account and of its users, and then the remains.
type owner int

const (
	someKeys owner = iota
	anAccount
	someUsers
	remains
)

var (
	ofKeys    = map[owner]string{someKeys: "api_key_id IN (?)"}
	ofCalls   = map[owner]string{someKeys: "api_key_id IN (?)", anAccount: "account_id = ?"}
	ofSubject = map[owner]string{someKeys: "subject_id IN (?)", anAccount: "subject_id = ?"}
	ofAccount = map[owner]string{anAccount: "account_id = ?"}
	ofUsers   = map[owner]string{someUsers: "user_id IN (?)"}
)

// rowsOf returns the tables with rows of an owner, and their conditions: first those that refer to
// others.
func rowsOf(owner owner) iter.Seq2[Table, string] {
	return func(yield func(Table, string) bool) {
		for _, table := range slices.Backward(Tables) {
			if where := table.of[owner]; where != "" && !yield(table, where) {
				return
			}
		}
	}
}

func tableNamed(name string) Table {
	return Tables[slices.IndexFunc(Tables, func(t Table) bool { return t.Name == name })]
}

const (
	// PurgeInterval is the time between two purges.
	PurgeInterval = time.Hour

	hourlyUsageKept  = 48 * time.Hour
	dailyUsageKept   = 400 * value.Day
	limitNoticesKept = 62 * value.Day // longer than a month
	// activitiesKept is how long activities are kept. A trigger refuses to delete newer ones.
	activitiesKept = 400 * value.Day
)

const (
	hasAccount = "account_id IN (SELECT id FROM accounts)"
	hasKey     = "api_key_id IN (SELECT id FROM api_keys)"
	hasSubject = "(subject_id IN (SELECT id FROM api_keys) OR subject_id IN (SELECT id FROM accounts))"

	expired = "expires_at < ?0"
)

// Tables has every column of every table. A table stands after those that it refers to. A test
// fails for a column that is missing here. The questions about a new one are: if a restore leaves
// it as in the backup, what comes back that somebody has taken away since? Can it have a person's
// data? When do its rows expire?
var Tables = []Table{
	{
		Name: "accounts", Key: "id", Restored: "id name created_at",
		Current: "second_factor_required seeded disabled_at limits", Lower: "unused_lifetime",
		of: map[owner]string{remains: "id = ?"}, searched: "name",
	},
	{
		Name: "users", Key: "id", Restored: "id account_id created_at",
		Current: "role email email_hash email_proven_at password_hash known_browsers last_sign_in_at disabled_at removed_at",
		of:      map[owner]string{someUsers: "id IN (?)"},
		// All activities of these users are older. A key's page names the user who
		// generated it.
		purged: []string{"removed_at < ?0 AND NOT EXISTS (SELECT 1 FROM api_keys AS k WHERE k.created_by = users.id)"}, kept: activitiesKept,
	},
	{
		Name: "agents", Key: "id", Restored: "id account_id name created_at", Current: "paused_at",
		of: ofAccount, searched: "name",
	},
	{
		Name: "api_keys", Key: "id", Stated: "revoked_at",
		Restored: "id account_id label key_hash last_four access form_id replaces_id created_by created_at note credential",
		Current: "leak_reporter leak_url expires_at lifetime expiry_warned_at expiry_recorded agents networks limits " +
			"revocation_reason trust trust_pins",
		Renewed: []Renewal{
			{Column: "trust_version", Value: "NEW_VERSION", Where: "trust IS NOT NULL"}, // ends the access tokens
			// For instances of the previous version, as key_warnings.
			{Column: "unused_policy", Value: "-1"},
			{Column: "unused_check_at", Value: "NULL"},
			{Column: "unused_since", Value: "NULL"},
			{Column: "unused_warned_at", Value: "NULL"},
			{Column: "unused_warnings", Value: "0"},
			{Column: "unused_mailed", Value: "0"},
		},
		searched: "label note revocation_reason leak_url",
	},
	{
		Name: "exchanges", Key: "id", Restored: "id api_key_id at reason address",
		of: ofKeys, searched: "reason", purged: []string{"id < ?1 AND at < ?0"}, kept: keys.ExchangesKept,
	},
	{
		Name: "used_tokens", Key: "token_hash", Rows: RowsOfBoth, Restored: "token_hash", Higher: "expires_at",
		purged: []string{expired}, kept: keys.UsedTokenSlack,
	},
	{
		Name: "api_key_last_uses", Key: "api_key_id", Rows: RowsOfBoth, Referring: hasKey,
		Restored: "api_key_id hour requests refusals", Higher: "used_at", of: ofKeys,
	},
	{
		Name: "api_key_hourly_usage", Key: "api_key_id hour", Restored: "api_key_id hour requests refusals",
		of: ofKeys, purged: []string{"hour < ?0"}, kept: hourlyUsageKept,
	},
	{
		Name: "api_key_daily_usage", Key: "api_key_id day", Restored: "api_key_id day requests refusals",
		of: ofKeys, purged: []string{"day < ?0"}, kept: dailyUsageKept,
	},
	{
		Name: "api_key_sources", Key: "api_key_id day address client",
		Restored: "api_key_id day address client requests first_seen last_seen",
		of:       ofKeys, purged: []string{"day < ?0"}, kept: keys.SourcesKept,
	},
	{
		Name: "api_key_refusals", Key: "api_key_id id", Restored: "api_key_id id at reason route address client request_id",
		of: ofKeys, purged: []string{"at < ?0"}, kept: keys.KeyRefusalsKept,
	},
	{
		Name: "api_key_agents", Key: "api_key_id agent_id", Restored: "api_key_id agent_id used_at",
		of: ofKeys, purged: []string{"used_at < ?0"}, kept: keys.SourcesKept,
	},
	{
		Name: "sessions", Key: "id", Rows: NoRows,
		Gone: "id user_id token_hash created_at last_seen_at expires_at authenticated_at first_address last_address user_agent",
		of:   ofUsers, purged: []string{expired + " OR last_seen_at < ?2"},
	},
	{
		Name: "sign_in_failures", Key: "id", Rows: RowsOfBoth, Restored: "id", Current: "subject at",
		purged: []string{"at < ?0"}, kept: throttle.Window,
	},
	{
		Name: "pending_sign_ins", Key: "token_hash", Rows: NoRows, Gone: "token_hash user_id expires_at",
		of: ofUsers, purged: []string{expired},
	},
	{
		Name: "sign_in_links", Key: "token_hash", Rows: NoRows, Gone: "token_hash user_id expires_at",
		of: ofUsers, purged: []string{expired},
	},
	{
		Name: "password_reset_links", Key: "token_hash", Rows: NoRows, Gone: "token_hash user_id expires_at",
		of: ofUsers, purged: []string{expired},
	},
	{
		Name: "email_changes", Key: "user_id", Rows: NoRows, Gone: "user_id email mail_id token_hash expires_at",
		of: ofUsers, purged: []string{expired},
	},
	{
		Name: "authenticators", Key: "user_id", Rows: RowsOfUsers,
		Current: "user_id secret key_id created_at enabled_at last_step refused_codes refused_since",
		of:      ofUsers, purged: []string{"enabled_at IS NULL AND created_at < ?0"}, kept: people.TOTPSetup,
	},
	{Name: "recovery_codes", Key: "code_hash", Rows: RowsOfUsers, Current: "code_hash user_id", of: ofUsers},
	{
		Name: "passkeys", Key: "id", Rows: RowsOfUsers,
		Current: "id user_id credential_id credential sign_count name created_at last_used_at", of: ofUsers,
	},
	{
		Name: "used_challenges", Key: "challenge_hash", Rows: RowsOfBoth, Restored: "challenge_hash", Higher: "expires_at",
		purged: []string{expired},
	},
	{Name: "identities", Key: "issuer subject", Rows: RowsOfUsers, Current: "issuer subject user_id email created_at", of: ofUsers},
	{
		Name: "invitations", Key: "id", Rows: NoRows,
		Gone: "id account_id email email_hash role token_hash mail_token_hash inviter_id created_at expires_at",
		of:   ofAccount, purged: []string{expired},
	},
	{
		Name: "recent_mails", Key: "id", Rows: RowsOfBoth, Referring: hasAccount,
		Restored: "id", Current: "kind account_id email_hash device_hash at",
		of: ofAccount, purged: []string{"at < ?0"}, kept: record.RecentMailWindow,
	},
	{
		Name: "outbox", Key: "id", Rows: NoRows,
		Gone: "id kind account_id activity_id recipient email_hash created_at due_at attempts",
		of:   ofAccount, purged: []string{"created_at < ?0"}, kept: outbox.MailKept + PurgeInterval,
	},
	{
		Name: "activities", Key: "id",
		Restored: "id account_id actor_kind actor_id action subject_id label former_label detail count address at",
		searched: "label former_label detail",
		// The range of ids uses the primary key: ids sort by time.
		purged: []string{"id < ?1 AND at < ?0"}, kept: activitiesKept,
	},
	{Name: "erasing", Rows: NoRows, Gone: "account_id"},
	{
		Name: "activity_repeats", Key: "activity_id",
		Restored: "account_id user_id action period activity_id address repeats elsewhere last_id last_at",
		// After the activities that they count, with which they are written.
		of:     map[owner]string{remains: "account_id = ?"},
		purged: []string{"period < ?0"}, kept: activitiesKept + record.RepeatPeriod,
	},
	// The totals of calls change with them, so an erasure deletes the calls first.
	{
		Name: "call_totals", Key: "subject_id day", Rows: RowsOfBoth, Referring: hasSubject, Restored: "subject_id day", Higher: "calls seconds",
		of: ofSubject, purged: []string{"day < ?0"}, kept: dailyUsageKept,
	},
	{
		Name: "limit_notices", Key: "subject_id month percent", Rows: RowsOfBoth, Referring: hasSubject, Restored: "subject_id month percent",
		of: ofSubject, purged: []string{"month < ?0"}, kept: limitNoticesKept,
	},
	// Customers pay for calls, and what the portal has ended stays ended. A call that begins
	// anew after its row was lost has another id.
	{
		Name: "calls", Key: "id", Same: "room_id", Rows: RowsOfBoth, Referring: hasAccount, Restored: "room_id",
		Current: "id account_id agent_id api_key_id room_name user_id started_at ended_at end_reason exact final ending " +
			"unseen_since visitors unrecorded",
		of: ofCalls, purged: []string{"started_at < ?0 AND ended_at IS NOT NULL"}, kept: calls.CallsKept,
	},
	{
		Name: "call_rounds", Key: "only_row", Rows: RowsOfBoth, Restored: "only_row",
		Current: "listed_at checked_at epoch", Higher: "round watch_until", Stated: "lease_until due_at",
	},
	{
		Name: "erasures", Key: "id", Restored: "id", Stated: "account_id erased_at emails finished_at",
		of: map[owner]string{remains: "account_id = ? AND id <> account_id"},
	},
	{Name: "last_backup", Key: "only_row", Rows: RowsOfBoth, Restored: "only_row", Higher: "began_at"},
	{
		Name: "webhook_endpoints", Key: "id", Restored: "id account_id created_at",
		Current: "url event_groups secret key_id previous previous_key_id previous_until disabled_at removed_at " +
			"failing_since failures failure_mailed_at",
		of: ofAccount, searched: "url",
		purged: []string{"removed_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM webhook_deliveries AS d WHERE d.endpoint_id = webhook_endpoints.id)"},
	},
	// What waited in the backup may have been sent since.
	{
		Name: "webhook_deliveries", Key: "endpoint_id event_id event",
		Restored: "endpoint_id event_id event account_id created_at attempts final delivered_at status",
		Renewed: []Renewal{
			{Column: "response", Value: "'Not sent again, because a backup was restored.'", Where: "due_at IS NOT NULL"},
			{Column: "due_at", Value: "NULL", Where: "due_at IS NOT NULL"},
		},
		of: map[owner]string{anAccount: "endpoint_id IN (SELECT id FROM webhook_endpoints WHERE account_id = ?)"}, searched: "response",
		purged: []string{"created_at < ?0", "endpoint_id IN (SELECT id FROM webhook_endpoints WHERE removed_at IS NOT NULL)"}, kept: webhooks.DeliveriesKept,
	},
	{Name: "auth_epoch", Restored: "only_row", Renewed: []Renewal{{Column: "value", Value: "NEW_EPOCH"}}},
	{Name: "secret_check", Key: "only_row", Rows: RowsOfBoth, Restored: "only_row", Current: "current previous"},
	{Name: "last_start", Key: "only_row", Rows: RowsOfBoth, Restored: "only_row", Current: "passwords_off"},
	{
		Name: "api_key_days", Key: "account_id day api_key_id", Rows: RowsOfBoth, Referring: hasKey, Restored: "account_id day api_key_id",
		of: ofAccount, purged: []string{"day < ?0"}, kept: keys.KeyDaysKept,
	},
	// The mails about unused keys begin anew, so none is revoked within 14 days.
	{
		Name: "key_warnings", Restored: "api_key_id check_at since ends_at warning_id warnings mailed",
		Renewed: []Renewal{{Column: "policy", Value: "-1"}},
	},
	{Name: "applied_migrations", Restored: "file"},
}
