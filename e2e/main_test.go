package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"portal/models/modelstest/postgres"
	"portal/models/modelstest/subprocess"
)

// parallel is the number of tests that run at the same time, unless the flag -parallel is set.
// Tests also wait, so there may be more of them than processors.
const parallel = 6

var (
	root         string // the repository
	artifactsDir string // deleted at the start of the run
	scratch      string // deleted at its end
)

// The resources that all tests share. Each is created when it is first needed, so a run of one test
// creates only what that test needs.
var (
	sharedTools    = sync.OnceValues(findTools)
	sharedDriver   = sync.OnceValues(startDriver)
	sharedShell    = sync.OnceValues(launchShell)
	sharedChromium = sync.OnceValues(launchChromium)
	builtPortal    = sync.OnceValues(buildPortal)
	portalOnSQLite = sync.OnceValues(func() (*process, error) {
		return startPortal(settings{databaseURL: "sqlite:" + filepath.Join(scratch, "shared", "portal.db")})
	})
	portalOnPostgres = sync.OnceValues(startPortalOnPostgres)
)

// ending has what ends with the run, and the portals whose logs a failed test saves.
var ending struct {
	sync.Mutex

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
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	for i := len(ending.cleanups) - 1; i >= 0; i-- {
		ending.cleanups[i]()
	}
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// prepare sets the folders of the run.
func prepare() (err error) {
	if root, err = filepath.Abs(".."); err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	artifactsDir = filepath.Join(root, "e2e", "artifacts")
	if err = errors.Join(os.RemoveAll(artifactsDir), os.Mkdir(artifactsDir, 0o755)); err != nil {
		return fmt.Errorf("empty the folder of artifacts: %w", err)
	}
	scratch, err = os.MkdirTemp("", "portal-e2e-")
	return err
}

func atEnd(cleanup func()) {
	ending.Lock()
	defer ending.Unlock()
	ending.cleanups = append(ending.cleanups, cleanup)
}

// buildPortal returns the path of the program, whose browser assets the tests need.
func buildPortal() (string, error) {
	if _, err := os.Stat(filepath.Join(root, "static", "vendor", "htmx.min.js")); err != nil {
		return "", fmt.Errorf("the browser assets are missing, run `make assets`: %w", err)
	}
	return subprocess.Portal()
}

func startPortalOnPostgres() (*process, error) {
	cluster, err := postgres.Start(postgres.Memory())
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	atEnd(func() {
		if err := cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: stop PostgreSQL:", err)
		}
	})
	return startPortal(settings{databaseURL: cluster.URL("postgres")})
}

// saveLogs writes the log of each portal of the run to folder.
func saveLogs(folder string) error {
	ending.Lock()
	defer ending.Unlock()
	var errs []error
	for i, p := range ending.processes {
		name := filepath.Join(folder, fmt.Sprintf("portal-%d.log", i+1))
		errs = append(errs, os.WriteFile(name, []byte(p.URL+"\n"+p.log.String()), 0o600))
	}
	return errors.Join(errs...)
}
