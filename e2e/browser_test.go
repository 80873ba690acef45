package e2e

import (
	"flag"
	"fmt"
	"os"

	"github.com/playwright-community/playwright-go"
)

var (
	headed    = flag.Bool("headed", false, "show the browser")
	snapshots = flag.Bool("snapshots", false, "record the pages in traces, which makes the tests a third slower")
)

// browser is the Chromium process of a run. Each visitor has a separate profile in it.
type browser struct {
	driver   *playwright.Playwright
	chromium playwright.Browser
}

func startBrowser(t tools, scratch string) (*browser, error) {
	// playwright-go reads the path of node only from the environment.
	if err := os.Setenv("PLAYWRIGHT_NODEJS_PATH", t.node); err != nil {
		return nil, fmt.Errorf("set the path of node: %w", err)
	}
	folder, err := t.prepareDriver(scratch)
	if err != nil {
		return nil, err
	}
	driver, err := playwright.Run(&playwright.RunOptions{DriverDirectory: folder, SkipInstallBrowsers: true})
	if err != nil {
		return nil, fmt.Errorf("start the Playwright driver: %w", err)
	}
	chromium, err := driver.Chromium.Launch(playwright.BrowserTypeLaunchOptions{
		ExecutablePath: playwright.String(t.chromium), Headless: playwright.Bool(!*headed),
		Args: append(chromiumFlags(), "--use-fake-device-for-media-stream"), IgnoreDefaultArgs: withBackForwardCache,
	})
	if err != nil {
		_ = driver.Stop()
		return nil, fmt.Errorf("start Chromium (%s): %w", t.chromium, err)
	}
	return &browser{driver: driver, chromium: chromium}, nil
}

// withBackForwardCache removes the Playwright default that turns the back/forward cache off.
// Customers' browsers use that cache, and it must never show a key again.
var withBackForwardCache = []string{"--disable-back-forward-cache"}

func chromiumFlags() []string {
	flags := []string{
		"--disable-background-networking", "--disable-quic", "--disable-component-update", "--disable-sync", "--no-first-run",
		"--host-resolver-rules=MAP shop.test 127.0.0.1",
	}
	if os.Geteuid() == 0 {
		flags = append(flags, "--no-sandbox") // Chromium's sandbox does not work for root
	}
	return flags
}

func (b *browser) stop() {
	_ = b.chromium.Close()
	_ = b.driver.Stop()
}
