package pages

import "github.com/playwright-community/playwright-go"

// OpenRevoked opens the page of revoked keys.
func (k Keys) OpenRevoked() RevokedKeys {
	k.t.Helper()
	k.click(k.role("link", "Revoked keys"), "Revoked keys")
	k.ExpectPath("/api-keys/revoked")
	k.ExpectHeading("Revoked keys")
	return RevokedKeys(k)
}

// RevokedKeys is the page at /api-keys/revoked.
type RevokedKeys struct{ Frame }

// ExpectListed waits for a revoked key with this label, user and number of refused requests.
func (k RevokedKeys) ExpectListed(label, by, refused string) {
	k.t.Helper()
	row := k.role("table", "Revoked API keys").GetByRole("row").Filter(playwright.LocatorFilterOptions{Has: k.role("cell", label)})
	for _, text := range []string{by, refused} {
		k.visible(within(row, "cell", text), "%q in the row of %q", text, label)
	}
}

// OpenChart opens the chart of the key with this number of refused requests.
func (k RevokedKeys) OpenChart(refused string) {
	k.t.Helper()
	k.click(k.role("link", refused), refused)
	k.visible(k.Page.GetByText("Last 24 hours"), "details")
	k.settled()
}
