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

// maxFailures is the maximum number of reported failures.
const maxFailures = 20

// report counts the faults and collects the failures of a run.
type report struct {
	mu       sync.Mutex
	faults   map[string]*faultCount
	kinds    []string // of faults, in the order of their first occurrence
	failures []string // failures outside the histories
}

// faultCount holds the counts and times of one kind of fault.
type faultCount struct {
	times, triggered int
	trap             bool // the fault sets a trap
	recoveries       []time.Duration
	unaffected       []time.Duration // per fault, the longest probe of an unaffected portal
}

func newReport() *report { return &report{faults: map[string]*faultCount{}} }

// failure records a failure outside the histories.
func (r *report) failure(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) < maxFailures && !slices.Contains(r.failures, text) {
		r.failures = append(r.failures, text)
	}
}

// fault returns the counts of a kind of fault. Only the nemesis changes them.
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

// neverTriggered returns the kinds of faults whose traps were never triggered.
func (r *report) neverTriggered() (kinds []string) {
	for _, kind := range r.kinds {
		if f := r.faults[kind]; f.trap && f.triggered == 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// write writes the tables. The package comment explains their columns.
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
	fmt.Fprint(table, "\nFAULT\tTIMES\tTRIGGERED\tRECOVERY P50\tMAX\tUNAFFECTED MAX\n")
	for _, kind := range r.kinds {
		f := r.faults[kind]
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\t%s\n", kind, f.times, f.triggered,
			quantile(f.recoveries, 0.5), quantile(f.recoveries, 1), quantile(f.unaffected, 1))
	}
	fmt.Fprintf(table, "\nKEYS\tVERDICTS\n%d\t%v\n", keys, v.counts)
}

// quantile returns the quantile q of the times as text, or a dash if there are none.
func quantile(times []time.Duration, q float64) string {
	if len(times) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(times))
	return seconds(sorted[int(q*float64(len(sorted)-1))])
}
