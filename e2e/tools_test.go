package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/playwright-community/playwright-go"
)

// tools are the programs and packages that must be installed for the suite.
type tools struct {
	chromium string // the browser's executable
	node     string // runs the driver
	driver   string // a folder with package/cli.js; empty: copied from node_modules
	root     string // the repository's root
}

var chromiumNames = []string{"chromium", "chromium-browser", "google-chrome"}

// findTools returns the tools. The error lists every missing tool and how to install it. The suite
// fails without them, because skipped tests would look like a success.
func findTools(root string) (tools, error) {
	found := tools{root: root, driver: os.Getenv("PLAYWRIGHT_DRIVER_PATH"), node: os.Getenv("PLAYWRIGHT_NODEJS_PATH")}
	var missing []error
	if found.node == "" {
		node, err := exec.LookPath("node")
		if err != nil {
			missing = append(missing, errors.New("node is missing: install Node.js (Debian: apt-get install nodejs npm) or set PLAYWRIGHT_NODEJS_PATH"))
		}
		found.node = node
	}
	for _, name := range chromiumNames {
		if path, err := exec.LookPath(name); err == nil {
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
	for _, file := range []string{cli, found.axe(), filepath.Join(root, "node_modules", "jose"), filepath.Join(root, "node_modules", "livekit-client")} {
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

// prepareDriver returns a folder with the Playwright driver in the layout that playwright-go
// requires. The folder is a copy, because playwright-go patches the driver and must not change
// node_modules. Without the patch the driver crashes on a page error that has no location.
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
	// With the driver in place this downloads nothing. It checks the version and applies the
	// patch.
	if err := driver.DownloadDriver(); err != nil {
		return "", fmt.Errorf("the Playwright driver in node_modules does not fit playwright-go (run `npm ci`): %w", err)
	}
	return folder, nil
}
