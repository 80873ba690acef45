package e2e

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"portal/e2e/pages"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

// The script is make demo.
func TestDemoRunsACallThatARevocationEnds(t *testing.T) {
	t.Parallel()
	binary, err := theRun.getBinary()
	if err != nil {
		t.Fatal(err)
	}
	output, folder := &modelstest.LogBuffer{}, t.TempDir()
	command := exec.Command("tools/demo")
	command.Dir = theRun.root
	command.Env = append(exampleEnvironment(""), "TMPDIR="+folder, "DEMO_BINARY="+binary)
	for _, name := range []string{"PORTAL", "LIVEKIT", "MEDIA", "SITE"} {
		address, err := subprocess.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		command.Env = append(command.Env, "DEMO_"+name+"_PORT="+address[strings.LastIndex(address, ":")+1:])
	}
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	demo, err := subprocess.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) })
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(output.String(), "Ctrl-C"); time.Sleep(50 * time.Millisecond) {
		select {
		case <-demo.Exited():
			t.Fatalf("the demo stops:\n%s", output)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the demo does not start:\n%s", output)
		}
	}
	links := regexp.MustCompile(`http://\S+`).FindAllString(output.String(), -1)
	if len(links) != 4 {
		t.Fatalf("%d links, want 4:\n%s", len(links), output)
	}

	visitor := visit(t, links[0], withMicrophone)
	visitor.allow(brokenConnections)
	widget := pages.OpenWidget(visitor.Tab)
	widget.Talk()
	widget.ExpectStatusSaying(`You are in the call`)
	widget.ExpectVoice()
	portal, err := url.Parse(links[1])
	if err != nil {
		t.Fatal(err)
	}
	owner := visit(t, "http://"+portal.Host)
	pages.OpenLogin(owner.Tab).SignIn("demo@example.com", regexp.MustCompile(`Password: +(\S+)`).FindStringSubmatch(output.String())[1])
	keys := pages.ExpectKeys(owner.Tab)
	pressed := time.Now()
	keys.RevokeMasked(regexp.MustCompile(`nas_\.\.\.\w+`).FindString(output.String()))
	widget.AwaitEnd()
	t.Logf("the call ended %s after Revoke was pressed (limit %s)", time.Since(pressed).Round(10*time.Millisecond), hangUpLimit)
	widget.ExpectAlertSaying(`can no longer start calls`)

	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case <-demo.Exited():
	case <-time.After(time.Minute):
		t.Fatal("the demo does not stop")
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) > 0 || !demo.ProcessState.Success() {
		t.Errorf("after Ctrl-C: %s, %v remain", demo.ProcessState, left)
	}
	for _, link := range links[:2] {
		if response, err := formClient.Get(link); err == nil {
			_ = response.Body.Close()
			t.Errorf("%s still answers", link)
		}
	}
}
