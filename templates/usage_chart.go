package templates

import (
	"fmt"
	"strings"
	"time"
)

// The sizes of the charts, in SVG units.
const (
	sparklineHeight = 16
	sparklineStep   = 2
	chartHeight     = 72
	chartStep       = 10
	chartBar        = 8
)

// Sparkline returns the SVG path of a small chart with one vertical line for each day that has
// requests. The height is relative to the busiest day.
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

// UsageChart is a bar chart of requests by day.
type UsageChart struct {
	Width, Height int
	Bars          []UsageBar
	First, Last   string // dates of the first and the last bar
	Total         Count
	Busiest       *UsageBar // nil if there were no requests
}

// UsageBar is one day of the chart.
type UsageBar struct {
	X, Y, Width, Height int
	Day                 string // "14 Mar 2026"
	Requests            Count
	Today               bool
}

// NewUsageChart returns the chart of requests by UTC day, with the oldest day first and today last.
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

// busiest returns the index of the day with the most requests, the latest one if there are several.
func busiest(days []int64) int {
	most := 0
	for i, requests := range days {
		if requests >= days[most] {
			most = i
		}
	}
	return most
}

// scaled returns the height of a bar, at least 2 if there were requests, so that it is visible.
func scaled(requests, most int64, height int) int {
	if requests == 0 {
		return 0
	}
	return max(int(float64(requests)/float64(most)*float64(height)), 2)
}
