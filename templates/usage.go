package templates

import (
	"fmt"
	"math"
	"strconv"
	"time"

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

// The sizes of the charts, in SVG units.
const (
	sparklineHeight = 6
	hoursHeight     = 32
	hoursStep       = 10
	chartHeight     = 100
)

// Sparkline returns the SVG path of a small chart of daily requests, a step for each day. The
// highest step is the top of the chart. If there were no requests, the path is empty.
func Sparkline(days []int64) string {
	most := int64(0)
	for _, n := range days {
		most = max(most, n)
	}
	if most == 0 {
		return ""
	}
	// A list has up to 3,000 steps, so they are not formatted by fmt.
	path := strconv.AppendInt([]byte("M0 "), sparklineHeight, 10)
	for _, n := range days {
		// With requests, the height is at least 1.
		height := int64(math.Ceil(float64(n) / float64(most) * sparklineHeight))
		path = append(strconv.AppendInt(append(path, 'V'), sparklineHeight-height, 10), "h1"...)
	}
	return string(strconv.AppendInt(append(path, 'V'), sparklineHeight, 10))
}

// Hours returns the SVG path of a small chart of hourly requests. The height is relative to most,
// so that the charts of two keys have the same scale.
func Hours(hours []int64, most int64) string {
	path := ""
	for i, n := range hours {
		if n > 0 {
			path += fmt.Sprintf("M%d %dv-%d", i*hoursStep+hoursStep/2, hoursHeight, scaled(n, max(n, most), hoursHeight))
		}
	}
	return path
}

// UsageChart is a bar chart of accepted and refused requests by hour or by day (UTC).
type UsageChart struct {
	Name           string // of the radio buttons, different for each chart of a page
	Unit           string // of time: "hour" or "day"
	Span           string // "24 hours" or "30 days"
	Bars           []UsageBar
	Total, Refused Count
	Busiest        *UsageBar // the bar with the most accepted requests; nil if there were none
	Top, Middle    Count     // values of the axis; the bottom is 0
}

// UsageBar is the requests in an hour or on a day. Refused requests are on top of the accepted
// ones.
type UsageBar struct {
	Time string // "14 Mar 2026" or "14 Mar 2026, 09:00 UTC"
	// The text below the bar, such as "14 Mar" or "Today"; usually empty.
	Tick                      string
	Requests, Refused         Count
	AcceptedY, AcceptedHeight int
	RefusedY, RefusedHeight   int
	Last                      bool // the current hour or day
	Late                      bool // in the second half of the chart
}

// NewUsageChart returns the chart of a usage in a span that ends now, with the oldest bar first.
func NewUsageChart(usage keys.KeyUsage, span keys.UsageSpan, now time.Time) UsageChart {
	starts := span.Starts(now)
	requests, refused := usage.Total()
	chart := UsageChart{
		Name: "bar-" + usage.ID.String(), Unit: span.Unit(), Span: span.String(), Bars: make([]UsageBar, len(starts)),
		Total: Count(requests), Refused: Count(refused),
	}
	top := axisTop(usage.Requests, usage.Refusals)
	chart.Top, chart.Middle = Count(top), Count(top/2)
	for i, start := range starts {
		chart.Bars[i] = newUsageBar(usage.Requests[i], usage.Refusals[i], top)
		chart.Bars[i].Late = i >= len(starts)/2
		chart.setTime(&chart.Bars[i], start, len(starts)-1-i)
	}
	for i := range chart.Bars {
		if bar := &chart.Bars[i]; bar.Requests > 0 && (chart.Busiest == nil || bar.Requests >= chart.Busiest.Requests) {
			chart.Busiest = bar
		}
	}
	return chart
}

// First returns the time of the first bar.
func (c UsageChart) First() string { return c.Bars[0].Time }

func newUsageBar(requests, refusals, top int64) UsageBar {
	accepted, refused := scaled(requests, top, chartHeight), scaled(refusals, top, chartHeight)
	accepted = min(accepted, chartHeight-refused)
	return UsageBar{
		Requests: Count(requests), Refused: Count(refusals),
		AcceptedY: chartHeight - accepted, AcceptedHeight: accepted,
		RefusedY: chartHeight - accepted - refused, RefusedHeight: refused,
	}
}

// setTime names a bar by its start, which is so many bars before the last one.
func (c UsageChart) setTime(bar *UsageBar, start time.Time, before int) {
	dated, tick, last := "2 Jan 2006", "2 Jan", "Today"
	if c.Unit == "hour" {
		dated, tick, last = "2 Jan 2006, 15:04 MST", "15:04", "Now"
	}
	every := max(1, len(c.Bars)/4) // bars between two ticks
	bar.Time, bar.Last = start.Format(dated), before == 0
	switch {
	case bar.Last:
		bar.Tick = last
	case before%every == 0:
		bar.Tick = start.Format(tick)
	}
}

// axisTop returns the value at the top of the axis: the next round, even number that is at least
// the highest bar, such as 2,500 for 2,450.
func axisTop(requests, refusals []int64) int64 {
	most := int64(1)
	for i := range requests {
		most = max(most, requests[i]+refusals[i])
	}
	step := int64(2)
	for magnitude := int64(10); magnitude <= most; magnitude *= 10 {
		step = max(10, magnitude/2)
	}
	return (most + step - 1) / step * step
}

// scaled returns the height of a bar, at least 2 if there were requests, so that it is visible.
func scaled(requests, most int64, height int) int {
	if requests == 0 {
		return 0
	}
	return max(int(float64(requests)/float64(most)*float64(height)), 2)
}

// Count is a number, formatted with thousands separators: "1,204".
type Count int64

func (n Count) String() string {
	digits := strconv.FormatInt(int64(n), 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
