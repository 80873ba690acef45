package erasure_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"portal/models"
	"portal/models/erasure"
	"portal/models/modelstest"
)

// fate is what happens to a column when a person's data are erased, unless it is searched.
type fate int

const (
	kept     fate = iota // not personal
	deleted              // the row is deleted when the user is removed or erased, or soon after
	replaced             // emptied or replaced
	ofOthers             // of the account's machines and visitors; deleted with the account
)

// fates are those of the columns that an erasure does not search, by the names of tables.
var fates = map[string]map[fate]string{
	"accounts": {kept: "id second_factor_required seeded created_at disabled_at limits unused_lifetime"},
	"users": {
		kept:     "id account_id role known_browsers email_proven_at created_at disabled_at removed_at",
		replaced: "email email_hash password_hash last_sign_in_at",
	},
	"agents": {kept: "id account_id created_at paused_at"},
	"api_keys": {
		kept: "id account_id key_hash last_four form_id replaces_id created_by created_at revoked_at leak_reporter expires_at lifetime " +
			"expiry_warned_at expiry_recorded unused_policy unused_check_at unused_since unused_warned_at unused_warnings unused_mailed agents limits access credential trust_version",
		ofOthers: "networks trust trust_pins",
	},
	"exchanges":            {kept: "id api_key_id at", ofOthers: "address"},
	"used_tokens":          {kept: "token_hash expires_at"},
	"api_key_last_uses":    {kept: "api_key_id used_at hour requests refusals"},
	"api_key_hourly_usage": {kept: "api_key_id hour requests refusals"},
	"api_key_daily_usage":  {kept: "api_key_id day requests refusals"},
	"api_key_days":         {kept: "account_id day api_key_id"},
	"api_key_sources":      {kept: "api_key_id day requests first_seen last_seen", ofOthers: "address client"},
	"api_key_refusals":     {kept: "api_key_id id at reason route request_id", ofOthers: "address client"},
	"api_key_agents":       {kept: "api_key_id agent_id used_at"},
	"key_warnings":         {kept: "api_key_id policy check_at since ends_at warning_id warnings mailed"},
	"sessions": {
		kept:    "id user_id token_hash created_at last_seen_at expires_at authenticated_at",
		deleted: "first_address last_address user_agent",
	},
	"sign_in_failures":     {kept: "id at", deleted: "subject"},
	"pending_sign_ins":     {kept: "token_hash user_id expires_at"},
	"sign_in_links":        {kept: "token_hash user_id expires_at"},
	"password_reset_links": {kept: "token_hash user_id expires_at"},
	"email_changes":        {kept: "user_id mail_id token_hash expires_at", deleted: "email"},
	"authenticators":       {kept: "user_id key_id created_at enabled_at last_step refused_codes refused_since", deleted: "secret"},
	"recovery_codes":       {kept: "user_id", deleted: "code_hash"},
	"passkeys":             {kept: "id user_id sign_count created_at last_used_at", deleted: "credential_id credential name"},
	"used_challenges":      {kept: "challenge_hash expires_at"},
	"identities":           {kept: "issuer user_id created_at", deleted: "subject email"},
	"invitations": {
		kept:    "id account_id role token_hash mail_token_hash inviter_id created_at expires_at",
		deleted: "email email_hash",
	},
	"recent_mails": {kept: "id kind account_id at", deleted: "email_hash device_hash"},
	"outbox":       {kept: "id kind account_id activity_id created_at due_at attempts", deleted: "recipient email_hash"},
	"activities": {
		kept:     "id account_id actor_kind actor_id action subject_id count at",
		replaced: "address",
	},
	"erasing":          {kept: "account_id"},
	"activity_repeats": {kept: "account_id user_id action period activity_id repeats elsewhere last_id last_at", replaced: "address"},
	"calls": {
		kept:     "id account_id agent_id api_key_id room_id started_at ended_at end_reason exact final ending unseen_since unrecorded",
		ofOthers: "room_name user_id visitors",
	},
	"webhook_endpoints": {
		kept: "id account_id event_groups secret key_id previous previous_key_id previous_until created_at disabled_at removed_at failing_since " +
			"failures failure_mailed_at",
	},
	"webhook_deliveries": {
		kept: "endpoint_id event_id event account_id created_at due_at attempts final delivered_at status",
	},
	"call_totals":        {kept: "subject_id day calls seconds"},
	"limit_notices":      {kept: "subject_id month percent"},
	"call_rounds":        {kept: "only_row round lease_until due_at listed_at checked_at epoch watch_until"},
	"last_start":         {kept: "only_row passwords_off"},
	"secret_check":       {kept: "only_row current previous"},
	"erasures":           {kept: "id account_id erased_at finished_at", replaced: "emails"},
	"last_backup":        {kept: "only_row began_at"},
	"auth_epoch":         {kept: "only_row value"},
	"applied_migrations": {kept: "file"},
}

// unpurged are the tables whose rows do not expire, and why they are not too many.
var unpurged = map[string]string{
	"accounts":           "until it is erased",
	"agents":             "until it is removed",
	"api_keys":           "until the account is erased",
	"api_key_last_uses":  "one row a key",
	"key_warnings":       "one row a key",
	"recovery_codes":     "a few for each user",
	"passkeys":           "a few for each user",
	"identities":         "one for each user",
	"erasing":            "only within a transaction",
	"erasures":           "one row an erasure; a restore needs it",
	"call_rounds":        "one row",
	"last_backup":        "one row",
	"auth_epoch":         "one row",
	"secret_check":       "one row",
	"last_start":         "one row",
	"applied_migrations": "one row a migration",
}

// A new column needs a fate at a restore and at an erasure, and a new table one at the purge.
func TestEveryColumnHasAFate(t *testing.T) {
	var restored, erased []string
	for _, table := range erasure.Tables {
		at := func(lists ...string) (names []string) {
			for _, column := range strings.Fields(strings.Join(lists, " ")) {
				names = append(names, table.Name+"."+column)
			}
			return names
		}
		restored = append(restored, at(table.Restored, table.Current, table.Lower, table.Higher, table.Stated, table.Gone)...)
		for _, renewal := range table.Renewed {
			restored = append(restored, at(renewal.Column)...)
		}
		erased = append(erased, at(slices.Collect(maps.Values(fates[table.Name]))...)...)
		erased = append(erased, at(table.Searched())...)
		if why := unpurged[table.Name]; table.IsPurged() == (why != "") {
			t.Errorf("the rows of %s: are they purged, or why not (%q)?", table.Name, why)
		}
	}
	modelstest.Databases(t, func(t *testing.T, url string) {
		f := newFixture(t, url, models.Options{})
		query := "SELECT m.name || '.' || c.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table'"
		if f.Postgres() {
			query = "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public'"
		}
		var stored []string
		must(t, f.DB.NewRaw(query).Scan(t.Context(), &stored))
		checkColumns(t, "a restore makes of it; if it is as in the backup, what comes back that somebody has taken away since", restored, stored)
		checkColumns(t, "happens to it when a person's data are erased", erased, stored)
	})
}

// checkColumns checks that each column of the database is in the list once, and no other.
func checkColumns(t *testing.T, fate string, listed, stored []string) {
	t.Helper()
	for _, column := range stored {
		if !slices.Contains(listed, column) {
			t.Errorf("%s: what %s?", column, fate)
		}
	}
	listed, stored = slices.Sorted(slices.Values(listed)), slices.Sorted(slices.Values(stored))
	if !slices.Equal(listed, stored) {
		t.Errorf("what %s: the columns are %q, want %q", fate, listed, stored)
	}
}
