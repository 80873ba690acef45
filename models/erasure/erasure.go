package erasure

import (
	"context"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"portal/models/internal/db"
	"portal/models/people"
	"portal/models/value"
)

// ErasedName is the email of a user whose data were erased. No user can have it, because it is no
// email.
const ErasedName = "Erased user"

// erasure is the erasure of an account or of a user. Its row stays.
type erasure struct {
	bun.BaseModel `bun:"table:erasures,alias:erasure"`

	ID         uuid.UUID `bun:",pk"` // of the account or of the user
	AccountID  uuid.UUID
	ErasedAt   time.Time
	Emails     string     // of the user, one a line; empty when the erasure is complete
	FinishedAt *time.Time // nil while rows are left
}

func (e erasure) ofAccount() bool { return e.ID == e.AccountID }

// fate is what happens to a column when a person's data are erased.
type fate int

const (
	kept     fate = iota // not personal
	deleted              // the row is deleted when the user is removed or erased, or soon after
	replaced             // emptied or replaced
	searched             // free text, in which the user's emails are replaced
	ofOthers             // of the account's machines and visitors; deleted with the account
)

// columns has the fate of every column of every table, by the names of tables. A test fails for a
// column that is missing here.
var columns = map[string]map[fate]string{
	"accounts": {kept: "id second_factor_required seeded created_at disabled_at limits unused_lifetime", searched: "name"},
	"users": {
		kept:     "id account_id role known_browsers email_proven_at created_at disabled_at removed_at",
		replaced: "email email_hash password_hash last_sign_in_at",
	},
	"agents": {kept: "id account_id created_at paused_at", searched: "name"},
	"api_keys": {
		kept: "id account_id key_hash last_four form_id replaces_id created_by created_at revoked_at leak_reporter expires_at lifetime " +
			"expiry_warned_at expiry_recorded unused_policy unused_check_at unused_since unused_warned_at unused_warnings unused_mailed agents limits access credential trust_version",
		searched: "label leak_url note revocation_reason",
		ofOthers: "networks trust trust_pins",
	},
	"exchanges":            {kept: "id api_key_id at", searched: "reason", ofOthers: "address"},
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
		searched: "label former_label detail",
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
		searched: "url",
	},
	"webhook_deliveries": {
		kept:     "endpoint_id event_id event account_id created_at due_at attempts final delivered_at status",
		searched: "response",
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

// Erasures delete the data of accounts and users for good. Each begins in one transaction, after
// which nobody sees the data any more, and is then finished in batches: by the caller, or by any
// instance after a crash or a restore.
type Erasures struct {
	db          *db.DB
	people      *people.People
	sessionIdle time.Duration // the idle limit of a session, for the purge
	wake        chan struct{} // has an element if an erasure is to be finished in the background
	busy        chan struct{} // has an element while a caller of Finish is at work
}

// New returns the service. sessionIdle is the idle limit of a session, for the purge.
func New(db *db.DB, people *people.People, sessionIdle time.Duration) *Erasures {
	return &Erasures{db: db, people: people, sessionIdle: sessionIdle, wake: make(chan struct{}, 1), busy: make(chan struct{}, 1)}
}

// Due receives when an erasure is to be finished in the background.
func (e *Erasures) Due() <-chan struct{} { return e.wake }

// eachPage calls visit with the rows of an account, page by page.
func eachPage[T value.Entry](ctx context.Context, db *db.DB, accountID uuid.UUID, visit func([]T) error) error {
	for page := (value.Page{Limit: value.MaintenanceBatch}); ; {
		rows := []T{}
		limited, cancel := context.WithTimeout(ctx, db.Timeout)
		err := page.ByID(db.NewSelect().Model(&rows)).Where("?TableAlias.account_id = ?", accountID).Scan(limited)
		cancel()
		if err != nil {
			return err
		}
		list := value.Cut(rows, page)
		if err := visit(list.Items); err != nil || list.Next == uuid.Nil {
			return err
		}
		page.After = list.Next
	}
}

// emailsInText finds emails in texts, also as parts of URLs.
type emailsInText []*regexp.Regexp

func idsOf[T value.Entry](rows []T) (ids []uuid.UUID) {
	for _, row := range rows {
		ids = append(ids, row.EntryID())
	}
	return ids
}

// replaceIn replaces the emails in these texts by [ErasedName], and reports whether it has.
func (e emailsInText) replaceIn(texts ...*string) (changed bool) {
	for _, text := range texts {
		for _, pattern := range e {
			before := *text
			*text = replaceWhole(*text, pattern)
			changed = changed || *text != before
		}
	}
	return changed
}

// replaceWhole replaces the matches that are not a part of a longer email.
func replaceWhole(text string, pattern *regexp.Regexp) string {
	var result strings.Builder
	rest := 0
	for _, span := range pattern.FindAllStringIndex(text, -1) {
		before, _ := utf8.DecodeLastRuneInString(text[:span[0]])
		after, size := utf8.DecodeRuneInString(text[span[1]:])
		if after == '.' { // a dot may also end a sentence
			after, _ = utf8.DecodeRuneInString(text[span[1]+size:])
		}
		if isWordRune(before) || strings.ContainsRune(".+%", before) || isWordRune(after) {
			continue
		}
		result.WriteString(text[rest:span[0]] + ErasedName)
		rest = span[1]
	}
	return result.String() + text[rest:]
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_')
}
