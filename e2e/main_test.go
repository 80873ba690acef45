package e2e

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/models/modelstest/postgres"
	"portal/models/modelstest/subprocess"
)

// parallel is the number of tests that run at the same time, unless the flag -parallel is set.
// Tests also wait, so there may be more of them than processors.
const parallel = 6

// theRun is the run that all tests share.
var theRun *testRun

// testRun holds the resources that the tests of a run share. The get functions create a resource at
// the first call, so a run of one test creates only what that test needs.
type testRun struct {
	root      string
	artifacts string // deleted at the start of the run
	scratch   string // deleted at its end

	getTools  func() (tools, error)
	getDriver func() (*playwright.Playwright, error)
	getBinary func() (string, error)
	getPortal func() (*process, error)
	getPair   func() ([2]*process, error)

	// The browsers of the run: Chromium's headless shell, which takes two thirds of the time, and
	// the whole Chromium. Each visitor has a separate profile.
	shell, whole func() (playwright.Browser, error)

	mu        sync.Mutex
	cleanups  []func()
	processes []*process
}

func TestMain(m *testing.M) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", strconv.Itoa(parallel))
	}
	var err error
	if theRun, err = newRun(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	theRun.end()
	os.Exit(code)
}

func newRun() (*testRun, error) {
	root, err := filepath.Abs("..")
	if err != nil {
		return nil, fmt.Errorf("find the repository: %w", err)
	}
	scratch, err := os.MkdirTemp("", "portal-e2e-")
	if err != nil {
		return nil, fmt.Errorf("create a temporary folder: %w", err)
	}
	run := &testRun{root: root, scratch: scratch, artifacts: filepath.Join(root, "e2e", "artifacts")}
	if err := os.RemoveAll(run.artifacts); err != nil {
		return nil, fmt.Errorf("delete the artifacts of the last run: %w", err)
	}
	run.getTools = sync.OnceValues(func() (tools, error) { return findTools(root) })
	run.getDriver = sync.OnceValues(run.startDriver)
	run.whole = sync.OnceValues(func() (playwright.Browser, error) { return run.launch("") })
	run.shell = run.whole
	if path, err := exec.LookPath("chromium-headless-shell"); err == nil && !*headed {
		run.shell = sync.OnceValues(func() (playwright.Browser, error) { return run.launch(path) })
	}
	run.getBinary = sync.OnceValues(run.build)
	run.getPortal = sync.OnceValues(func() (*process, error) {
		return run.start(settings{databaseURL: "sqlite:" + filepath.Join(scratch, "shared", "portal.db")})
	})
	run.getPair = sync.OnceValues(run.startPair)
	return run, nil
}

// end runs the cleanups in reverse order and deletes the scratch folder.
func (r *testRun) end() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	_ = os.RemoveAll(r.scratch)
}

func (r *testRun) cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *testRun) startDriver() (*playwright.Playwright, error) {
	t, err := r.getTools()
	if err != nil {
		return nil, err
	}
	driver, err := startDriver(t, r.scratch)
	if err == nil {
		r.cleanup(func() { _ = driver.Stop() })
	}
	return driver, err
}

// launch starts the browser with this path, or Chromium, until the end of the run.
func (r *testRun) launch(path string) (playwright.Browser, error) {
	driver, err := r.getDriver()
	if err != nil {
		return nil, err
	}
	found, err := r.getTools()
	if err != nil {
		return nil, err
	}
	path = cmp.Or(path, found.chromium)
	chromium, err := driver.Chromium.Launch(playwright.BrowserTypeLaunchOptions{
		ExecutablePath: playwright.String(path), Headless: playwright.Bool(!*headed),
		Args: append(chromiumFlags(), "--use-fake-device-for-media-stream"), IgnoreDefaultArgs: withBackForwardCache,
	})
	if err != nil {
		return nil, fmt.Errorf("start Chromium (%s): %w", path, err)
	}
	r.cleanup(func() { _ = chromium.Close() })
	return chromium, nil
}

// build builds the binary from the working tree, so that the tests never use an old one.
func (r *testRun) build() (string, error) {
	if _, err := os.Stat(filepath.Join(r.root, "static", "vendor", "htmx.min.js")); err != nil {
		return "", fmt.Errorf("the browser assets are missing, run `make assets`: %w", err)
	}
	binary := filepath.Join(r.scratch, "portal")
	command := exec.Command("go", "build", "-tags", "nomsgpack", "-o", binary, "./cmd/portal")
	command.Dir = r.root
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the portal: %w\n%s", err, output)
	}
	return binary, nil
}

// start starts a portal. It is killed at the end of the run if it still runs.
func (r *testRun) start(s settings) (*process, error) {
	binary, err := r.getBinary()
	if err != nil {
		return nil, err
	}
	s.binary = binary
	if s.secret == "" {
		s.secret = randomHex(32)
	}
	p, err := startProcess(s)
	if err != nil {
		return nil, err
	}
	r.cleanup(func() { p.Kill() })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.processes = append(r.processes, p)
	return p, nil
}

// startPair starts two instances of the portal on one PostgreSQL database.
func (r *testRun) startPair() (pair [2]*process, err error) {
	cluster, err := postgres.Start()
	if err != nil {
		return pair, fmt.Errorf("start PostgreSQL: %w", err)
	}
	r.cleanup(func() {
		if err := cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: stop PostgreSQL:", err)
		}
	})
	address, err := subprocess.FreeAddress()
	if err != nil {
		return pair, err
	}
	s := settings{databaseURL: cluster.URL("postgres"), secret: randomHex(32), baseURL: "http://" + address}
	for i, address := range []string{address, ""} {
		s.address = address
		pair[i], err = r.start(s)
		if err != nil {
			return pair, err
		}
	}
	return pair, nil
}

// saveLogs writes the log of each portal of the run to folder.
func (r *testRun) saveLogs(folder string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for i, p := range r.processes {
		name := filepath.Join(folder, fmt.Sprintf("portal-%d.log", i+1))
		errs = append(errs, os.WriteFile(name, []byte(p.URL+"\n"+p.log.String()), 0o600))
	}
	return errors.Join(errs...)
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
