package templates

import (
	"strconv"
	"time"
)

// The sizes of the charts, in SVG units.
const (
	sparklineHeight = 16
	sparklineStep   = 2
	hoursHeight     = 32
	hoursStep       = 10
	chartHeight     = 100
	// chartTickEvery is the number of days between two dates below the chart.
	chartTickEvery = 7
)

// Sparkline returns the SVG path of a small chart of daily requests. The height is relative to
// most, so that the charts of a list have the same scale.
func Sparkline(days []int64, most int64) string {
	return lines(days, most, sparklineStep, sparklineHeight)
}

// Hours returns the SVG path of a small chart of hourly requests. The height is relative to most,
// so that the charts of two keys have the same scale.
func Hours(hours []int64, most int64) string { return lines(hours, most, hoursStep, hoursHeight) }

// lines returns an SVG path with one vertical line for each number that is not zero.
func lines(numbers []int64, most int64, step, height int) string {
	// A list has up to 3,000 lines, so they are not formatted by fmt.
	var path []byte
	for i, n := range numbers {
		if n > 0 {
			path = strconv.AppendInt(append(path, 'M'), int64(i*step+step/2), 10)
			path = strconv.AppendInt(append(path, ' '), int64(height), 10)
			path = strconv.AppendInt(append(path, "v-"...), int64(scaled(n, max(n, most), height)), 10)
		}
	}
	return string(path)
}

// UsageChart is a bar chart of accepted and refused requests by day.
type UsageChart struct {
	Days           []UsageDay
	First, Last    string // dates of the first and the last day
	Total, Refused Count
	Busiest        *UsageDay // the day with the most accepted requests; nil if there were none
	Top, Middle    Count     // values of the axis; the bottom is 0
}

// UsageDay is one bar of the chart. Refused requests are on top of the accepted ones.
type UsageDay struct {
	Day                       string // "14 Mar 2026"
	Tick                      string // the date below the bar, "14 Mar" or "Today"; usually empty
	Requests, Refused         Count
	AcceptedY, AcceptedHeight int
	RefusedY, RefusedHeight   int
	Today                     bool
}

// NewUsageChart returns the chart of accepted and refused requests by UTC day, with the oldest day
// first and today last.
func NewUsageChart(requests, refusals []int64, today time.Time) UsageChart {
	chart := UsageChart{Days: make([]UsageDay, len(requests))}
	top := axisTop(requests, refusals)
	chart.Top, chart.Middle = Count(top), Count(top/2)
	for i := range requests {
		chart.Days[i] = newUsageDay(requests[i], refusals[i], top, today.UTC().AddDate(0, 0, i-len(requests)+1), len(requests)-1-i)
		chart.Total += Count(requests[i])
		chart.Refused += Count(refusals[i])
	}
	if len(requests) > 0 {
		chart.First, chart.Last = chart.Days[0].Day, chart.Days[len(requests)-1].Day
	}
	for i := range chart.Days {
		if day := &chart.Days[i]; day.Requests > 0 && (chart.Busiest == nil || day.Requests >= chart.Busiest.Requests) {
			chart.Busiest = day
		}
	}
	return chart
}

func newUsageDay(requests, refusals, top int64, date time.Time, ago int) UsageDay {
	accepted, refused := scaled(requests, top, chartHeight), scaled(refusals, top, chartHeight)
	accepted = min(accepted, chartHeight-refused)
	day := UsageDay{
		Day: date.Format("2 Jan 2006"), Requests: Count(requests), Refused: Count(refusals), Today: ago == 0,
		AcceptedY: chartHeight - accepted, AcceptedHeight: accepted,
		RefusedY: chartHeight - accepted - refused, RefusedHeight: refused,
	}
	switch {
	case ago == 0:
		day.Tick = "Today"
	case ago%chartTickEvery == 0:
		day.Tick = date.Format("2 Jan")
	}
	return day
}

// axisTop returns the value at the top of the axis: an even, round number that is at least the
// highest bar.
func axisTop(requests, refusals []int64) int64 {
	most := int64(0)
	for i := range requests {
		most = max(most, requests[i]+refusals[i])
	}
	for magnitude := int64(1); ; magnitude *= 10 {
		for _, digit := range []int64{2, 4, 6, 8, 10} {
			if top := digit * magnitude; top >= most {
				return top
			}
		}
	}
}

// scaled returns the height of a bar, at least 2 if there were requests, so that it is visible.
func scaled(requests, most int64, height int) int {
	if requests == 0 {
		return 0
	}
	return max(int(float64(requests)/float64(most)*float64(height)), 2)
}
