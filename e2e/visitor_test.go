package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
	"portal/models/modelstest"
)

// The time limits of expectations and of loading a page, in milliseconds. They are long because
// only failures wait for them, and a busy machine is slow.
const (
	expectTimeout     = 30_000
	navigationTimeout = 60_000
)

// visitor is a person with a separate browser profile and one tab on one site.
type visitor struct {
	*pages.Tab
	*watcher
	context playwright.BrowserContext
}

// options describe a visitor's browser.
type options struct {
	playwright.BrowserNewContextOptions

	open func() (playwright.Browser, error)
}

// profile changes the options of a visitor's browser.
type profile func(*options)

func withJavaScript(o *options)    { o.JavaScriptEnabled = playwright.Bool(true) }
func withoutJavaScript(o *options) { o.JavaScriptEnabled = playwright.Bool(false) }
func withMotion(o *options)        { o.ReducedMotion = playwright.ReducedMotionNoPreference }

func withClipboard(o *options) {
	o.Permissions = append(o.Permissions, "clipboard-read", "clipboard-write")
}

// inWholeChromium opens the pages in Chromium where others use its headless shell. Only the whole
// Chromium has a back/forward cache and a microphone, which pages may not use.
func inWholeChromium(o *options) { o.open = sharedChromium }

// withMicrophone allows the pages to use the microphone, which beeps.
func withMicrophone(o *options) {
	inWholeChromium(o)
	o.Permissions = append(o.Permissions, "microphone")
}

func trustingAnyCertificate(o *options) { o.IgnoreHttpsErrors = playwright.Bool(true) }

// visit opens a tab on site until the test ends. The test fails if a page logs an unexpected error
// or warning, or leaves data in the browser's storage. A failed test saves its artifacts.
func visit(t *testing.T, site string, profiles ...profile) *visitor {
	t.Helper()
	o := options{open: sharedShell}
	o.ReducedMotion = playwright.ReducedMotionReduce // to draw each step of an animation takes CPU
	o.Viewport, o.Locale = &playwright.Size{Width: 1280, Height: 800}, playwright.String("en-US")
	for _, p := range profiles {
		p(&o)
	}
	chromium, err := o.open()
	if err != nil {
		t.Fatalf("start the browser:\n%v", err)
	}
	context := modelstest.Value(chromium.NewContext(o.BrowserNewContextOptions))(t)
	context.SetDefaultTimeout(expectTimeout)
	context.SetDefaultNavigationTimeout(navigationTimeout)
	if err := context.Tracing().Start(playwright.TracingStartOptions{Snapshots: snapshots}); err != nil {
		t.Fatalf("start the trace: %v", err)
	}
	v := &visitor{watcher: watch(context), context: context}
	javaScript := o.JavaScriptEnabled == nil || *o.JavaScriptEnabled
	v.Tab = v.newTab(t, site, javaScript)
	t.Cleanup(func() { v.close(t) })
	return v
}

func (v *visitor) newTab(t *testing.T, site string, javaScript bool) *pages.Tab {
	t.Helper()
	page, err := v.context.NewPage()
	if err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	return pages.NewTab(t, page, site, javaScript, expectTimeout)
}

// secondTab opens another tab of the same profile.
func (v *visitor) secondTab(t *testing.T) *pages.Tab {
	t.Helper()
	return v.newTab(t, v.Site, v.JavaScript)
}

func (v *visitor) close(t *testing.T) {
	for _, problem := range v.problems() {
		t.Errorf("unexpected message in the browser: %s", problem)
	}
	if v.JavaScript {
		v.ExpectEmptyStorage()
	}
	if t.Failed() {
		folder, err := artifactsOf(t.Name())
		if err == nil {
			err = v.saveArtifacts(folder)
		}
		if err != nil {
			t.Errorf("save artifacts: %v", err)
		}
		t.Logf("screenshot, trace and logs are in %s (npx playwright-core show-trace %s)", folder, filepath.Join(folder, "trace.zip"))
	} else {
		_ = v.context.Tracing().Stop() // removes its folder in /tmp
	}
	_ = v.context.Close()
}

