package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
	"portal/models/modelstest"
)

// The copied command asks for the key in a terminal without showing it.
func TestContentsLeadToAnOperationWhoseCommandRuns(t *testing.T) {
	t.Parallel()
	const listAgents = "List the account's agents"
	c, v := startSignedIn(t, sharedPortal(t), withClipboard)
	agentID, secret := c.newAgent(t, "Front desk"), c.newKey(t, "curl")
	docs := pages.OpenDocs(v.Tab, "/docs/changelog", "Changelog")
	docs.FollowContents("Verify a widget token")
	v.ExpectPath("/docs/gateway")
	if url := v.Page.URL(); !strings.HasSuffix(url, "#verify") {
		t.Errorf("the link leads to %s", url)
	}
	docs.FollowContents(listAgents)
	v.ExpectPath("/docs")
	v.ExpectHeading(listAgents)
	command := v.copied(func() {
		docs.Click("Copy curl for " + listAgents)
		docs.ExpectStatus("Copied the curl command")
	})
	for _, shell := range []string{"sh", "bash"} {
		output := inTerminal(t, shell, command, "API key: ", secret)
		if !strings.Contains(output, agentID) || strings.Contains(output, secret) {
			t.Errorf("%s prints\n%s", shell, output)
		}
	}
}

// Readers search a page with their browser, also on a phone, where codes in tables are whole.
func TestNoPageOfTheDocumentationIsLong(t *testing.T) {
	t.Parallel()
	p := ownPortal(t, settings{extra: []string{"PORTAL_OPERATOR_TOKEN=" + strings.Repeat("operator", 8)}})
	v := visit(t, p.URL)
	if err := v.Page.SetViewportSize(360, 780); err != nil {
		t.Fatal(err)
	}
	for path, heading := range map[string]string{
		"/docs": "Use the API", "/docs/widget": "Complete widget", "/docs/guides": "Guides", "/docs/leaked-keys": "Leaked keys", "/docs/errors": "Errors", "/docs/gateway": "Run behind a gateway",
		"/docs/reports": "Reports", "/docs/webhooks": "Webhooks", "/docs/operate/reports": "Operate: activity and calls",
		"/docs/operate": "Operate", "/docs/operate/people": "Operate: people", "/docs/operate/keys": "Operate: agents and keys", "/docs/changelog": "Changelog",
	} {
		v.Open(path)
		v.ExpectHeading(heading)
		if height := v.Evaluate(`() => document.documentElement.scrollHeight`).(int); height > 12_500 {
			t.Errorf("%s is %d px high", path, height)
		}
		if broken := v.Evaluate(`() => [...document.querySelectorAll("td code")].filter(code =>
			/^\w+$/.test(code.textContent) && code.getClientRects().length > 1).map(code => code.textContent).join(" ")`); broken != "" {
			t.Errorf("%s breaks %s", path, broken)
		}
	}
	// Sections that have moved to another page are found by their old addresses.
	for old, path := range map[string]string{
		"/docs#authorizeKey": "/docs/gateway", "/docs#RATE_LIMITED": "/docs/errors", "/docs#listUsers": "/docs/operate/people",
		"/docs/guides#verify": "/docs/gateway", "/docs/guides#quick-start": "/docs", "/docs/guides#widget": "/docs/widget",
	} {
		v.Open("/docs/changelog")
		v.Open(old)
		v.ExpectPath(path)
	}
}

// Paper is white whatever the colors of the screen are.
func TestDarkPagesArePrintedLikeLightOnes(t *testing.T) {
	t.Parallel()
	_, v := startSignedIn(t, sharedPortal(t))
	for _, path := range []string{"/integrate", "/docs", "/usage"} {
		v.Open(path)
		v.ExpectPath(path)
		colors := func(scheme *playwright.ColorScheme) string {
			media := playwright.PageEmulateMediaOptions{Media: playwright.MediaPrint, ColorScheme: scheme}
			modelstest.Must(t, v.Page.EmulateMedia(media))
			return fmt.Sprint(v.Evaluate(`() => [...document.body.querySelectorAll("*")].map((element) => {
				const { color, backgroundColor, borderTopColor, fill } = getComputedStyle(element)
				return [element.tagName, element.className, color, backgroundColor, borderTopColor, fill].join(" ")
			}).join("\n")`))
		}
		if light, dark := colors(playwright.ColorSchemeLight), colors(playwright.ColorSchemeDark); light != dark {
			for i, line := range strings.Split(dark, "\n") {
				if want := strings.Split(light, "\n")[i]; line != want {
					t.Errorf("%s is printed as %s, want %s", path, line, want)
					break
				}
			}
		}
		if v.Evaluate(`() => document.querySelector(".docs-search")?.checkVisibility() ?? false`).(bool) {
			t.Errorf("%s is printed with its search", path)
		}
	}
}
