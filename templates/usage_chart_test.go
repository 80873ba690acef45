package templates_test

import (
	"testing"
	"time"

	"portal/models/keys"
	"portal/templates"
)

func TestSparklineScalesToItsMaximum(t *testing.T) {
	for _, test := range []struct {
		days []int64
		want string
	}{
		{nil, ""},
		{[]int64{0, 0, 0}, ""},
		{[]int64{7, 0, 0}, "M0 6V0h1V6h1V6h1V6"},
		{[]int64{0, 50, 50, 100}, "M0 6V6h1V3h1V3h1V0h1V6"},
		{[]int64{1, 1 << 40}, "M0 6V5h1V0h1V6"}, // still visible
	} {
		if got := templates.Sparkline(test.days); got != test.want {
			t.Errorf("Sparkline(%v) = %q, want %q", test.days, got, test.want)
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

func TestUsageChartHasBarsTicksAndTotals(t *testing.T) {
	now := time.Date(2026, 3, 1, 23, 59, 0, 0, time.FixedZone("", 3600))
	requests, refusals := make([]int64, 30), make([]int64, 30)
	requests[20], requests[21], refusals[21], refusals[29] = 204, 1000, 600, 1
	chart := templates.NewUsageChart(keys.KeyUsage{Requests: requests, Refusals: refusals}, keys.Days(30), now)
	if chart.First() != "31 Jan 2026" || chart.Bars[29].Time != "1 Mar 2026" || chart.Span != "30 days" || chart.Unit != "day" {
		t.Errorf("%+v", chart)
	}
	if chart.Total.String() != "1,204" || chart.Refused != 601 || chart.Busiest == nil || chart.Busiest.Time != "21 Feb 2026" {
		t.Errorf("total %v, refused %v, busiest day %+v", chart.Total, chart.Refused, chart.Busiest)
	}
	if chart.Top != 2000 || chart.Middle != 1000 {
		t.Errorf("the axis has %v and %v", chart.Top, chart.Middle)
	}
	ticks := map[int]string{29: "Today", 22: "22 Feb", 15: "15 Feb", 8: "8 Feb", 1: "1 Feb"}
	for i, bar := range chart.Bars {
		if bar.Tick != ticks[i] || bar.Last != (i == 29) {
			t.Errorf("day %d is %+v", i, bar)
		}
		if bar.AcceptedY+bar.AcceptedHeight != 100 || bar.RefusedY+bar.RefusedHeight != bar.AcceptedY || bar.RefusedY < 0 {
			t.Errorf("day %d is %+v", i, bar)
		}
	}
	if bar := chart.Bars[21]; bar.AcceptedHeight != 50 || bar.RefusedHeight != 30 {
		t.Errorf("heights %d and %d", bar.AcceptedHeight, bar.RefusedHeight)
	}
	if bar := chart.Bars[29]; bar.RefusedHeight != 2 || bar.AcceptedHeight != 0 {
		t.Errorf("one refused request has the height %d", bar.RefusedHeight)
	}
	unused := keys.KeyUsage{Requests: make([]int64, 24), Refusals: make([]int64, 24)}
	hours := templates.NewUsageChart(unused, keys.Hours(24), now)
	if hours.Busiest != nil || hours.Top != 2 || hours.First() != "28 Feb 2026, 23:00 UTC" || len(hours.Bars) != 24 {
		t.Fatalf("without requests: %+v", hours)
	}
	if early, last := hours.Bars[5].Tick, hours.Bars[23].Tick; early != "04:00" || last != "Now" {
		t.Errorf("the ticks are %q and %q", early, last)
	}
}

func TestTheAxisEndsAtARoundNumber(t *testing.T) {
	for most, want := range map[int64]templates.Count{0: 2, 1: 2, 2: 2, 3: 4, 9: 10, 11: 20, 61: 70, 100: 100, 101: 150, 1204: 1500, 2450: 2500} {
		chart := templates.NewUsageChart(keys.KeyUsage{Requests: []int64{most}, Refusals: []int64{0}}, keys.Days(1), time.Now())
		if chart.Top != want || chart.Middle*2 != want {
			t.Errorf("%d requests: the axis ends at %v", most, chart.Top)
		}
	}
}
