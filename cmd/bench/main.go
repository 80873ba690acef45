// Command bench measures what authentication costs, and prints its README. It starts everything
// that it needs as processes on loopback, including a private PostgreSQL server, and removes them
// at the end. No other database is touched.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

type bench struct {
	rounds   int           // of each load
	duration time.Duration // of each load in each round, without the warm-up
	large    int           // number of keys

	dir     string // temporary
	portal  string // path of the measured program
	cluster *cluster
	servers []*server // that run
	targets [][]string
}

// published are the names of the parts in the README, in their order. The keys come last, because
// PostgreSQL vacuums their tables afterwards, which would count for the next part.
const published = "key,instances,pages,keys"

func main() {
	// SIGPIPE too: the started processes must stop when the reader of the results exits.
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	// The first signal stops the started processes; a second one ends this process at once.
	context.AfterFunc(ctx, restore)
	b := &bench{}
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of each measurement; the result is their median")
	flag.DurationVar(&b.duration, "duration", 1500*time.Millisecond, "length of a measurement in one round")
	short := flag.Bool("short", false, "1 round of 500ms, and small tables; the figures mean nothing")
	only := flag.String("only", published, "the parts to measure")
	flag.Parse()
	if b.large = 200_000; *short {
		b.rounds, b.duration, b.large = 1, 500*time.Millisecond, 10_000
	}
	run := func(ctx context.Context) error { return b.run(ctx, strings.Split(*only, ",")) }
	if flag.Arg(0) == plainCommand {
		run = servePlain
	}
	if err := run(ctx); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context, parts []string) (err error) {
	measure := map[string]func(context.Context) error{
		"key": b.oneKey, "keys": b.keysInUse, "pages": b.pages, "instances": b.instances,
	}
	if slices.ContainsFunc(parts, func(name string) bool { return measure[name] == nil }) {
		return fmt.Errorf("-only takes some of %s", published)
	}
	if b.dir, err = os.MkdirTemp("", "portal-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	progress("build the portal and start PostgreSQL")
	if err := b.buildPortal(ctx); err != nil {
		return err
	}
	if b.cluster, err = startCluster(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.cluster.Stop()) }() //nolint:contextcheck // it has its own time limit
	b.printIntroduction()
	for _, name := range parts {
		progress("%s", name)
		err := measure[name](ctx)
		b.stopServers()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	b.print("Targets", "Computed from the tables above.", "figure | target | measured |", b.targets)
	return nil
}

// progress writes a line with the time to standard error.
func progress(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
