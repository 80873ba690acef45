package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
	"portal/models/people"
	"portal/models/secret"
)

const (
	staleRunTime = 3 * time.Second // of the clients against the stale program
	staleRuns    = 40              // at most; the first violation ends them
	maxPrinted   = 3               // violations of each kind
)

var (
	duration = flag.Duration("duration", 0,
		"how long faults are injected; 0: a short run with half of them, once each")
	seed = flag.Uint64("seed", uint64(time.Now().UnixNano()),
		"seed of the order of faults and the choices of the clients")
)

// TestDeploymentStaysConsistentThroughFaults is described in the package comment.
func TestDeploymentStaysConsistentThroughFaults(t *testing.T) {
	// An interrupt must not skip the cleanup.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	t.Logf("-seed %d", *seed)
	dir := t.TempDir()
	modelstest.Must(t, os.Chmod(filepath.Dir(dir), 0o755)) // for the user of the servers
	program, stale := modelstest.Value(subprocess.Portal())(t), filepath.Join(dir, "stale")
	modelstest.Must(t, subprocess.BuildPortal(ctx, stale, "-tags", "nomsgpack,stale"))
	r := &run{deployment: deploy(ctx, t, dir)}
	r.createAccounts(t)
	t.Run("shipped program", func(t *testing.T) { r.staysConsistent(ctx, t, program) })
	t.Run("documented failover", func(t *testing.T) { r.failsOverAsDocumented(ctx, t, program) })
	t.Run("a stale cache is detected", func(t *testing.T) { r.staleCacheIsDetected(ctx, t, stale) })
}

// run holds the deployment and the accounts that all parts of the test share.
type run struct {
	*deployment

	emails []string // of the accounts without a client
}

func (r *run) createAccounts(t *testing.T) {
	t.Helper()
	store := modelstest.Open(t, r.servers[r.primary].url(), models.Options{
		Keyring: modelstest.Value(secret.NewKeyring(portalSecret, ""))(t),
	})
	for i := range 2*(clients+portals) + 1 {
		email := fmt.Sprintf("client-%d@example.com", i)
		modelstest.Value(store.Accounts.Create(t.Context(),
			people.NewAccount{Name: "Client", Email: email, Password: password}))(t)
		r.emails = append(r.emails, email)
	}
	modelstest.Must(t, store.Close(t.Context()))
}

// staysConsistent runs clients and the nemesis, and checks the history that the clients recorded.
func (r *run) staysConsistent(ctx context.Context, t *testing.T, program string) {
	r.startPortals(ctx, t, program)
	report := newReport()
	workloads, probers := r.clients(t, report, "key")
	n := &nemesis{deployment: r.deployment, rng: r.rng(0), report: report, probers: probers, logf: t.Logf}
	limited, cancel := context.WithCancel(ctx)
	if *duration > 0 {
		limited, cancel = context.WithTimeout(ctx, *duration)
	}
	defer cancel()
	modelstest.Must(t, n.recover(ctx))
	err := runDuring(limited, workloads, func() error { return n.run(limited, *duration > 0) })
	if err != nil {
		t.Error(err)
	} else {
		for _, w := range workloads {
			if err := retry(ctx, recoveryLimit, w.useAll); err != nil {
				t.Errorf("final check of all keys: %v", err)
			}
		}
	}
	r.expectNoViolation(t, report)
	for i, p := range r.portals {
		if !running(p.child) {
			t.Errorf("portal %d exited by itself\n%s", i, lastLines(p.log.Name()))
		}
		for _, line := range p.failures() {
			t.Errorf("portal %d: %s", i, line)
		}
	}
}

// expectNoViolation checks the histories and fails the test for each violation and failure.
func (r *run) expectNoViolation(t *testing.T, report *report) {
	t.Helper()
	v := report.check()
	tokens := 0
	for _, ofKey := range report.tokens {
		tokens += len(ofKey)
	}
	t.Logf("operations: %v, access tokens: %d", report.counts, tokens)
	for result, keys := range v {
		t.Logf("%s: %d keys", result, len(keys))
	}
	for result, violations := range v {
		for _, violation := range violations[:min(maxPrinted, len(violations))] {
			switch {
			case result == porcupine.Ok:
			case result == undone && report.lossy:
				t.Log(violation)
			default:
				t.Error(violation)
			}
		}
	}
	for _, text := range report.failures {
		t.Error(text)
	}
}

// staleCacheIsDetected runs clients against the stale program. It fails if the checker reports no
// violation.
func (r *run) staleCacheIsDetected(ctx context.Context, t *testing.T, stale string) {
	r.startPortals(ctx, t, stale)
	report := newReport()
	workloads, _ := r.clients(t, report, "stale key")
	for range staleRuns {
		limited, cancel := context.WithTimeout(ctx, staleRunTime)
		_ = runDuring(limited, workloads, func() error { return sleep(limited, staleRunTime) })
		cancel()
		if v := report.check(); len(v[porcupine.Illegal]) > 0 || ctx.Err() != nil {
			return
		}
	}
	t.Error("the checker reported no violation of a portal that caches keys for one second")
}

// clients returns new workloads and probers. Each has its own account.
func (r *run) clients(t *testing.T, report *report, keyName string) (workloads []*workload, probers []*prober) {
	t.Helper()
	for i := range clients {
		workloads = append(workloads, &workload{
			client: newClient(t, r.account(), r.urls(), r.issuer, report), name: fmt.Sprintf("%s %d", keyName, i),
			rng: r.rng(uint64(i) + 1),
		})
	}
	for at := range portals {
		probers = append(probers, &prober{client: newClient(t, r.account(), r.urls(), r.issuer, report), at: at})
	}
	return workloads, probers
}

// account returns the email of an account without a client, and takes it from the list.
func (r *run) account() string {
	email := r.emails[0]
	r.emails = r.emails[1:]
	return email
}

func (r *run) rng(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, stream)) }

// runDuring runs the workloads while do runs, and returns the error of do. A missed deadline is not
// an error.
func runDuring(ctx context.Context, workloads []*workload, do func() error) error {
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
