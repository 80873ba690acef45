package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

const introduction = `# Benchmark

This program measures what authentication costs. It printed this file:

BBBsh
go run ./cmd/bench%s > cmd/bench/README.md
BBB

It starts everything that it needs as processes on loopback, including a private PostgreSQL server, and removes them at
the end. It needs Linux, Go, PostgreSQL's server programs and 3 GB of disk space in TMPDIR, and takes seven minutes. With
-short it takes one, and the figures mean nothing. -only takes some of the parts %s.

- Machine: %d processors, %s, PostgreSQL %s. Client, server and database share
  it, so the ratios mean more than the absolute figures.
- Each figure is the median of %d interleaved rounds of %s. A column *vs.* is the median of the ratios in the rounds.
- CPU is user and system time for a request: of all instances, and of all processes of PostgreSQL. SQLite is a part of
  the server.
- The portal checks every key against the database on every request. Requests that arrive together share one statement.

`

func (b *bench) printIntroduction() {
	_, _ = fmt.Fprintf(os.Stdout, strings.ReplaceAll(introduction, "BBB", "```"), strings.Join(append([]string{""}, os.Args[1:]...), " "), published,
		runtime.NumCPU(), runtime.Version(), b.cluster.version, b.rounds, b.duration)
}

// print prints a Markdown table under a heading and a paragraph.
func (b *bench) print(title, about, header string, rows [][]string) {
	_, _ = fmt.Fprintf(os.Stdout, "## %s\n\n%s\n\n| %s |\n|%s\n", title, about, header, strings.Repeat(" --- |", 1+strings.Count(header, "|")))
	for _, row := range rows {
		_, _ = fmt.Fprintf(os.Stdout, "| %s |\n", strings.Join(row, " | "))
	}
	_, _ = fmt.Fprintln(os.Stdout)
}

// loadHeader returns the columns of loadRow.
func loadHeader(base string) string {
	return "requests/s | vs. " + base + " | p50 | p99 | CPU server | vs. " + base + " | CPU database"
}

// loadRow returns the figures of a load, after these first cells.
func loadRow(r, base rounds, first ...string) []string {
	return append(first,
		thousands(int(r.median(perSecond))), ratio(r.ratio(base, perSecond)),
		milliseconds(r.median(p50)), milliseconds(r.median(p99)),
		microseconds(r.median(serverCPU)), ratio(r.ratio(base, serverCPU)), microseconds(r.mean(databaseCPU)),
	)
}

// target adds a row to the table of targets: the measured figure must be ≤, ≥ or = the bound.
func (b *bench) target(figure string, measured float64, compare string, bound float64) {
	outcome := "not met"
	if map[string]bool{"≤": measured <= bound, "≥": measured >= bound, "=": measured == bound}[compare] {
		outcome = "met"
	}
	b.targets = append(b.targets, []string{figure, compare + " " + number(bound), number(measured), outcome})
}

// number formats a figure, an integer without decimals.
func number(f float64) string {
	if f == math.Trunc(f) && !math.IsInf(f, 0) {
		return thousands(int(f))
	}
	return ratio(f)
}

func ratio(f float64) string { return fmt.Sprintf("%.2f", f) }

// thousands formats a number with commas, such as 10,000,000.
func thousands(n int) string { return message.NewPrinter(language.English).Sprint(n) }

func milliseconds(ns float64) string { return fmt.Sprintf("%.2f ms", ns/float64(time.Millisecond)) }

func microseconds(ns float64) string { return fmt.Sprintf("%.0f µs", ns/float64(time.Microsecond)) }
