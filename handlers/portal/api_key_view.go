package portal

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"portal/models"
	"portal/templates"
)

// The parameters of the list's address.
const (
	paramSort      = "sort"
	paramDirection = "dir"
	paramFilter    = "filter"

	ascending  = "asc"
	descending = "desc"
)

// keyColumn is a column that the list can be sorted by.
type keyColumn struct {
	id, name string
	first    string // the direction that is offered first
	compare  func(a, b models.APIKey) int
}

var keyColumns = []keyColumn{
	{"label", "Label", ascending, func(a, b models.APIKey) int {
		return compareLabels(a.Label, b.Label)
	}},
	{"key", "Key", ascending, func(a, b models.APIKey) int { return cmp.Compare(a.LastFour, b.LastFour) }},
	{"created", "Created", descending, func(a, b models.APIKey) int { return a.CreatedAt.Compare(b.CreatedAt) }},
	// Never comes before the earliest time.
	{"last-used", "Last Used", descending, func(a, b models.APIKey) int { return timeOf(a).Compare(timeOf(b)) }},
}

func timeOf(key models.APIKey) time.Time {
	if key.LastUsedAt == nil {
		return time.Time{}
	}
	return *key.LastUsedAt
}

// keyView is how the list is looked at.
type keyView struct {
	column    keyColumn
	direction string
	filter    string
}

// defaultKeyView is the newest first, and all of them.
func defaultKeyView() keyView {
	return keyView{column: keyColumns[2], direction: descending}
}

// keyViewOf is what the address asks for. What it asks for in vain is left out.
func keyViewOf(c *gin.Context) keyView {
	view := defaultKeyView()
	for _, column := range keyColumns {
		if column.id == c.Query(paramSort) {
			view.column, view.direction = column, column.first
		}
	}
	if direction := c.Query(paramDirection); direction == ascending || direction == descending {
		view.direction = direction
	}
	view.filter = strings.TrimSpace(c.Query(paramFilter))
	return view
}

// sort puts the keys in order; those that compare alike stay in theirs.
func (v keyView) sort(keys []models.APIKey) {
	slices.SortStableFunc(keys, func(a, b models.APIKey) int {
		order := v.column.compare(a, b)
		if v.direction == descending {
			return -order
		}
		return order
	})
}

// shows reports whether the label or the masked key, which is all that is seen of
// a key elsewhere, contains the text of the filter.
func (v keyView) shows(key models.APIKey) bool {
	text := strings.ToLower(v.filter)
	return strings.Contains(strings.ToLower(key.Label), text) || strings.Contains(strings.ToLower(key.Masked()), text)
}

// isDefault reports whether the order is the one that goes without saying.
func (v keyView) isDefault() bool {
	usual := defaultKeyView()
	return v.column.id == usual.column.id && v.direction == usual.direction
}

func (v keyView) address() string {
	query := url.Values{}
	if !v.isDefault() {
		query.Set(paramSort, v.column.id)
		query.Set(paramDirection, v.direction)
	}
	if v.filter != "" {
		query.Set(paramFilter, v.filter)
	}
	return (&url.URL{Path: homePath, RawQuery: query.Encode()}).String()
}

func (v keyView) columns() []templates.APIKeyColumn {
	columns := make([]templates.APIKeyColumn, len(keyColumns))
	for i, column := range keyColumns {
		next := keyView{column: column, direction: column.first, filter: v.filter}
		columns[i] = templates.APIKeyColumn{ID: column.id, Name: column.name}
		if column.id == v.column.id {
			columns[i].Order = map[string]string{ascending: "ascending", descending: "descending"}[v.direction]
			next.direction = map[string]string{ascending: descending, descending: ascending}[v.direction]
		}
		columns[i].Address = next.address()
	}
	return columns
}

func (v keyView) form(shown, count int) templates.APIKeyFilter {
	filter := templates.APIKeyFilter{Text: v.filter, Shown: shown, Count: count}
	if !v.isDefault() {
		filter.Sort, filter.Direction = v.column.id, v.direction
	}
	return filter
}
