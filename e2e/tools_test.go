package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/playwright-community/playwright-go"
)

// tools are the programs and packages that the suite needs and does not bring along.
type tools struct {
	chromium string // the browser's executable
	node     string // runs the driver
	driver   string // a folder that holds package/cli.js; empty: to be made from node_modules
	root     string // the repository
}

// machine is what findTools asks; os.Getenv and exec.LookPath outside its own test.
type machine struct {
	getenv   func(name string) string
	lookPath func(program string) (string, error)
}

var chromiumNames = []string{"chromium", "chromium-browser", "google-chrome"}

// findTools names everything that is missing at once, each with the way to get it: a suite that skips what it cannot
// run would pass on a machine where it proves nothing.
func findTools(root string, m machine) (tools, error) {
	found := tools{root: root, driver: m.getenv("PLAYWRIGHT_DRIVER_PATH"), node: m.getenv("PLAYWRIGHT_NODEJS_PATH")}
	var missing []error
	if found.node == "" {
		node, err := m.lookPath("node")
		if err != nil {
			missing = append(missing, errors.New("node is missing: install Node.js (Debian: apt-get install nodejs npm) or set PLAYWRIGHT_NODEJS_PATH"))
		}
		found.node = node
	}
	for _, name := range chromiumNames {
		if path, err := m.lookPath(name); err == nil {
			found.chromium = path
			break
		}
	}
	if found.chromium == "" {
		missing = append(missing, fmt.Errorf("chromium is missing, none of %q is on the PATH: install it (Debian: apt-get install chromium)", chromiumNames))
	}
	cli := filepath.Join(found.driver, "package", "cli.js")
	if found.driver == "" {
		cli = filepath.Join(found.driverPackage(), "cli.js")
	}
	for _, file := range []string{cli, found.axe()} {
		if _, err := os.Stat(file); err != nil {
			missing = append(missing, fmt.Errorf("%s is missing: run `npm ci` at the root of the repository", file))
		}
	}
	return found, errors.Join(missing...)
}

func (t tools) driverPackage() string {
	return filepath.Join(t.root, "node_modules", "playwright-core")
}

func (t tools) axe() string { return filepath.Join(t.root, "node_modules", "axe-core", "axe.min.js") }

// prepareDriver returns a folder in the form playwright-go wants. It is a copy and not a link, because playwright-go
// mends a line of the driver that otherwise ends it at the first page error without a location, and node_modules is
// not ours to change.
func (t tools) prepareDriver(scratch string) (string, error) {
	if t.driver != "" {
		return t.driver, nil
	}
	folder := filepath.Join(scratch, "driver")
	if err := os.CopyFS(filepath.Join(folder, "package"), os.DirFS(t.driverPackage())); err != nil {
		return "", fmt.Errorf("copy the Playwright driver: %w", err)
	}
	driver, err := playwright.NewDriver(&playwright.RunOptions{DriverDirectory: folder, SkipInstallBrowsers: true})
	if err != nil {
		return "", fmt.Errorf("prepare the Playwright driver: %w", err)
	}
	// With the driver in place this downloads nothing: it checks the version and mends.
	if err := driver.DownloadDriver(); err != nil {
		return "", fmt.Errorf("the Playwright driver in node_modules does not fit playwright-go (run `npm ci`): %w", err)
	}
	return folder, nil
}

// repositoryRoot is the nearest folder upwards that holds go.mod; tests run in their package's folder.
func repositoryRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("find the repository: no folder upwards holds a go.mod")
		}
		folder = parent
	}
}
