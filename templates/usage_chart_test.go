package templates_test

import (
	"testing"
	"time"

	"portal/templates"
)

func TestSparklineHasALineForEachDayWithRequests(t *testing.T) {
	for want, days := range map[string][]int64{
		"":                            {0, 0, 0},
		"M1 16v-16":                   {7, 0, 0},
		"M3 16v-8M5 16v-16":           {0, 50, 100},
		"M1 16v-2M3 16v-16":           {1, 1 << 60, 0},
		"M1 16v-16M3 16v-16M5 16v-16": {4, 4, 4},
	} {
		if got := templates.Sparkline(days); got != want {
			t.Errorf("Sparkline(%v) = %q, want %q", days, got, want)
		}
	}
	if got := templates.Sparkline(nil); got != "" {
		t.Errorf("Sparkline(nil) = %q", got)
	}
}

func TestUsageChartHasBarsAndTotals(t *testing.T) {
	today := time.Date(2026, 3, 1, 23, 59, 0, 0, time.FixedZone("", 3600))
	chart := templates.NewUsageChart([]int64{0, 1000, 204, 0}, today)
	if chart.First != "26 Feb 2026" || chart.Last != "1 Mar 2026" {
		t.Errorf("first day %q, last day %q", chart.First, chart.Last)
	}
	if chart.Total.String() != "1,204" || chart.Busiest == nil || chart.Busiest.Day != "27 Feb 2026" || chart.Busiest.Requests.String() != "1,000" {
		t.Errorf("total %v, busiest day %+v", chart.Total, chart.Busiest)
	}
	for i, bar := range chart.Bars {
		if bar.Y+bar.Height != chart.Height || bar.X < 0 || bar.X+bar.Width > chart.Width || bar.Today != (i == 3) {
			t.Errorf("bar %d is %+v in a chart of %d by %d", i, bar, chart.Width, chart.Height)
		}
	}
	if full, part, none := chart.Bars[1].Height, chart.Bars[2].Height, chart.Bars[0].Height; full != chart.Height || part < 2 || part >= full || none != 0 {
		t.Errorf("heights %d, %d and %d", full, part, none)
	}
	if unused := templates.NewUsageChart(make([]int64, 30), today); unused.Busiest != nil || unused.Total != 0 {
		t.Errorf("without requests: %+v", unused)
	}
}
