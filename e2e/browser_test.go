package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/playwright-community/playwright-go"
)

var (
	headed    = flag.Bool("headed", false, "show the browser")
	snapshots = flag.Bool("snapshots", false, "record the pages in traces, which makes the tests a third slower")
)

// tools are the paths of the programs and packages that must be installed for the suite.
type tools struct{ chromium, node, driver, axe string }

// findTools returns the tools. The error lists every missing tool and how to install it. The suite
// fails without them, because skipped tests would look like a success.
func findTools() (tools, error) {
	modules := filepath.Join(root, "node_modules")
	found := tools{driver: filepath.Join(modules, "playwright-core"), axe: filepath.Join(modules, "axe-core", "axe.min.js")}
	var missing []error
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && found.chromium == "" {
			found.chromium = path
		}
	}
	if found.chromium == "" {
		missing = append(missing, errors.New("chromium is missing: install it (Debian: apt-get install chromium)"))
	}
	var err error
	if found.node, err = exec.LookPath("node"); err != nil {
		missing = append(missing, errors.New("node is missing: install Node.js (Debian: apt-get install nodejs npm)"))
	}
	for _, path := range []string{found.driver, found.axe, filepath.Join(modules, "jose"), filepath.Join(modules, "livekit-client")} {
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, fmt.Errorf("%s is missing: run `npm ci` at the root of the repository", path))
		}
	}
	return found, errors.Join(missing...)
}

// startDriver starts the driver of all browsers. It runs a copy, because playwright-go patches the
// driver and must not change node_modules. Without the patch the driver crashes on a page error
// that has no location.
func startDriver() (*playwright.Playwright, error) {
	found, err := sharedTools()
	if err != nil {
		return nil, err
	}
	// playwright-go reads the path of node only from the environment.
	if err := os.Setenv("PLAYWRIGHT_NODEJS_PATH", found.node); err != nil {
		return nil, fmt.Errorf("set the path of node: %w", err)
	}
	folder := filepath.Join(scratch, "driver")
	if err := os.CopyFS(filepath.Join(folder, "package"), os.DirFS(found.driver)); err != nil {
		return nil, fmt.Errorf("copy the Playwright driver: %w", err)
	}
	options := &playwright.RunOptions{DriverDirectory: folder, SkipInstallBrowsers: true}
	// With the driver in place this downloads nothing. It checks the version and applies the
	// patch.
	if err := playwright.Install(options); err != nil {
		return nil, fmt.Errorf("the Playwright driver in node_modules does not fit playwright-go (run `npm ci`): %w", err)
	}
	driver, err := playwright.Run(options)
	if err != nil {
		return nil, fmt.Errorf("start the Playwright driver: %w", err)
	}
	atEnd(func() { _ = driver.Stop() })
	return driver, nil
}

// launchShell starts Chromium's headless shell, which takes two thirds of the time, or else
// Chromium. Each visitor has a separate profile.
func launchShell() (playwright.Browser, error) {
	path, err := exec.LookPath("chromium-headless-shell")
	if err != nil || *headed {
		return sharedChromium()
	}
	return launch(path, nil)
}

func launchChromium() (playwright.Browser, error) {
	found, err := sharedTools()
	if err != nil {
		return nil, err
	}
	return launch(found.chromium, nil, "--use-fake-device-for-media-stream")
}

// launch starts a browser with more arguments and this environment until the end of the run.
func launch(path string, environment map[string]string, arguments ...string) (playwright.Browser, error) {
	driver, err := sharedDriver()
	if err != nil {
		return nil, err
	}
	chromium, err := driver.Chromium.Launch(playwright.BrowserTypeLaunchOptions{
		ExecutablePath: playwright.String(path), Headless: playwright.Bool(!*headed), Env: environment,
		Args: append(chromiumFlags(), arguments...), IgnoreDefaultArgs: withBackForwardCache,
	})
	if err != nil {
		return nil, fmt.Errorf("start Chromium (%s): %w", path, err)
	}
	atEnd(func() { _ = chromium.Close() })
	return chromium, nil
}

// withBackForwardCache removes the Playwright default that turns the back/forward cache off.
// Customers' browsers use that cache, and it must never show a key again.
var withBackForwardCache = []string{"--disable-back-forward-cache"}

func chromiumFlags() []string {
	flags := []string{
		"--disable-background-networking", "--disable-quic", "--disable-component-update", "--disable-sync", "--no-first-run",
		"--host-resolver-rules=MAP shop.test 127.0.0.1", "--renderer-process-limit=1", // for each profile
	}
	if os.Geteuid() == 0 {
		flags = append(flags, "--no-sandbox") // Chromium's sandbox does not work for root
	}
	return flags
}
