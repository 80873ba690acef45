package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	recoveryLimit = time.Minute // until the deployment serves again after a fault
	// Until a portal serves while a fault affects another one.
	unaffectedLimit = 20 * time.Second
	// Between two probes of a portal during a fault. On average, a portal lets an account
	// generate a key a second.
	probePause = 300 * time.Millisecond
)

// fault is one kind of fault. It is injected and lasts for a while. Then [nemesis.heal] undoes it.
type fault struct {
	name   string
	lasts  time.Duration // at least, and less than twice as long
	short  bool          // a short run has it too
	portal bool          // it affects only portal at; the others are probed meanwhile
	trap   bool          // it sets a trap in a link
	inject func(n *nemesis, ctx context.Context, at int)
}

var faults = []fault{
	{
		name: "kill a portal", lasts: 300 * time.Millisecond, portal: true, short: true,
		inject: func(n *nemesis, _ context.Context, at int) {
			n.portals[at].killed = true
			n.portals[at].child.Kill()
		},
	},
	{
		name: "freeze a portal", lasts: time.Second, portal: true,
		inject: func(n *nemesis, _ context.Context, at int) {
			_ = n.portals[at].child.Process.Signal(syscall.SIGSTOP)
		},
	},
	{
		name: "cut a portal off", lasts: time.Second, portal: true,
		inject: func(n *nemesis, _ context.Context, at int) {
			set(n.portals[at].links[:], func(l *link) { l.mode = cut })
		},
	},
	{
		name: "silence a portal's links", lasts: 2 * time.Second, portal: true, short: true,
		inject: func(n *nemesis, _ context.Context, at int) {
			set(n.portals[at].links[:], func(l *link) { l.mode = silent })
		},
	},
	{
		name: "lose responses to COMMIT", lasts: time.Second, trap: true, short: true,
		inject: func(n *nemesis, _ context.Context, _ int) {
			set(n.links(), func(l *link) { l.loseResponses = 3 })
		},
	},
	// The server keeps the locks of the stalled transaction. The probe revokes a key.
	{
		name: "stall a revocation at COMMIT", lasts: 3 * time.Second, portal: true, trap: true, short: true,
		inject: func(n *nemesis, ctx context.Context, at int) {
			set(n.portals[at].links[n.primary:n.primary+1], func(l *link) { l.stallCommits = 1 })
			_ = n.probers[at].probe(ctx)
		},
	},
	{
		name: "kill the primary", lasts: 300 * time.Millisecond, short: true,
		inject: func(n *nemesis, _ context.Context, _ int) { n.servers[n.primary].kill() },
	},
	{
		name: "freeze the primary", lasts: time.Second,
		inject: func(n *nemesis, _ context.Context, _ int) {
			n.servers[n.primary].signal(syscall.SIGSTOP)
		},
	},
	{
		name: "cut replication", lasts: 1500 * time.Millisecond, short: true,
		inject: func(n *nemesis, _ context.Context, _ int) {
			mode := []linkMode{cut, silent}[n.rng.IntN(2)]
			set(n.replication[:], func(l *link) { l.mode = mode })
		},
	},
	{
		name: "fail over", lasts: time.Second,
		inject: func(n *nemesis, ctx context.Context, _ int) { n.failOver(ctx) },
	},
	{
		name: "fail over from a frozen primary", lasts: time.Second, short: true,
		inject: func(n *nemesis, ctx context.Context, _ int) {
			n.servers[n.primary].signal(syscall.SIGSTOP)
			_ = sleep(ctx, 2*time.Second)
			n.failOver(ctx)
		},
	},
	{
		name: "restore a backup", lasts: time.Second, short: true,
		inject: func(n *nemesis, ctx context.Context, _ int) {
			if err := n.restore(ctx); err != nil {
				n.report.failure("%v", err)
			}
		},
	},
	// The primary confirms no commit while the replication is silent, but reads return the
	// changes.
	{
		name: "fail over from an isolated primary", lasts: time.Second,
		inject: func(n *nemesis, ctx context.Context, _ int) {
			n.report.lossy = true
			set(n.replication[:], func(l *link) { l.mode = silent })
			_ = sleep(ctx, 4*time.Second)
			n.failOver(ctx)
		},
	},
}

// nemesis injects faults into a deployment.
type nemesis struct {
	*deployment

	rng        *rand.Rand
	report     *report
	probers    []*prober
	logf       func(format string, args ...any)
	failedOver bool // the standby must be made again
}

