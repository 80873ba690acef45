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

// recoveryLimit is the longest time that the deployment may take to serve again after a fault.
const recoveryLimit = 30 * time.Second

// othersLimit is the longest time that a portal may take to serve while a fault touches another
// one.
const othersLimit = 6 * time.Second

// isolated is the fault after which PostgreSQL can have shown changes that are lost.
const isolated = "fail over from an isolated primary"

// fault is one way to break the deployment. It is injected, lasts for a while, and is healed.
type fault struct {
	name    string
	lasts   time.Duration // at least; up to twice as long
	portal  bool          // it touches one portal, at, and the others are probed meanwhile
	full    bool          // only in a full run
	disk    bool          // it needs disks of their own
	inject  func(n *nemesis, ctx context.Context, at int) error
	heal    func(n *nemesis, ctx context.Context, at int) error
	springs bool // it sets a trap in links; the report counts how often one was sprung
}

var faults = []fault{
	{name: "kill a portal", lasts: 300 * time.Millisecond, portal: true, inject: (*nemesis).killPortal, heal: (*nemesis).nothing},
	{name: "freeze a portal", lasts: time.Second, portal: true, inject: (*nemesis).freezePortal, heal: (*nemesis).thawPortal},
	{name: "cut a portal off", lasts: time.Second, portal: true, inject: (*nemesis).cutPortal, heal: (*nemesis).healLinks},
	{name: "silence a portal's links", lasts: 2 * time.Second, portal: true, inject: (*nemesis).silencePortal, heal: (*nemesis).healLinks},
	{name: "delay all links", lasts: time.Second, inject: (*nemesis).delayLinks, heal: (*nemesis).healLinks},
	{name: "lose answers to COMMIT", lasts: time.Second, springs: true, inject: (*nemesis).loseAnswers, heal: (*nemesis).healLinks},
	{name: "stall a revocation at COMMIT", lasts: 4 * time.Second, portal: true, full: true, springs: true, inject: (*nemesis).stallCommit, heal: (*nemesis).healLinks},
	{name: "kill the primary", lasts: 300 * time.Millisecond, inject: (*nemesis).killPrimary, heal: (*nemesis).startServers},
	{name: "freeze the primary", lasts: time.Second, inject: (*nemesis).freezePrimary, heal: (*nemesis).thawServers},
	{name: "kill the standby", lasts: 300 * time.Millisecond, full: true, inject: (*nemesis).killStandby, heal: (*nemesis).startServers},
	{name: "freeze the standby", lasts: time.Second, full: true, inject: (*nemesis).freezeStandby, heal: (*nemesis).thawServers},
	{name: "cut replication", lasts: 2 * time.Second, full: true, inject: (*nemesis).cutReplication, heal: (*nemesis).healLinks},
	{name: "fail over", lasts: time.Second, inject: (*nemesis).failOver, heal: (*nemesis).rebuild},
	{name: "fail over from a frozen primary", lasts: time.Second, full: true, inject: (*nemesis).failOverFrozen, heal: (*nemesis).rebuild},
	{name: isolated, lasts: time.Second, full: true, inject: (*nemesis).failOverIsolated, heal: (*nemesis).rebuild},
	{name: "fill the primary's disk", lasts: time.Second, disk: true, inject: (*nemesis).fillPrimary, heal: (*nemesis).freeDisks},
	{name: "fill the standby's disk", lasts: time.Second, disk: true, full: true, inject: (*nemesis).fillStandby, heal: (*nemesis).freeDisks},
}

// nemesis breaks a deployment.
type nemesis struct {
	*deployment

	rng     *rand.Rand
	report  *report
	probers []*prober
	logf    func(format string, args ...any)
}

// run injects all faults in a random order, again and again until ctx ends. A short run injects the
// short ones once each. It returns an error when the deployment does not recover from a fault.
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
			// What has begun is healed, even if the run ends meanwhile.
			if err := n.once(context.WithoutCancel(ctx), f); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		if !full {
			return nil
		}
	}
}

