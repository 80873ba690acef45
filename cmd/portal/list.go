package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"portal/models/value"
)

// listPage is the number of entries that one query reads.
const listPage = 1000

// listFlags are the flags of every command that prints a list.
type listFlags struct {
	JSON bool `name:"json" help:"Print one JSON array."`
}

// listing describes a list: its pages hold values of type T, and its rows have type R.
type listing[T, R any] struct {
	fetch  func(value.Page) (value.List[T], error)
	keep   func(T) bool   // nil: all
	row    func(T) R      // as JSON
	header string         // the names of the columns, separated by tabs
	line   func(R) string // the columns of a row, separated by tabs
}

// write prints all pages, as aligned columns or as a JSON array.
func (l listing[T, R]) write(w io.Writer, flags listFlags) error {
	rows := []R{}
	for page := (value.Page{Limit: listPage}); ; {
		list, err := l.fetch(page)
		if err != nil {
			return err
		}
		for _, item := range list.Items {
			if l.keep == nil || l.keep(item) {
				rows = append(rows, l.row(item))
			}
		}
		if list.Next == uuid.Nil {
			break
		}
		page.After = list.Next
	}
	if flags.JSON {
		return writeJSON(w, rows)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, l.header)
	for _, row := range rows {
		_, _ = fmt.Fprintln(table, l.line(row))
	}
	return table.Flush() // also returns the errors of the lines
}

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// moment formats a time for a table, and nil as "-".
func moment(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.Format(time.RFC3339)
}

func state(disabled bool) string {
	if disabled {
		return "disabled"
	}
	return "enabled"
}
