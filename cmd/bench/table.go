package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// table is a Markdown table under a heading.
type table struct {
	title  string
	about  string // what is measured
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// addLoad adds a row with the figures of a load: names, requests/s, their ratio to base, p50, p99,
// extra, CPU of the servers and CPU of the database.
func (t *table) addLoad(names []string, r, base rounds, extra ...string) {
	databaseCPU := "–"
	if ns := r.median((*measurement).databaseCPUPerRequest); ns > 0 {
		databaseCPU = microseconds(ns)
	}
	t.add(slices.Concat(names, []string{
		perSecond(r.median((*measurement).rate)), ratio(r.ratio(base, (*measurement).rate)),
		milliseconds(r.median((*measurement).p50)), milliseconds(r.median((*measurement).p99)),
	}, extra, []string{microseconds(r.median((*measurement).serverCPUPerRequest)), databaseCPU})...)
}

func (b *bench) print(t table) {
	var text strings.Builder
	fmt.Fprintf(&text, "### %s\n\n%s\n\n", t.title, t.about)
	fmt.Fprintf(&text, "| %s |\n|%s\n", strings.Join(t.header, " | "), strings.Repeat(" --- |", len(t.header)))
	for _, row := range t.rows {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(row, " | "))
	}
	_, _ = fmt.Fprintln(b.out, text.String())
}

func (b *bench) describeMachine() {
	_, _ = fmt.Fprintf(b.out, "%d processors (%s), %s, PostgreSQL %s; client, server and database on the same machine; "+
		"medians of %d interleaved rounds of %s each.\n\n",
		runtime.NumCPU(), processorModel(), runtime.Version(), b.cluster.version, b.rounds, b.duration)
}

// verdict is a target and the measured figure.
type verdict struct {
	figure, wanted, measured string
	met                      bool
}

// atLeast adds the verdict on a ratio that must not be below a bound.
func (b *bench) atLeast(figure string, measured, bound float64) {
	b.verdicts = append(b.verdicts, verdict{figure, fmt.Sprintf("≥ %.2f", bound), ratio(measured), measured >= bound})
}

// atMost adds the verdict on a ratio that must not be above a bound.
func (b *bench) atMost(figure string, measured, bound float64) {
	b.verdicts = append(b.verdicts, verdict{figure, fmt.Sprintf("≤ %.2f", bound), ratio(measured), measured <= bound})
}

func (b *bench) printVerdicts() {
	t := table{title: "Targets", about: "Computed from the tables above.", header: []string{"figure", "wanted", "measured", ""}}
	for _, v := range b.verdicts {
		outcome := "not met"
		if v.met {
			outcome = "met"
		}
		t.add(v.figure, v.wanted, v.measured, outcome)
	}
	b.print(t)
}

func ratio(r float64) string { return fmt.Sprintf("%.2f", r) }

func perSecond(rate float64) string { return thousands(int(math.Round(rate))) }

// thousands formats a number with commas, such as 10,000,000.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// milliseconds formats nanoseconds as milliseconds.
func milliseconds(ns float64) string { return fmt.Sprintf("%.2f ms", ns/float64(time.Millisecond)) }

// microseconds formats nanoseconds as microseconds.
func microseconds(ns float64) string { return fmt.Sprintf("%.0f µs", ns/float64(time.Microsecond)) }