func (v *visitor) saveArtifacts(folder string) error {
	for i, page := range v.context.Pages() {
		name := "screenshot.png"
		if i > 0 {
			name = fmt.Sprintf("screenshot-%d.png", i+1)
		}
		if _, err := page.Screenshot(playwright.PageScreenshotOptions{Path: playwright.String(filepath.Join(folder, name))}); err != nil {
			return fmt.Errorf("take a screenshot: %w", err)
		}
	}
	if err := v.context.Tracing().Stop(filepath.Join(folder, "trace.zip")); err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "console.txt"), []byte(v.transcript()), 0o600); err != nil {
		return fmt.Errorf("write the console: %w", err)
	}
	return saveLogs(folder)
}

// artifactsOf creates a folder for a visitor of the test with this name.
func artifactsOf(test string) (string, error) {
	name := regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(test, "-")
	return os.MkdirTemp(artifactsDir, name+"-")
}

// setCookies adds cookies to the profile.
func (v *visitor) setCookies(t *testing.T, cookies []*http.Cookie) {
	t.Helper()
	var kept []playwright.OptionalCookie
	for _, cookie := range cookies {
		kept = append(kept, playwright.OptionalCookie{
			Name: cookie.Name, Value: cookie.Value, URL: playwright.String(v.Site),
			HttpOnly: playwright.Bool(true), SameSite: playwright.SameSiteAttributeLax,
		})
	}
	modelstest.Must(t, v.context.AddCookies(kept))
}

// clearCookies deletes the profile's cookies, which ends its session.
func (v *visitor) clearCookies(t *testing.T) {
	t.Helper()
	modelstest.Must(t, v.context.ClearCookies())
}

// addInitScript runs script in every page before the page's own scripts.
func (v *visitor) addInitScript(t *testing.T, script string) {
	t.Helper()
	modelstest.Must(t, v.context.AddInitScript(playwright.Script{Content: playwright.String(script)}))
}

// loseResponses lets forms to the path reach the server and drops the responses. With count it
// does so only for this many forms.
func (v *visitor) loseResponses(t *testing.T, path string, count ...int) {
	t.Helper()
	modelstest.Must(t, v.Page.Route(v.Site+path, func(route playwright.Route) {
		if route.Request().Method() != http.MethodPost {
			_ = route.Continue()
			return
		}
		_, _ = route.Fetch()
		_ = route.Abort()
	}, count...))
}

// loseRequests drops requests to URLs that match a pattern, before they reach the server.
func (v *visitor) loseRequests(t *testing.T, pattern string, count ...int) {
	t.Helper()
	modelstest.Must(t, v.Page.Route(pattern, func(route playwright.Route) { _ = route.Abort() }, count...))
}

// withoutPolls drops requests to URLs that match a pattern while do runs, so that a page stays as
// it is for as long as the test looks at it.
func (v *visitor) withoutPolls(t *testing.T, pattern string, do func()) {
	t.Helper()
	v.loseRequests(t, pattern)
	do()
	modelstest.Must(t, v.Page.Unroute(pattern))
}

// clipboard guards the clipboard, which all profiles of the browser share.
var clipboard sync.Mutex

// copied copies something and returns the text on the clipboard.
func (v *visitor) copied(copyIt func()) string {
	clipboard.Lock()
	defer clipboard.Unlock()
	copyIt()
	return v.Clipboard()
}

// portalBehindTLS starts a portal for this test behind a proxy that terminates TLS. site is the
// proxy's URL.
func portalBehindTLS(t *testing.T) (p *process, site string) {
	t.Helper()
	target := &url.URL{Scheme: "http"}
	front := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(front.Close)
	p = ownPortal(t, settings{baseURL: front.URL})
	target.Host = p.settings.address
	return p, front.URL
}