// run injects all faults in random order, repeatedly until ctx ends. A short run injects some of
// them once. It returns an error if the deployment does not recover from a fault.
func (n *nemesis) run(ctx context.Context, full bool) error {
	for {
		for _, i := range n.rng.Perm(len(faults)) {
			f := faults[i]
			if !f.short && !full {
				continue
			}
			if sleep(ctx, 300*time.Millisecond) != nil {
				return nil
			}
			// The fault is healed even if ctx ends.
			if err := n.runFault(context.WithoutCancel(ctx), f); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		if !full {
			return nil
		}
	}
}

// runFault injects a fault, heals it, and waits until every portal serves.
func (n *nemesis) runFault(ctx context.Context, f fault) error {
	at := n.rng.IntN(portals)
	f.inject(n, ctx, at)
	end := time.Now().Add(f.lasts + time.Duration(n.rng.Int64N(int64(f.lasts))))
	if f.portal {
		n.probeUnaffected(ctx, f, at, end)
	}
	_ = sleep(ctx, time.Until(end))
	if f.trap && !n.awaitTrap(ctx) {
		n.report.failure("%s: no trap was triggered", f.name)
	}
	healed := time.Now()
	if err := n.heal(ctx); err != nil {
		return err
	}
	if err := n.recover(ctx); err != nil {
		return err
	}
	n.logf("%s: portal %d, recovered in %s", f.name, at, seconds(time.Since(healed)))
	return nil
}

// awaitTrap waits until a trap was triggered, at most for a minute.
func (n *nemesis) awaitTrap(ctx context.Context) (triggered bool) {
	end := time.Now().Add(time.Minute)
	for ; !triggered && time.Now().Before(end); _ = sleep(ctx, 50*time.Millisecond) {
		for _, l := range n.links() {
			triggered = l.takeTriggered() || triggered
		}
	}
	return triggered
}

// recover waits until every portal serves.
func (n *nemesis) recover(ctx context.Context) error {
	errs := make([]error, len(n.probers))
	var all sync.WaitGroup
	for i, p := range n.probers {
		all.Go(func() { errs[i] = retry(ctx, recoveryLimit, p.probe) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the portals do not serve %s after the end of the fault: %w", recoveryLimit, err)
	}
	return nil
}

// probeUnaffected probes the portals other than at until end, each at least once.
func (n *nemesis) probeUnaffected(ctx context.Context, f fault, at int, end time.Time) {
	for first := true; first || time.Now().Before(end); first = false {
		for i, p := range n.probers {
			if i == at {
				continue
			}
			if err := retry(ctx, unaffectedLimit, p.probe); err != nil {
				n.report.failure("%s: an unaffected portal does not serve within %s: %v",
					f.name, unaffectedLimit, err)
			}
		}
		_ = sleep(ctx, probePause)
	}
}

// heal undoes every fault. It starts the programs that do not run, a lost primary as a new standby.
func (n *nemesis) heal(ctx context.Context) error {
	for _, l := range append(n.links(), n.replication[:]...) {
		l.heal()
	}
	for i, p := range n.portals {
		_ = p.child.Process.Signal(syscall.SIGCONT) // fails if the portal was killed
		if running(p.child) {
			continue
		}
		if !p.killed {
			n.report.failure("portal %d exited by itself\n%s", i, lastLines(p.log.Name()))
		}
		if err := p.start(); err != nil {
			return err
		}
	}
	for _, s := range n.servers {
		s.signal(syscall.SIGCONT)
	}
	if n.failedOver {
		n.failedOver = false
		return n.makeStandby(ctx)
	}
	for _, s := range n.servers {
		if s.alive() {
			continue
		}
		if err := s.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// links returns the links of all portals.
func (n *nemesis) links() (links []*link) {
	for _, p := range n.portals {
		links = append(links, p.links[:]...)
	}
	return links
}

// set changes links.
func set(links []*link, change func(*link)) {
	for _, l := range links {
		l.set(func() { change(l) })
	}
}

// failOver kills the primary and promotes the standby.
func (n *nemesis) failOver(ctx context.Context) {
	n.servers[n.primary].kill()
	n.primary, n.failedOver = 1-n.primary, true
	if err := n.servers[n.primary].promote(ctx); err != nil {
		n.report.failure("%v", err)
	}
}

// copyOfKeys matches the data of the table of keys in a dump.
var copyOfKeys = regexp.MustCompile(`(?s)\nCOPY \S*api_keys \(([^)]*)\) FROM stdin;(.*?)\n\\\.\n`)

// restore backs the database up, waits while clients generate and revoke keys, and restores the
// backup.
func (n *nemesis) restore(ctx context.Context) error {
	file := filepath.Join(n.dir, fmt.Sprintf("backup-%d", n.report.now()))
	if err := n.command(ctx, "backup", file); err != nil {
		return err
	}
	dump, err := exec.CommandContext(ctx, filepath.Join(n.servers[n.primary].bin, "pg_restore"), "--data-only", "--file=-", file).Output()
	if err != nil {
		return err
	}
	keys := copyOfKeys.FindSubmatch(dump)
	if keys == nil {
		return errors.New("the backup has no table of keys")
	}
	r := restored{labels: map[string]bool{}}
	column := slices.Index(strings.Split(string(keys[1]), ", "), "label")
	for row := range strings.Lines(strings.TrimPrefix(string(keys[2]), "\n")) {
		r.labels[strings.Split(row, "\t")[column]] = true
	}
	_ = sleep(ctx, 2*time.Second)
	r.call = n.report.now()
	err = n.command(ctx, "restore", file)
	r.returned = n.report.now()
	if err == nil {
		n.report.addRestore(r)
	}
	return err
}
