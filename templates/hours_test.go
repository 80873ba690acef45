package templates_test

import (
	"testing"

	"portal/templates"
)

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
