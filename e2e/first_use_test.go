package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"portal/e2e/pages"
)

// The answer may be held while the database is looked at, but not by it: on both databases the page is told in seconds.
func TestTheRevealTellsOfTheFirstRequest(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, p *process) {
		c, v, keys := arrive(t, p)
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
			t.Errorf("the key stands in %d places of the page", n)
		}
		// A key that is used is not one that was kept.
		reveal.Done()
		reveal.ExpectGate()
		reveal.CloseWithoutCopying()
		reveal.ExpectClosed()
	})
}

// What is copied works where it is pasted: in a shell that has read the .env line.
func TestTheCommandOfTheRevealWorksAsPasted(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal("curl is missing: apt-get install curl")
	}
	c, v, keys := arrive(t, sharedPortal(t), withClipboard)
	holdClipboard(t)
	run := func(reveal pages.Reveal) map[string]any {
		reveal.CopyLine()
		reveal.ExpectCopied()
		line := v.Clipboard()
		reveal.CopyCommand()
		v.ExpectStatusSaying(`Copied the curl command`)
		shell := exec.Command("sh", "-c", line+"\n"+v.Clipboard()+" --silent --show-error --fail")
		shell.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
		output, err := shell.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", curl, err, output)
		}
		answer := map[string]any{}
		if err := json.Unmarshal(output, &answer); err != nil {
			t.Fatalf("the answer is no JSON: %v\n%s", err, output)
		}
		reveal.ExpectFirstRequestReceived()
		reveal.Done()
		reveal.ExpectClosed()
		return answer
	}
	if answer := run(keys.Generate("no agent yet")); answer["agents"] == nil {
		t.Errorf("without an agent the command answered %v", answer)
	}
	c.newAgent(t, "Front desk")
	if answer := run(keys.Generate("with an agent")); answer["access_token"] == nil {
		t.Errorf("with an agent the command answered %v", answer)
	}
}

// An answer that is held is no reason for the portal to be late when it is asked to stop.
func TestAHeldAnswerDoesNotHoldUpTheStop(t *testing.T) {
	t.Parallel()
	p := ownPortal(t, settings{})
	_, v, keys := arrive(t, p)
	v.allow(`Failed to (load resource|fetch)|net::ERR`)
	reveal := keys.Generate("production")
	reveal.ExpectFirstRequestAwaited()
	time.Sleep(1500 * time.Millisecond) // by now it is held
	start := time.Now()
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	if strings.Contains(p.log.String(), "requests dropped") {
		t.Error("requests were dropped")
	}
	if reveal.Key() == "" {
		t.Error("the key is no longer there")
	}
	if err := p.run(); err != nil {
		t.Fatal(err)
	}
	if err := p.awaitReady(); err != nil {
		t.Fatal(err)
	}
	reveal.Abandon()
}