// once injects one fault, heals it, and waits until every portal serves.
func (n *nemesis) once(ctx context.Context, f fault) error {
	at := n.rng.IntN(portals)
	lasts := f.lasts + time.Duration(n.rng.Int64N(int64(f.lasts)))
	count := n.report.fault(f.name)
	count.times++
	count.springs = f.springs
	injected := n.since()
	if err := f.inject(n, ctx, at); err != nil {
		return err
	}
	end := time.Now().Add(lasts)
	if f.portal {
		count.others = append(count.others, n.probeOthers(ctx, f, at, end))
	}
	_ = sleep(ctx, time.Until(end))
	if f.springs {
		for _, p := range n.portals {
			for _, l := range p.links {
				count.tripped += l.trips()
			}
		}
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
	n.logf("%8s to %8s  portal %d  %s: recovered in %s", seconds(injected), seconds(n.since()), at, f.name, seconds(recovery))
	return nil
}

func (n *nemesis) since() time.Duration { return time.Duration(n.probers[0].history.now()) }

// recover waits until every portal serves.
func (n *nemesis) recover(ctx context.Context) error {
	errs := make([]error, len(n.probers))
	var all sync.WaitGroup
	for i, p := range n.probers {
		all.Go(func() { errs[i] = retry(ctx, recoveryLimit, p.probe) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the portals do not serve %s after the fault has ended: %w", recoveryLimit, err)
	}
	return nil
}

// probeOthers probes the portals that a fault does not touch, and returns the longest time that one
// of them took to serve. Each is probed once at least.
func (n *nemesis) probeOthers(ctx context.Context, f fault, at int, end time.Time) (longest time.Duration) {
	for first := true; first || time.Now().Before(end); first = false {
		for i, p := range n.probers {
			if i == at {
				continue
			}
			began := time.Now()
			if err := retry(ctx, othersLimit, p.probe); err != nil {
				n.report.problem(fmt.Sprintf("%s: another portal does not serve within %s: %v", f.name, othersLimit, err))
			}
			longest = max(longest, time.Since(began))
		}
	}
	return longest
}

func (n *nemesis) nothing(context.Context, int) error { return nil }

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

func (n *nemesis) loseAnswers(context.Context, int) error {
	for _, p := range n.portals {
		for _, l := range p.links {
			l.set(func() { l.loseAnswers = 3 })
		}
	}
	return nil
}

// stallCommit makes a connection silent when the portal sends the COMMIT of a revocation on it,
// whose locks the server then holds.
func (n *nemesis) stallCommit(ctx context.Context, at int) error {
	l := n.portals[at].links[n.primary]
	l.set(func() { l.stallCommits = 1 })
	// The portal's own probe sends one at the latest.
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

// startServers starts the servers that have ended, with the data that they have.
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

// failOver ends the primary for certain and promotes the standby.
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

// failOverIsolated cuts the primary off its standby before it fails. Commits that it makes
// meanwhile are not acknowledged.
func (n *nemesis) failOverIsolated(ctx context.Context, at int) error {
	l := n.replication[n.primary]
	l.set(func() { l.mode = silent })
	_ = sleep(ctx, 4*time.Second)
	err := n.failOver(ctx, at)
	l.heal()
	return err
}

// rebuild makes the server that is not the primary a standby of it.
func (n *nemesis) rebuild(ctx context.Context, _ int) error { return n.makeStandby(ctx, 1-n.primary) }

func (n *nemesis) fillPrimary(ctx context.Context, _ int) error { return n.fill(ctx, n.primary) }

func (n *nemesis) fillStandby(ctx context.Context, _ int) error { return n.fill(ctx, 1-n.primary) }

// fill fills a disk, and has the primary write so much WAL that the space which it keeps is used
// up.
func (n *nemesis) fill(ctx context.Context, i int) error {
	if err := n.servers[i].fill(); err != nil {
		return err
	}
	// It fails where the primary stops for the lack of space.
	_ = n.servers[n.primary].query(ctx, "SELECT pg_logical_emit_message(false, 'chaos', repeat('x', 16 << 20))")
	return nil
}

// freeDisks gives the space back and starts the server if it has given up.
func (n *nemesis) freeDisks(ctx context.Context, at int) error {
	for _, s := range n.servers {
		if err := s.free(); err != nil {
			return err
		}
	}
	// A server that stops takes a moment.
	_ = sleep(ctx, 500*time.Millisecond)
	return n.startServers(ctx, at)
}
