package e2e

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// trivialSite serves one page under a strict policy, which the page breaks.
func trivialSite(t *testing.T, body string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
		case "/favicon.ico":
			w.WriteHeader(http.StatusNoContent)
			return
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>Trivial</title>` + body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestTheHarnessNoticesWhatPagesComplainOf(t *testing.T) {
	t.Parallel()
	v := visit(t, trivialSite(t, `<script>1</script><p style="color:red">Styled</p><img src="/missing.png" alt="">`))
	v.Open("/")
	problems := strings.Join(v.problems(), "\n")
	for _, want := range []string{"status of 404", "script-src", "style-src"} {
		if !strings.Contains(problems, want) {
			t.Errorf("no complaint about %q in:\n%s", want, problems)
		}
	}
	v.allow("violates the following Content Security Policy|status of 404")
	if rest := v.problems(); len(rest) > 0 {
		t.Errorf("complaints that were allowed still count: %q", rest)
	}
}

func TestTheHarnessNoticesUncaughtExceptions(t *testing.T) {
	t.Parallel()
	v := visit(t, trivialSite(t, ""))
	v.Open("/")
	if _, err := v.Page.Evaluate(`() => { setTimeout(() => { throw new Error("lost") }); return new Promise(r => setTimeout(r, 50)) }`); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(v.problems(), func(p string) bool { return strings.Contains(p, "lost") }) {
		t.Errorf("no complaint about the exception: %q", v.problems())
	}
	v.allow("lost")
}

func TestAFailedTestLeavesAScreenshotATraceAndTheConsole(t *testing.T) {
	t.Parallel()
	v := visit(t, trivialSite(t, "<h1>Seen</h1>"), withoutJavaScript)
	v.Open("/")
	folder := filepath.Join(t.TempDir(), "left")
	if err := v.saveArtifacts(folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"screenshot.png", "trace.zip", "console.txt"} {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || info.Size() == 0 {
			t.Errorf("%s was not left: %v", name, err)
		}
	}
}

func TestMissingToolsAreNamedWithTheWayToGetThem(t *testing.T) {
	t.Parallel()
	_, err := findTools(t.TempDir(), machine{
		getenv:   func(string) string { return "" },
		lookPath: func(string) (string, error) { return "", exec.ErrNotFound },
	})
	if err == nil {
		t.Fatal("an empty machine has all that the suite needs")
	}
	for _, want := range []string{"node is missing", "apt-get install nodejs", "chromium is missing", "apt-get install chromium", "cli.js is missing", "npm ci", "axe.min.js"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said in:\n%v", want, err)
		}
	}
}

func TestAPortalThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := startProcess(settings{binary: filepath.Join(t.TempDir(), "portal")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want it to say that the binary is not there", err)
	}
}
