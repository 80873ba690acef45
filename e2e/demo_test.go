package e2e

import (
	"context"
	"errors"
	"net/http"
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
	binary := modelstest.Value(builtPortal())(t)
	output, folder := &modelstest.LogBuffer{}, t.TempDir()
	command := exec.Command("tools/demo")
	command.Dir = root
	command.Env = append(exampleEnvironment(""), "TMPDIR="+folder, "DEMO_BINARY="+binary)
	for _, name := range []string{"PORTAL", "LIVEKIT", "MEDIA", "SITE"} {
		address := modelstest.Value(subprocess.FreeAddress())(t)
		command.Env = append(command.Env, "DEMO_"+name+"_PORT="+address[strings.LastIndex(address, ":")+1:])
	}
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	demo := modelstest.Value(subprocess.Start(command))(t)
	t.Cleanup(func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) })
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := demo.AwaitReady(ctx, func(context.Context) error {
		if !strings.Contains(output.String(), "Ctrl-C") {
			return errors.New("it has not printed how to stop it")
		}
		return nil
	}); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	links := regexp.MustCompile(`http://localhost:\S+`).FindAllString(output.String(), -1)
	if len(links) != 4 {
		t.Fatalf("%d links, want 4:\n%s", len(links), output)
	}

	visitor := visit(t, links[0], withMicrophone)
	visitor.allow(brokenConnections)
	widget := pages.OpenWidget(visitor.Tab)
	widget.Talk()
	widget.ExpectStatus(`Hello, Maria. You are in the call`)
	widget.ExpectVoice()
	owner := visit(t, "http://"+modelstest.Value(url.Parse(links[1]))(t).Host)
	pages.OpenLogin(owner.Tab).SignIn("demo@example.com", regexp.MustCompile(`Password: +(\S+)`).FindStringSubmatch(output.String())[1])
	keys := pages.ExpectKeys(owner.Tab)
	keys.Row(regexp.MustCompile(`nas_\.\.\.\w+`).FindString(output.String())).Revoke().Confirm()
	widget.AwaitEnd()
	widget.ExpectAlert(`can no longer start calls`)

	modelstest.Must(t, command.Process.Signal(os.Interrupt))
	err := demo.AwaitExit(time.Minute)
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) > 0 || err != nil {
		t.Errorf("after Ctrl-C: %v, %v remain", err, left)
	}
	for _, link := range links[:2] {
		if response, err := http.Get(link); err == nil {
			_ = response.Body.Close()
			t.Errorf("%s still answers", link)
		}
	}
}
