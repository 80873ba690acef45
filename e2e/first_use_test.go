package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"portal/e2e/pages"
)

// The dialog polls, and shows the first request within seconds on both databases.
func TestTheRevealShowsTheFirstRequest(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, p *process) {
		c, v, keys := startSignedIn(t, p)
		agentID := c.newAgent(t, "Front desk")
		reveal := keys.Generate("production")
		secret := reveal.Key()
		reveal.ExpectFirstRequestAwaited()

		backend{site: p.URL, key: secret}.expectServed(t, agentID)
		reveal.ExpectFirstRequestReceived()
		if reveal.Key() != secret {
			t.Error("the key is no longer there")
		}
		if n := v.Occurrences(secret); n != 1 {
			t.Errorf("the page contains the key %d times, want once", n)
		}
		// The customer can still lose a key that is in use, so Done still warns.
		reveal.Done()
		reveal.ExpectGate()
		reveal.CloseWithoutCopying()
		reveal.ExpectClosed()
	})
}

// The copied curl command runs in a shell that has the copied .env line.
func TestTheCurlCommandRunsAsPasted(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal("curl is missing: apt-get install curl")
	}
	c, v, keys := startSignedIn(t, sharedPortal(t), withClipboard)
	holdClipboard(t)
	run := func(reveal pages.Reveal) map[string]any {
		reveal.CopyLine()
		reveal.ExpectCopied()
		line := v.Clipboard()
		reveal.CopyCommand()
		v.ExpectStatusSaying(`Copied the curl command`)
		shell := exec.Command("sh", "-c", line+"\n"+v.Clipboard())
		shell.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
		output, err := shell.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", curl, err, output)
		}
		body := map[string]any{}
		if err := json.Unmarshal(output, &body); err != nil {
			t.Fatalf("the response is not JSON: %v\n%s", err, output)
		}
		reveal.ExpectFirstRequestReceived()
		reveal.Done()
		reveal.ExpectClosed()
		return body
	}
	if body := run(keys.Generate("no agent yet")); body["agents"] == nil {
		t.Errorf("without an agent the command printed %v", body)
	}
	c.newAgent(t, "Front desk")
	if body := run(keys.Generate("with an agent")); body["access_token"] == nil {
		t.Errorf("with an agent the command printed %v", body)
	}
}
