package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	checkTimeout = 30 * time.Second // of Porcupine, for each key
	// Clients run against the stale program for provingTime, at most so many times.
	provingTime  = 3 * time.Second
	provingTimes = 10
	shown        = 3 // violations of a kind that are printed
)

var (
	duration = flag.Duration("duration", 0, "how long faults are injected; 0: a short run, with some of them once each")
	seed     = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the order of faults and the choices of the clients")
)

// TestDeploymentKeepsItsPromisesThroughFaults is the whole of this package: see its comment.
func TestDeploymentKeepsItsPromisesThroughFaults(t *testing.T) {
	// An interrupt ends the run early, so that it is cleaned up.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	t.Logf("-seed %d", *seed)
	dir, err := openDirectory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	program, stale := build(t, dir, "portal", ""), build(t, dir, "stale", "stale")
	d, err := deploy(ctx, dir)
	t.Cleanup(func() {
		if err := d.remove(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !d.servers[0].mounted {
		t.Log("no disk is filled: only root can mount one of a limited size")
	}
	r := &run{deployment: d}
	if err := r.createAccounts(ctx, program); err != nil {
		t.Fatal(err)
	}
	t.Run("as it is", func(t *testing.T) { r.keepsItsPromises(ctx, t, program) })
	t.Run("with a stale memory it is found out", func(t *testing.T) { r.isFoundOut(ctx, t, stale) })
}

// openDirectory makes a directory that the servers' user can reach.
func openDirectory() (string, error) {
	dir, err := os.MkdirTemp("", "portal-chaos-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	return dir, err
}

// build builds the portal with a build tag, or none.
func build(t *testing.T, dir, name, tags string) string {
	t.Helper()
	output := filepath.Join(dir, name)
	command := exec.CommandContext(t.Context(), "go", "build", "-tags", tags, "-o", output, "portal/cmd/portal")
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build the portal: %v\n%s", err, text)
	}
	return output
}

// run is what the parts of the test share.
type run struct {
	*deployment

	emails []string // of accounts that no client has yet
}

func (r *run) createAccounts(ctx context.Context, program string) error {
	for i := range 2 * (clients + portals) {
		email := fmt.Sprintf("client-%d@example.com", i)
		if _, err := r.operator(ctx, program, password, "account", "create", "--name", "Client", "--email", email); err != nil {
			return err
		}
		r.emails = append(r.emails, email)
	}
	return nil
}

// keepsItsPromises runs clients and the nemesis, and checks what the clients have seen.
func (r *run) keepsItsPromises(ctx context.Context, t *testing.T, program string) {
	if err := r.startPortals(ctx, program); err != nil {
		t.Fatal(err)
	}
	defer r.stopPortals()
	h, report := newHistory(), newReport()
	workloads, probers := r.clients(h, report, "key")
	n := &nemesis{deployment: r.deployment, rng: r.rng(0), report: report, probers: probers, logf: t.Logf}
	limited, cancel := context.WithCancel(ctx)
	if *duration > 0 {
		limited, cancel = context.WithTimeout(ctx, *duration)
	}
	defer cancel()
	if err := n.recover(ctx); err != nil {
		t.Fatal(err)
	}
	err := during(limited, workloads, func() error { return n.run(limited, *duration > 0) })
	if err != nil {
		t.Error(err)
	} else {
		for _, w := range workloads {
			if err := retry(ctx, recoveryLimit, w.useAll); err != nil {
				t.Errorf("at the end: %v", err)
			}
		}
	}
	v := h.check()
	t.Log("\n" + tables(h, report, v))
	for result, violations := range v.violations {
		// The package comment says why these are possible then.
		fail := t.Error
		if result == undone && report.faults[isolated] != nil {
			fail = t.Log
		}
		for _, violation := range violations[:min(shown, len(violations))] {
			fail(violation)
		}
	}
	for _, text := range report.problems {
		t.Error(text)
	}
	for _, kind := range report.neverSprung() {
		t.Errorf("%s: no trap was sprung", kind)
	}
	if twice, err := r.keysTwice(ctx); err != nil || len(twice) > 0 {
		t.Errorf("keys that one form has created twice: %v, %v", twice, err)
	}
	for i, p := range r.portals {
		if p.exits != p.wanted {
			t.Errorf("portal %d exited %d times, %d of them on purpose\n%s", i, p.exits, p.wanted, lastLines(p.log.Name()))
		}
		for _, line := range p.panics() {
			t.Errorf("portal %d: %s", i, line)
		}
	}
}

// isFoundOut runs clients against the stale program, and fails unless a violation is reported.
func (r *run) isFoundOut(ctx context.Context, t *testing.T, stale string) {
	if err := r.startPortals(ctx, stale); err != nil {
		t.Fatal(err)
	}
	defer r.stopPortals()
	h, report := newHistory(), newReport()
	workloads, _ := r.clients(h, report, "stale key")
	var v verdicts
	for range provingTimes {
		limited, cancel := context.WithTimeout(ctx, provingTime)
		_ = during(limited, workloads, func() error { return sleep(limited, provingTime) })
		cancel()
		if v = h.check(); v.counts[porcupine.Illegal] > 0 || ctx.Err() != nil {
			break
		}
	}
	t.Log("\n" + tables(h, report, v))
	if v.counts[porcupine.Illegal] == 0 {
		t.Error("a portal that remembers keys for one second was not reported")
	}
}

// clients returns the clients of a part of the test, each with an account of its own.
func (r *run) clients(h *history, report *report, keyName string) (workloads []*workload, probers []*prober) {
	instances := make([]instance, portals)
	for i, p := range r.portals {
		instances[i] = instance{i, p.url}
	}
	for i := range clients {
		workloads = append(workloads, &workload{
			client: newClient(r.account(), h, report), name: fmt.Sprintf("%s %d", keyName, i),
			instances: instances, rng: r.rng(uint64(i) + 1),
		})
	}
	for _, at := range instances {
		probers = append(probers, &prober{client: newClient(r.account(), h, report), at: at})
	}
	return workloads, probers
}

// account returns the email of an account that no client has yet.
func (r *run) account() string {
	email := r.emails[0]
	r.emails = r.emails[1:]
	return email
}

func (r *run) rng(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, stream)) }

// during runs the clients while do runs, and returns its error.
func during(ctx context.Context, workloads []*workload, do func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, w := range workloads {
		all.Go(func() { w.run(ctx) })
	}
	err := do()
	cancel()
	all.Wait()
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return err
}

func tables(h *history, report *report, v verdicts) string {
	var text strings.Builder
	report.write(&text, h, v)
	return text.String()
}
