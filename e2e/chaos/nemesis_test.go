package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// recoveryLimit is how long the deployment may take to serve again after a fault.
const recoveryLimit = time.Minute

// unaffectedLimit is how long a portal may take to serve while a fault affects another portal.
const unaffectedLimit = 20 * time.Second

// isolated is the fault that can undo unconfirmed changes after reads have returned them.
const isolated = "fail over from an isolated primary"

// fault is one kind of fault. It is injected, lasts for a while, and is healed.
type fault struct {
	name   string
	lasts  time.Duration // at least, and less than twice as long
	portal bool          // it affects only one portal; the others are probed meanwhile
	full   bool          // only in a full run, because it allows the verdict Undone
	disk   bool          // only if each server has its own tmpfs
	inject func(n *nemesis, ctx context.Context, at int) error
	heal   func(n *nemesis, ctx context.Context, at int) error
	trap   bool // it sets a trap in a link
}

var faults = []fault{
	{name: "kill a portal", lasts: 300 * time.Millisecond, portal: true, inject: (*nemesis).killPortal, heal: (*nemesis).noHeal},
	{name: "freeze a portal", lasts: time.Second, portal: true, inject: (*nemesis).freezePortal, heal: (*nemesis).thawPortal},
	{name: "cut a portal off", lasts: time.Second, portal: true, inject: (*nemesis).cutPortal, heal: (*nemesis).healLinks},
	{name: "silence a portal's links", lasts: 2 * time.Second, portal: true, inject: (*nemesis).silencePortal, heal: (*nemesis).healLinks},
	{name: "delay all links", lasts: time.Second, inject: (*nemesis).delayLinks, heal: (*nemesis).healLinks},
	{name: "lose responses to COMMIT", lasts: time.Second, trap: true, inject: (*nemesis).loseResponses, heal: (*nemesis).healLinks},
	{name: "stall a revocation at COMMIT", lasts: 3 * time.Second, portal: true, trap: true, inject: (*nemesis).stallCommit, heal: (*nemesis).healLinks},
	{name: "kill the primary", lasts: 300 * time.Millisecond, inject: (*nemesis).killPrimary, heal: (*nemesis).startServers},
	{name: "freeze the primary", lasts: time.Second, inject: (*nemesis).freezePrimary, heal: (*nemesis).thawServers},
	{name: "kill the standby", lasts: 300 * time.Millisecond, inject: (*nemesis).killStandby, heal: (*nemesis).startServers},
	{name: "freeze the standby", lasts: time.Second, inject: (*nemesis).freezeStandby, heal: (*nemesis).thawServers},
	{name: "cut replication", lasts: 1500 * time.Millisecond, inject: (*nemesis).cutReplication, heal: (*nemesis).healLinks},
	{name: "fail over", lasts: time.Second, inject: (*nemesis).failOver, heal: (*nemesis).rebuild},
	{name: "fail over from a frozen primary", lasts: time.Second, inject: (*nemesis).failOverFrozen, heal: (*nemesis).rebuild},
	{name: isolated, lasts: time.Second, full: true, inject: (*nemesis).failOverIsolated, heal: (*nemesis).rebuild},
	{name: "fill the primary's disk", lasts: time.Second, disk: true, inject: (*nemesis).fillPrimary, heal: (*nemesis).freeDisks},
	{name: "fill the standby's disk", lasts: time.Second, disk: true, inject: (*nemesis).fillStandby, heal: (*nemesis).freeDisks},
}

// nemesis injects faults into a deployment.
type nemesis struct {
	*deployment

	rng     *rand.Rand
	report  *report
	probers []*prober
	logf    func(format string, args ...any)
}

