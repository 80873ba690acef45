package portal

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"

	"portal/models"
	"portal/templates"
)

const (
	changesPath = homePath + "/changes"
	// keysChanged is the event after which an open list fetches its changes.
	keysChanged = "keys-changed"
	// filterFrom is the smallest number of keys for which the list has a filter.
	filterFrom = 11
	// versionStep is the precision of the times of last use in a list's version. With a higher
	// precision, one busy key would change the version on every request.
	versionStep = 15 * time.Second
)

// showChanges returns the list if it differs from the version that the client shows.
func (p *keyPages) showChanges(c *gin.Context) error {
	page, err := p.page(c, templates.APIKeyForm{})
	if err != nil {
		return err
	}
	r := reply{fragment: page.List, location: homePath}
	if c.Query("seen") == page.List.Version {
		r.status = http.StatusNoContent
	}
	return p.reply(c, r)
}

// page returns the page of keys in the order of the query string. Each row in replacements
// replaces the row of the same key.
func (p *keyPages) page(c *gin.Context, form templates.APIKeyForm, replacements ...templates.APIKeyRow) (templates.APIKeysPage, error) {
	active, err := p.active(c)
	if err != nil {
		return templates.APIKeysPage{}, err
	}
	return templates.APIKeysPage{Form: form, List: p.listOf(active, keyViewOf(c), replacements...)}, nil
}

func (p *keyPages) listOf(active activeKeys, view keyView, replacements ...templates.APIKeyRow) templates.APIKeyList {
	keys := active.keys
	list := templates.APIKeyList{
		Columns: view.columns(), Usage: view.column(usageColumn), Query: view.query(), Version: versionOf(keys),
		Keys: make([]templates.APIKeyRow, len(keys)), Limit: models.MaxActiveKeys, Filterable: len(keys) >= filterFrom,
	}
	view.sort(active)
	for i, key := range keys {
		row := p.row(key, active)
		for _, replacement := range replacements {
			if replacement.ID == key.ID {
				row = replacement
			}
		}
		list.Keys[i] = row
	}
	return list
}

// versionOf returns a hash of what the list shows.
func versionOf(keys []models.Key) string {
	var shown strings.Builder
	for _, key := range keys {
		used := int64(-1)
		if key.LastUsedAt != nil {
			used = key.LastUsedAt.Truncate(versionStep).Unix()
		}
		fmt.Fprintf(&shown, "%s %q %d\n", key.ID, key.Label, used)
	}
	return hashOf(shown.String())
}

// hashOf returns a short hash of what a page shows, so that it fetches only changes.
func hashOf(shown string) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(shown)) // never fails
	return fmt.Sprintf("%x", hash.Sum64())
}

// The parameters of the list's query string.
const (
	paramSort      = "sort"
	paramDirection = "dir"

	ascending  = "asc"
	descending = "desc"
)

// keyColumn is a column that the list can be sorted by.
type keyColumn struct {
	id, name string
	first    string // the direction of the first click
	order    func(activeKeys) func(a, b models.Key) int
}

var keyColumns = []keyColumn{
	{"label", "Label", ascending, orderByLabel},
	{"key", "Key", ascending, orderBy(func(key models.Key) string { return key.LastFour })},
	{"created", "Created", descending, orderBy(func(key models.Key) int64 { return key.CreatedAt.UnixNano() })},
	{"last-used", "Last Used", descending, orderBy(lastUsed)},
}

// usageColumn sorts by the requests in the chart, which have no column of their own.
var usageColumn = keyColumn{"usage", "Usage", descending, orderByUsage}

func orderByUsage(active activeKeys) func(a, b models.Key) int {
	return func(a, b models.Key) int { return cmp.Compare(active.totals[a.ID], active.totals[b.ID]) }
}

// orderByLabel returns the order of labels without case and accents.
func orderByLabel(active activeKeys) func(a, b models.Key) int {
	ranks := map[uuid.UUID]string{}
	for _, key := range active.keys {
		ranks[key.ID] = labelRank(key.Label)
	}
	return func(a, b models.Key) int { return cmp.Compare(ranks[a.ID], ranks[b.ID]) }
}

var digits = regexp.MustCompile(`[0-9]+`)

const longestNumber = 100 // digits, because a label has at most 100 characters

// labelRank returns a text that sorts as the label does. Numbers have leading zeros, so that "Key
// 2" is before "key 10". The tables of package collate would add 1.3 MB to the program.
func labelRank(label string) string {
	// The chain is not safe for concurrent use, so every call makes its own.
	plain, _, _ := transform.String(transform.Chain(norm.NFD, runes.Remove(runes.In(unicode.Mn))), label) // never fails
	return digits.ReplaceAllStringFunc(strings.ToLower(plain), func(number string) string {
		return strings.Repeat("0", max(0, longestNumber-len(number))) + number
	})
}

func orderBy[T cmp.Ordered](value func(models.Key) T) func(activeKeys) func(a, b models.Key) int {
	return func(activeKeys) func(a, b models.Key) int {
		return func(a, b models.Key) int { return cmp.Compare(value(a), value(b)) }
	}
}

// lastUsed returns the time of last use, or the lowest number for a key that was never used.
func lastUsed(key models.Key) int64 {
	if key.LastUsedAt == nil {
		return math.MinInt64
	}
	return key.LastUsedAt.UnixNano()
}

// keyView is the order of the list.
type keyView struct {
	sorted    keyColumn
	direction string
}

// defaultKeyView shows the newest key first.
func defaultKeyView() keyView {
	return keyView{sorted: keyColumns[2], direction: descending}
}

// keyViewOf returns the view of the query string. Unknown values are ignored.
func keyViewOf(c *gin.Context) keyView {
	view := defaultKeyView()
	for _, column := range slices.Concat(keyColumns, []keyColumn{usageColumn}) {
		if column.id == c.Query(paramSort) {
			view.sorted, view.direction = column, column.first
		}
	}
	if direction := c.Query(paramDirection); direction == ascending || direction == descending {
		view.direction = direction
	}
	return view
}

// sort sorts the keys. Equal keys keep their order.
func (v keyView) sort(active activeKeys) {
	order := v.sorted.order(active)
	slices.SortStableFunc(active.keys, func(a, b models.Key) int {
		if v.direction == descending {
			return order(b, a)
		}
		return order(a, b)
	})
}

// query returns the query string of the view with its question mark. The default view has none.
func (v keyView) query() string {
	usual := defaultKeyView()
	if v.sorted.id == usual.sorted.id && v.direction == usual.direction {
		return ""
	}
	return "?" + url.Values{paramSort: {v.sorted.id}, paramDirection: {v.direction}}.Encode()
}

func (v keyView) columns() []templates.APIKeyColumn {
	columns := make([]templates.APIKeyColumn, len(keyColumns))
	for i, column := range keyColumns {
		columns[i] = v.column(column)
	}
	return columns
}

// column returns the link that sorts by a column, or reverses its order.
func (v keyView) column(column keyColumn) templates.APIKeyColumn {
	next := keyView{sorted: column, direction: column.first}
	shown := templates.APIKeyColumn{ID: column.id, Name: column.name}
	if column.id == v.sorted.id {
		shown.Order = map[string]string{ascending: "ascending", descending: "descending"}[v.direction]
		next.direction = map[string]string{ascending: descending, descending: ascending}[v.direction]
	}
	shown.Address = homePath + next.query()
	return shown
}
