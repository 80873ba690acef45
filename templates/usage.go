package templates

import (
	"time"

	"portal/models"
)

// UsagePage is /usage.
type UsagePage struct {
	Periods []UsagePeriod
	Chart   UsageChart
	Key     *ChartedKey // the key of the chart; nil: all keys
	All     string      // URL of the chart of all keys
	Export  string      // URL of the CSV file
	Sources []KeySource // of the key of the chart

	Refusals  []KeyRefusal  // of the key of the chart
	Exchanges []ExchangeRow // of the key of the chart, if it has no secret

	Columns []Column // of the table of keys, or of the sources of the key

	Keys           []UsageRow // empty if the account had no keys in the period
	Keyless        bool       // it has none at all
	Total, Refused Count
	Limited        bool // there are more keys
	Voice          bool // the table has minutes
	Minutes        Count
	CallLimits     string // of the key of the chart, such as "3 of 5 calls"; empty: none
}

// MaxKeys is the number of keys that the page counts if it is limited.
func (UsagePage) MaxKeys() Count { return models.MaxUsageKeys }

func (UsagePage) screen() screen { return screen{file: "usage/index.html", section: SectionUsage} }

func (UsagePage) fragment() string { return "usage" }

// ChartedKey is the key of the chart.
type ChartedKey struct {
	models.Key

	Expired  bool
	LastUsed *Moment // nil if never used
	Created  Moment
	Creator  string // email of the user who generated the key; empty if unknown or the only one
}

// KeySource is where requests with a key come from. Without an address, it is all others.
type KeySource struct {
	Address, Client     string
	FirstSeen, LastSeen Moment
	Requests            Count
	Refused             bool // by the networks in a form
	Perhaps             bool // because the networks have only some of the source's addresses
}

// MaxRefusals is how many refused requests the page has.
func (UsagePage) MaxRefusals() int { return models.MaxKeyRefusals }

// KeyRefusal is a refused request.
type KeyRefusal struct {
	models.KeyRefusal

	Time Moment
}

// NewKeyRefusals formats refused requests.
func NewKeyRefusals(refusals []models.KeyRefusal, now time.Time) []KeyRefusal {
	rows := make([]KeyRefusal, len(refusals))
	for i, one := range refusals {
		rows[i] = KeyRefusal{KeyRefusal: one, Time: NewMoment(one.At, now)}
	}
	return rows
}

// NewKeySources formats sources.
func NewKeySources(sources []models.KeySource, now time.Time) []KeySource {
	rows := make([]KeySource, len(sources))
	for i, one := range sources {
		rows[i] = KeySource{
			Address: one.Address, Client: one.Client, Requests: Count(one.Requests),
			FirstSeen: NewMoment(one.FirstSeen, now), LastSeen: NewMoment(one.LastSeen, now),
		}
	}
	return rows
}

// UsagePeriod is a link to another period.
type UsagePeriod struct {
	Name    string
	URL     string
	Current bool
}

// UsageRow is the usage of a key.
type UsageRow struct {
	models.Key

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