// run injects all faults in random order, repeatedly until ctx ends. A short run injects each once,
// without those of a full run. It returns an error if the deployment does not recover from a fault.
func (n *nemesis) run(ctx context.Context, full bool) error {
	for {
		for _, i := range n.rng.Perm(len(faults)) {
			f := faults[i]
			if f.full && !full || f.disk && !n.servers[0].mounted {
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
	lasts := f.lasts + time.Duration(n.rng.Int64N(int64(f.lasts)))
	count := n.report.fault(f.name)
	count.times++
	count.trap = f.trap
	injected := n.elapsed()
	if err := f.inject(n, ctx, at); err != nil {
		return err
	}
	end := time.Now().Add(lasts)
	if f.portal {
		count.unaffected = append(count.unaffected, n.probeUnaffected(ctx, f, at, end))
	}
	_ = sleep(ctx, time.Until(end))
	if f.trap {
		count.triggered += n.awaitTrap(ctx)
	}
	healed := time.Now()
	if err := f.heal(n, ctx, at); err != nil {
		return err
	}
	if err := n.recover(ctx); err != nil {
		return err
	}
	recovery := time.Since(healed)
	count.recoveries = append(count.recoveries, recovery)
	n.logf("%8s to %8s  portal %d  %s: recovered in %s", seconds(injected), seconds(n.elapsed()), at, f.name, seconds(recovery))
	return nil
}

// awaitTrap waits until a trap was triggered, at most for a minute. It returns how often that
// happened.
func (n *nemesis) awaitTrap(ctx context.Context) (triggered int) {
	for end := time.Now().Add(time.Minute); triggered == 0 && time.Now().Before(end); _ = sleep(ctx, 50*time.Millisecond) {
		for _, p := range n.portals {
			for _, l := range p.links {
				triggered += l.takeTriggered()
			}
		}
	}
	return triggered
}

func (n *nemesis) elapsed() time.Duration { return time.Duration(n.probers[0].history.now()) }

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

// probeUnaffected probes the portals other than at until end, each at least once. It returns the
// longest time of a probe.
func (n *nemesis) probeUnaffected(ctx context.Context, f fault, at int, end time.Time) (longest time.Duration) {
	for first := true; first || time.Now().Before(end); first = false {
		for i, p := range n.probers {
			if i == at {
				continue
			}
			began := time.Now()
			if err := retry(ctx, unaffectedLimit, p.probe); err != nil {
				n.report.failure(fmt.Sprintf("%s: an unaffected portal does not serve within %s: %v", f.name, unaffectedLimit, err))
			}
			longest = max(longest, time.Since(began))
		}
	}
	return longest
}

// noHeal heals a fault that ends by itself.
func (n *nemesis) noHeal(context.Context, int) error { return nil }

func (n *nemesis) killPortal(_ context.Context, at int) error {
	n.portals[at].kill()
	return nil
}

func (n *nemesis) freezePortal(_ context.Context, at int) error {
	n.portals[at].signal(syscall.SIGSTOP)
	return nil
}

func (n *nemesis) thawPortal(_ context.Context, at int) error {
	n.portals[at].signal(syscall.SIGCONT)
	return nil
}

func (n *nemesis) cutPortal(_ context.Context, at int) error {
	for _, l := range n.portals[at].links {
		l.set(func() { l.mode = cut })
	}
	return nil
}

func (n *nemesis) silencePortal(_ context.Context, at int) error {
	for _, l := range n.portals[at].links {
		l.set(func() { l.mode = silent })
	}
	return nil
}

func (n *nemesis) delayLinks(context.Context, int) error {
	delay := 10*time.Millisecond + time.Duration(n.rng.Int64N(int64(60*time.Millisecond)))
	for _, p := range n.portals {
		for _, l := range p.links {
			l.set(func() { l.delay = delay })
		}
	}
	return nil
}

func (n *nemesis) loseResponses(context.Context, int) error {
	for _, p := range n.portals {
		for _, l := range p.links {
			l.set(func() { l.loseResponses = 3 })
		}
	}
	return nil
}

// stallCommit stalls the next connection on which the portal sends the COMMIT of a revocation. The
// server keeps the locks of that transaction.
func (n *nemesis) stallCommit(ctx context.Context, at int) error {
	l := n.portals[at].links[n.primary]
	l.set(func() { l.stallCommits = 1 })
	// A probe revokes a key, so that the trap is triggered.
	_ = n.probers[at].probe(ctx)
	return nil
}

func (n *nemesis) healLinks(context.Context, int) error {
	for _, p := range n.portals {
		for _, l := range p.links {
			l.heal()
		}
	}
	for _, l := range n.replication {
		l.heal()
	}
	return nil
}

func (n *nemesis) killPrimary(context.Context, int) error {
	n.servers[n.primary].kill()
	return nil
}

func (n *nemesis) killStandby(context.Context, int) error {
	n.servers[1-n.primary].kill()
	return nil
}

// startServers starts the servers that do not run, with their existing data.
func (n *nemesis) startServers(ctx context.Context, _ int) error {
	for _, s := range n.servers {
		if s.alive() {
			continue
		}
		if err := s.start(ctx); err != nil {
			return fmt.Errorf("%w\n%s", err, s.lastLines())
		}
	}
	return nil
}

func (n *nemesis) freezePrimary(context.Context, int) error {
	n.servers[n.primary].signal(syscall.SIGSTOP)
	return nil
}

func (n *nemesis) freezeStandby(context.Context, int) error {
	n.servers[1-n.primary].signal(syscall.SIGSTOP)
	return nil
}

func (n *nemesis) thawServers(context.Context, int) error {
	for _, s := range n.servers {
		s.signal(syscall.SIGCONT)
	}
	return nil
}

func (n *nemesis) cutReplication(context.Context, int) error {
	l := n.replication[n.primary]
	mode := []linkMode{cut, silent}[n.rng.IntN(2)]
	l.set(func() { l.mode = mode })
	return nil
}

// failOver kills the primary and promotes the standby.
func (n *nemesis) failOver(ctx context.Context, _ int) error {
	n.servers[n.primary].kill()
	n.primary = 1 - n.primary
	return n.servers[n.primary].promote(ctx)
}

func (n *nemesis) failOverFrozen(ctx context.Context, at int) error {
	if err := n.freezePrimary(ctx, at); err != nil {
		return err
	}
	_ = sleep(ctx, 2*time.Second)
	return n.failOver(ctx, at)
}

// failOverIsolated silences the replication before the failover. The primary confirms no commit in
// the meantime.
func (n *nemesis) failOverIsolated(ctx context.Context, at int) error {
	l := n.replication[n.primary]
	l.set(func() { l.mode = silent })
	_ = sleep(ctx, 4*time.Second)
	err := n.failOver(ctx, at)
	l.heal()
	return err
}

// rebuild makes the other server a standby of the primary.
func (n *nemesis) rebuild(ctx context.Context, _ int) error { return n.makeStandby(ctx, 1-n.primary) }

func (n *nemesis) fillPrimary(ctx context.Context, _ int) error { return n.fill(ctx, n.primary) }

func (n *nemesis) fillStandby(ctx context.Context, _ int) error { return n.fill(ctx, 1-n.primary) }

// fill fills the disk of server i. It then makes the primary write enough WAL to use up the space
// of its existing segments.
func (n *nemesis) fill(ctx context.Context, i int) error {
	if err := n.servers[i].fill(); err != nil {
		return err
	}
	// The statement fails if the primary stops because its disk is full.
	_ = n.servers[n.primary].query(ctx, "SELECT pg_logical_emit_message(false, 'chaos', repeat('x', 16 << 20))")
	return nil
}

// freeDisks frees the space and starts the servers that have stopped.
func (n *nemesis) freeDisks(ctx context.Context, at int) error {
	for _, s := range n.servers {
		if err := s.free(); err != nil {
			return err
		}
	}
	// A server that is stopping needs a moment to exit.
	_ = sleep(ctx, 500*time.Millisecond)
	return n.startServers(ctx, at)
}
