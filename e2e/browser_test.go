package e2e

import (
	"fmt"
	"os"

	"github.com/playwright-community/playwright-go"
)

// browser is the one Chromium of a run; each visitor gets a profile of its own in it.
type browser struct {
	driver   *playwright.Playwright
	chromium playwright.Browser
}

func startBrowser(t tools, scratch string) (*browser, error) {
	// playwright-go knows node's place from the environment alone.
	if err := os.Setenv("PLAYWRIGHT_NODEJS_PATH", t.node); err != nil {
		return nil, fmt.Errorf("name node to the Playwright driver: %w", err)
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
		ExecutablePath: playwright.String(t.chromium),
		Args:           chromiumFlags(), IgnoreDefaultArgs: withBackForwardCache,
	})
	if err != nil {
		_ = driver.Stop()
		return nil, fmt.Errorf("start Chromium (%s): %w", t.chromium, err)
	}
	return &browser{driver: driver, chromium: chromium}, nil
}

// withBackForwardCache takes back what Playwright does: it turns the back/forward cache off. Customers have it on, and a
// key must not come back out of it.
var withBackForwardCache = []string{"--disable-back-forward-cache"}

func chromiumFlags() []string {
	flags := []string{
		"--disable-background-networking", "--disable-quic", "--disable-component-update", "--disable-sync", "--no-first-run",
	}
	if os.Geteuid() == 0 {
		flags = append(flags, "--no-sandbox") // Chromium's sandbox refuses to work for root
	}
	return flags
}

func (b *browser) stop() {
	_ = b.chromium.Close()
	_ = b.driver.Stop()
}
