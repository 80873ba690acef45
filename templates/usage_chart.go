package templates

import (
	"fmt"
	"strings"
	"time"
)

// The sizes of what is drawn, in units of the drawing.
const (
	sparklineHeight = 16
	sparklineStep   = 2
	chartHeight     = 72
	chartStep       = 10
	chartBar        = 8
)

// Sparkline returns the path of a small drawing with one line a day, of two units
// in width and up to 16 in height to the scale of the busiest day. Days without
// requests are left out.
func Sparkline(days []int64) string {
	most := busiest(days)
	var path strings.Builder
	for i, requests := range days {
		if requests > 0 {
			fmt.Fprintf(&path, "M%d %dv-%d", i*sparklineStep+1, sparklineHeight, scaled(requests, days[most], sparklineHeight))
		}
	}
	return path.String()
}

// UsageChart is a drawing of requests by the day, and what it shows in words.
type UsageChart struct {
	Width, Height int
	Bars          []UsageBar
	First, Last   string // the days that it begins and ends with
	Total         Count
	Busiest       *UsageBar // nil: there was no request
}

// UsageBar is one day of the drawing.
type UsageBar struct {
	X, Y, Width, Height int
	Day                 string // "14 Mar 2026"
	Requests            Count
	Today               bool
}

// NewUsageChart draws requests by the day (UTC), oldest first and the day of
// today last.
func NewUsageChart(days []int64, today time.Time) UsageChart {
	chart := UsageChart{Width: len(days) * chartStep, Height: chartHeight, Bars: make([]UsageBar, len(days))}
	most := busiest(days)
	for i, requests := range days {
		height := scaled(requests, days[most], chartHeight)
		chart.Bars[i] = UsageBar{
			X: i*chartStep + (chartStep-chartBar)/2, Y: chartHeight - height, Width: chartBar, Height: height,
			Day:      today.UTC().AddDate(0, 0, i-len(days)+1).Format("2 Jan 2006"),
			Requests: Count(requests), Today: i == len(days)-1,
		}
		chart.Total += Count(requests)
	}
	if len(days) > 0 {
		chart.First, chart.Last = chart.Bars[0].Day, chart.Bars[len(days)-1].Day
	}
	if chart.Total > 0 {
		chart.Busiest = &chart.Bars[most]
	}
	return chart
}

// busiest is the day with the most requests, the latest of several.
func busiest(days []int64) int {
	most := 0
	for i, requests := range days {
		if requests >= days[most] {
			most = i
		}
	}
	return most
}

// scaled is the height of one day: what was used at all is to be seen.
func scaled(requests, most int64, height int) int {
	if requests == 0 {
		return 0
	}
	return max(int(float64(requests)/float64(most)*float64(height)), 2)
}
