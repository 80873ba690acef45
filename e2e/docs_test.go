package e2e

import (
	"strings"
	"testing"

	"portal/e2e/pages"
)

// The copied command asks for the key in a terminal without showing it.
func TestContentsLeadToAnOperationWhoseCommandRuns(t *testing.T) {
	t.Parallel()
	const listAgents = "List the account's agents"
	c, v := startSignedIn(t, sharedPortal(t), withClipboard)
	agentID, secret := c.newAgent(t, "Front desk"), c.newKey(t, "curl")
	docs := pages.OpenChangelog(v.Tab)
	docs.FollowContents("Verify a widget token")
	v.ExpectPath("/docs/guides")
	if url := v.Page.URL(); !strings.HasSuffix(url, "#verify") {
		t.Errorf("the link leads to %s", url)
	}
	docs.FollowContents(listAgents)
	v.ExpectPath("/docs")
	v.ExpectHeading(listAgents)
	holdClipboard(t)
	docs.Click("Copy curl for " + listAgents)
	docs.ExpectStatus("Copied the curl command")
	command := v.Clipboard()
	for _, shell := range []string{"sh", "bash"} {
		output := inTerminal(t, shell, command, "API key: ", secret)
		if !strings.Contains(output, agentID) || strings.Contains(output, secret) {
			t.Errorf("%s prints\n%s", shell, output)
		}
	}
}
