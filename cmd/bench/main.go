// Command bench measures what authentication costs, and prints the figures as Markdown. It starts
// everything it needs as processes on loopback, including a private PostgreSQL server, and removes
// them at the end. It never touches another database.
//
// Client, server and database share the machine, so the ratios mean more than the absolute figures.
// It needs Linux, the go command, PostgreSQL's server programs, nginx, and 6 GB of disk space in
// TMPDIR.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == plainCommand {
		os.Exit(report(os.Stderr, servePlain(os.Args[2], os.Args[3])))
	}
	// SIGPIPE too: the started processes must stop when the reader of the results exits.
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	// The first signal stops the started processes; a second one ends this process at once.
	context.AfterFunc(ctx, restore)
	os.Exit(report(os.Stderr, run(ctx, os.Args[1:], os.Stdout, os.Stderr)))
}

func report(w io.Writer, err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	_, _ = fmt.Fprintln(w, "bench:", err)
	return 1
}

// options are the parsed options of the command line.
type options struct {
	rounds      int           // of each load
	duration    time.Duration // of each load in each round, without the warm-up
	connections []int         // numbers of connections for the part compare
	sizes       []int         // numbers of keys in the table for the part growth
	inUse       []int         // numbers of keys in use for the part distinct
	activities  int           // in the table for the part pages
	soak        time.Duration // length of the part soak
	revocations int
	only        []string // names of parts; empty: all
}

// part is one of the measurements that -only can choose.
type part struct {
	name string
	run  func(context.Context, *bench) error
}

func parts() []part {
	return []part{
		{"compare", compare},
		{"lone", loneRequest},
		{"keys", manyKeys},
		{"unknown", unknownKeys},
		{"instances", fourInstances},
		{"authorize", authorize},
		{"revocation", confirmedRevocations},
		{"growth", growth},
		{"distinct", distinctKeys},
		{"pages", pagesUnderLoad},
		{"soak", soak},
	}
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	o := options{connections: []int{1, busy, 256}, sizes: []int{1_000, 1_000_000, 10_000_000}, inUse: []int{1, 10_000, 100_000, 1_000_000}, activities: 1_000_000}
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.rounds, "rounds", 7, "rounds of each measurement; the result is their median")
	flags.DurationVar(&o.duration, "duration", 4*time.Second, "length of a measurement in one round")
	flags.IntVar(&o.revocations, "revocations", 300, "number of revocations under load")
	flags.DurationVar(&o.soak, "soak", 10*time.Minute, "length of the soak")
	only := flags.String("only", "", "measure only these parts: some of "+strings.Join(names, ","))
	quick := flags.Bool("quick", false, "a smoke run of a minute with 1 round of 500ms and small tables; its figures mean nothing")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *quick {
		o.rounds, o.duration, o.revocations = 1, 500*time.Millisecond, 20
		o.sizes = []int{1_000, 10_000, 100_000}
		o.inUse, o.activities, o.soak = []int{1, 1_000, 10_000}, 10_000, 4*time.Second
	}
	if o.rounds < 1 || o.duration < 100*time.Millisecond || o.revocations < 1 {
		return o, errors.New("-rounds and -revocations must be at least 1, and -duration at least 100ms")
	}
	if o.soak < time.Second {
		return o, errors.New("-soak must be at least 1s")
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("unknown part %q; the parts are %s", name, strings.Join(names, ", "))
		}
	}
	return o, nil
}

// bench is one run.
type bench struct {
	options

	dir      string // temporary
	programs programs
	cluster  *cluster
	out      io.Writer // for results
	log      io.Writer // for progress
	verdicts []verdict
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	b := &bench{options: o, out: stdout, log: stderr}
	if b.dir, err = os.MkdirTemp("", "portal-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	b.progress("build the portal with and without a store")
	if b.programs, err = buildPrograms(ctx, b.dir); err != nil {
		return err
	}
	b.progress("start PostgreSQL")
	if b.cluster, err = startCluster(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.cluster.stop(ctx)) }()

	b.describeMachine()
	for _, p := range parts() {
		if len(b.only) > 0 && !slices.Contains(b.only, p.name) {
			continue
		}
		b.progress("%s", p.name)
		if err := p.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	b.printVerdicts()
	return nil
}

// progress writes a line with the time to the log.
func (b *bench) progress(format string, args ...any) {
	_, _ = fmt.Fprintf(b.log, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
