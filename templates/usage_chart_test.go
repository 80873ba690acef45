package templates_test

import (
	"testing"
	"time"

	"portal/templates"
)

func TestSparklineScalesToTheGivenMaximum(t *testing.T) {
	for _, test := range []struct {
		days []int64
		most int64
		want string
	}{
		{nil, 0, ""},
		{[]int64{0, 0, 0}, 9, ""},
		{[]int64{7, 0, 0}, 7, "M1 16v-16"},
		{[]int64{7, 0, 0}, 14, "M1 16v-8"},
		{[]int64{0, 50, 100}, 100, "M3 16v-8M5 16v-16"},
		{[]int64{1}, 1 << 60, "M1 16v-2"}, // still visible
		{[]int64{4}, 0, "M1 16v-16"},
	} {
		if got := templates.Sparkline(test.days, test.most); got != test.want {
			t.Errorf("Sparkline(%v, %d) = %q, want %q", test.days, test.most, got, test.want)
		}
	}
}

func TestHoursScalesToTheGivenMaximum(t *testing.T) {
	for _, test := range []struct {
		requests []int64
		most     int64
		want     string
	}{
		{nil, 0, ""},
		{[]int64{0, 0}, 10, ""},
		{[]int64{5, 0, 10}, 10, "M5 32v-16M25 32v-32"},
		{[]int64{1}, 1_000_000, "M5 32v-2"}, // still visible
		{[]int64{7}, 0, "M5 32v-32"},
	} {
		if got := templates.Hours(test.requests, test.most); got != test.want {
			t.Errorf("Hours(%v, %d) = %q, want %q", test.requests, test.most, got, test.want)
		}
	}
}

func TestUsageChartHasDaysTicksAndTotals(t *testing.T) {
	today := time.Date(2026, 3, 1, 23, 59, 0, 0, time.FixedZone("", 3600))
	requests, refusals := make([]int64, 30), make([]int64, 30)
	requests[20], requests[21], refusals[21], refusals[29] = 204, 1000, 600, 1
	chart := templates.NewUsageChart(requests, refusals, today)
	if chart.First != "31 Jan 2026" || chart.Last != "1 Mar 2026" {
		t.Errorf("first day %q, last day %q", chart.First, chart.Last)
	}
	if chart.Total.String() != "1,204" || chart.Refused != 601 || chart.Busiest == nil || chart.Busiest.Day != "21 Feb 2026" {
		t.Errorf("total %v, refused %v, busiest day %+v", chart.Total, chart.Refused, chart.Busiest)
	}
	if chart.Top != 2000 || chart.Middle != 1000 {
		t.Errorf("the axis has %v and %v", chart.Top, chart.Middle)
	}
	ticks := map[int]string{29: "Today", 22: "22 Feb", 15: "15 Feb", 8: "8 Feb", 1: "1 Feb"}
	for i, day := range chart.Days {
		if day.Tick != ticks[i] || day.Today != (i == 29) {
			t.Errorf("day %d is %+v", i, day)
		}
		if day.AcceptedY+day.AcceptedHeight != 100 || day.RefusedY+day.RefusedHeight != day.AcceptedY || day.RefusedY < 0 {
			t.Errorf("the bars of day %d are %+v", i, day)
		}
	}
	if day := chart.Days[21]; day.AcceptedHeight != 50 || day.RefusedHeight != 30 {
		t.Errorf("heights %d and %d", day.AcceptedHeight, day.RefusedHeight)
	}
	if day := chart.Days[29]; day.RefusedHeight != 2 || day.AcceptedHeight != 0 {
		t.Errorf("one refused request has the height %d", day.RefusedHeight)
	}
	if unused := templates.NewUsageChart(make([]int64, 30), make([]int64, 30), today); unused.Busiest != nil || unused.Top != 2 {
		t.Errorf("without requests: %+v", unused)
	}
}

func TestTheAxisEndsAtARoundNumber(t *testing.T) {
	for most, want := range map[int64]templates.Count{0: 2, 1: 2, 2: 2, 3: 4, 9: 10, 11: 20, 61: 80, 100: 100, 101: 200, 1204: 2000} {
		chart := templates.NewUsageChart([]int64{most}, []int64{0}, time.Now())
		if chart.Top != want || chart.Middle*2 != want {
			t.Errorf("%d requests: the axis ends at %v", most, chart.Top)
		}
	}
}
