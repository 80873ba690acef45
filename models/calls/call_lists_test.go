package calls

import (
	"slices"
	"testing"
	"time"
)

// Lists that follow each other quickly end a call only when its room has been missing for nine
// seconds.
func TestQuickListsEndACallLater(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		gaps []time.Duration // before each list without the room
		want int
	}{
		{[]time.Duration{5 * time.Second, 5 * time.Second}, 2},
		{[]time.Duration{time.Second, 4 * time.Second}, 2},
		{[]time.Duration{5 * time.Second, time.Second, time.Second}, 0},
		{[]time.Duration{5 * time.Second, 2 * time.Second, 2 * time.Second}, 3},
		{slices.Repeat([]time.Duration{time.Second}, 20), 9},
	} {
		if got := endedAfter(test.gaps...); got != test.want {
			t.Errorf("lists after %v: the call ends after %d of them, want %d", test.gaps, got, test.want)
		}
	}
}

// endedAfter returns after how many lists without its room a call ends, 0: after none of them. Each
// list follows the one before it, or one with the room, after a gap.
func endedAfter(gaps ...time.Duration) (lists int) {
	listed := time.Now()
	l, call := callList{at: listed}, Call{StartedAt: listed.Add(-time.Hour)}
	for i, gap := range gaps {
		before := listed
		l.round.ListedAt, l.at = &before, listed.Add(gap)
		l.see(&call, false, false)
		if !call.Open() {
			return i + 1
		}
		listed = l.at
	}
	return 0
}
