package erasure

import (
	"context"
	"reflect"
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

// searchedIn returns the columns with the searched texts of this type of rows.
func searchedIn(db *db.DB, row reflect.Type) []string {
	return strings.Fields(tableNamed(db.Table(row).Name).searched)
}

// replaceIn replaces the emails in the searched texts of the row by [ErasedName], and reports
// whether it has.
func (e emailsInText) replaceIn(db *db.DB, row any) (changed bool) {
	fields := reflect.ValueOf(row).Elem()
	for _, column := range searchedIn(db, fields.Type()) {
		text := db.Table(fields.Type()).FieldMap[column].Value(fields)
		for _, pattern := range e {
			before := text.String()
			text.SetString(replaceWhole(before, pattern))
			changed = changed || text.String() != before
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
