package portal

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"

	"portal/models/agents"
	"portal/models/keys"
	"portal/templates"
)

// tableColumn is a column by which a table can be sorted.
type tableColumn[T any] struct {
	id, name   string
	rank       func(T) string
	descending bool // the first choice; the second one is the reverse
}

// sortTable sorts rows by the column that order names, reversed after a "-", and returns the
// headers of the columns. If there is no such column, initial sorts. Rows that are equal keep their
// order.
func sortTable[T any](rows []T, columns []tableColumn[T], order, initial string, address func(order string) string) []templates.Column {
	id, reversed := strings.CutPrefix(order, "-")
	if !slices.ContainsFunc(columns, func(column tableColumn[T]) bool { return column.id == id }) {
		id, reversed = initial, false
	}
	headers := make([]templates.Column, len(columns))
	for i, column := range columns {
		headers[i] = templates.Column{ID: column.id, Name: column.name, URL: address(column.id)}
		if column.id != id {
			continue
		}
		descending := column.descending != reversed
		headers[i].Order = "ascending"
		if descending {
			headers[i].Order = "descending"
		}
		if !reversed {
			headers[i].URL = address("-" + column.id)
		}
		sortByRank(rows, column.rank, descending)
	}
	return headers
}

// sortByRank sorts rows by a text that it makes once for each row.
func sortByRank[T any](rows []T, rank func(T) string, descending bool) {
	type ranked struct {
		row  T
		rank string
	}
	sorted := make([]ranked, len(rows))
	for i, row := range rows {
		sorted[i] = ranked{row, rank(row)}
	}
	slices.SortStableFunc(sorted, func(a, b ranked) int {
		if descending {
			a, b = b, a
		}
		return strings.Compare(a.rank, b.rank)
	})
	for i := range sorted {
		rows[i] = sorted[i].row
	}
}

// paramSort is the order of the list in its query string.
const paramSort = "sort"

func numberRank(n int64) string { return fmt.Sprintf("%020d", n) }

var digits = regexp.MustCompile(`[0-9]+`)

const longestNumber = 100 // digits, because a label has at most 100 characters

func labelRank(key keys.KeyUsage) string { return nameRank(key.Label) }

// sortAgents sorts the agents of a page. SQLite has them in the order of the ASCII letters alone.
func sortAgents(page []agents.Agent) {
	sortByRank(page, func(agent agents.Agent) string { return nameRank(agent.Name) }, false)
}

// nameRank ignores case and accents. Numbers have leading zeros, so that "Key 2" is before "key
// 10". The tables of package collate would add 1.3 MB to the program.
func nameRank(name string) string {
	// The chain is not safe for concurrent use, so every call makes its own.
	// This transformation never fails.
	plain, _, _ := transform.String(transform.Chain(norm.NFD, runes.Remove(runes.In(unicode.Mn))), name)
	return digits.ReplaceAllStringFunc(strings.ToLower(plain), func(number string) string {
		return strings.Repeat("0", max(0, longestNumber-len(number))) + number
	})
}
