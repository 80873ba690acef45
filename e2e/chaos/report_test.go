package chaos

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// mostProblems bounds the problems that are kept.
const mostProblems = 20

// report counts what happened.
type report struct {
	mu       sync.Mutex
	faults   map[string]*faultCount
	kinds    []string // of the faults, in the order of their first occurrence
	problems []string // what failed besides the histories: each is a failure of the test
}

// faultCount is what is known of one kind of fault.
type faultCount struct {
	times, tripped int
	springs        bool // it sets traps
	recoveries     []time.Duration
	others         []time.Duration // the longest probe of a portal that was not touched
}

func newReport() *report { return &report{faults: map[string]*faultCount{}} }

// problem records a failure that no history shows.
func (r *report) problem(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.problems) < mostProblems && !slices.Contains(r.problems, text) {
		r.problems = append(r.problems, text)
	}
}

// fault returns the count of a kind. Only the nemesis uses it.
func (r *report) fault(kind string) *faultCount {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.faults[kind]
	if f == nil {
		f = &faultCount{}
		r.faults[kind] = f
		r.kinds = append(r.kinds, kind)
	}
	return f
}

// neverSprung returns the kinds of faults whose traps had no effect.
func (r *report) neverSprung() (kinds []string) {
	for _, kind := range r.kinds {
		if f := r.faults[kind]; f.springs && f.tripped == 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// write writes the tables that the package comment explains.
func (r *report) write(out io.Writer, h *history, v verdicts) {
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	defer func() { _ = table.Flush() }()
	fmt.Fprint(table, "OPERATION\tOUTCOME\tTIMES\n")
	h.mu.Lock()
	steps := make([]step, 0, len(h.counts))
	for s := range h.counts {
		steps = append(steps, s)
	}
	slices.SortFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.operation, b.operation), cmp.Compare(a.outcome, b.outcome))
	})
	for _, s := range steps {
		fmt.Fprintf(table, "%s\t%s\t%d\n", s.operation, s.outcome, h.counts[s])
	}
	keys := len(h.operations)
	h.mu.Unlock()
	fmt.Fprint(table, "\nFAULT\tTIMES\tSPRUNG\tRECOVERY P50\tMAX\tOTHERS MAX\n")
	for _, kind := range r.kinds {
		f := r.faults[kind]
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\t%s\n", kind, f.times, f.tripped,
			quantile(f.recoveries, 0.5), quantile(f.recoveries, 1), quantile(f.others, 1))
	}
	fmt.Fprintf(table, "\nKEYS\tVERDICTS\n%d\t%v\n", keys, v.counts)
}

// quantile returns a quantile of the times, or a dash when there is none.
func quantile(times []time.Duration, q float64) string {
	if len(times) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(times))
	return seconds(sorted[int(q*float64(len(sorted)-1))])
}
