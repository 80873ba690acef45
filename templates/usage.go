package templates

import (
	"portal/models/keys"
)

// UsageChoice has the periods that a page of usage chooses from, and its file.
type UsageChoice struct {
	Periods []UsagePeriod
	Export  string // URL of the CSV file
}

// UsagePage is /usage.
type UsagePage struct {
	UsageChoice

	Chart   UsageChart
	Columns []Column // of the table of keys

	Keys           []UsageRow // empty if the account had no keys in the period
	Keyless        bool       // it has none at all
	Total, Refused Count
	Limited        bool // there are more keys
	Voice          bool // the table has minutes
	Minutes        Count
}

// MaxKeys is the number of keys that the page counts if it is limited.
func (UsagePage) MaxKeys() Count { return keys.MaxUsageKeys }

func (UsagePage) screen() screen { return screen{file: "usage/index.html", section: SectionUsage} }

func (UsagePage) fragment() string { return "usage" }

// UsagePeriod is a link to another period.
type UsagePeriod struct {
	Name    string
	URL     string
	Current bool
}

// UsageRow is the usage of a key.
type UsageRow struct {
	keys.Key

	URL               string // of the chart of this key
	Requests, Refused Count
	Minutes           Count // of calls
	Expired           bool
}

// Column is the header of a column by which a table can be sorted.
type Column struct {
	ID, Name string
	URL      string // sorts by the column, or reverses the order
	Order    string // "ascending" or "descending", for aria-sort; empty: another column sorts
}
