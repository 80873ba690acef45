package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portal/models/modelstest"
)

func TestTheHarnessReportsErrorsOfPages(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing.png" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		_, _ = io.WriteString(w, `<!doctype html><html lang="en"><title>Errors</title><script>1</script>`+
			`<p style="color:red">Styled</p><img src="/missing.png" alt="">`)
	}))
	t.Cleanup(site.Close)
	v := visit(t, site.URL)
	v.Open("/")
	v.Evaluate(`() => { setTimeout(() => { throw new Error("lost") }); return new Promise(r => setTimeout(r, 50)) }`)
	problems := strings.Join(v.problems(), "\n")
	for _, want := range []string{"status of 404", "script-src", "style-src", "lost"} {
		if !strings.Contains(problems, want) {
			t.Errorf("no problem with %q in:\n%s", want, problems)
		}
	}
	v.allow("violates the following Content Security Policy|status of 404|lost")
	if rest := v.problems(); len(rest) > 0 {
		t.Errorf("allowed problems are still reported: %q", rest)
	}
	folder := t.TempDir()
	modelstest.Must(t, v.saveArtifacts(folder))
	for _, name := range []string{"screenshot.png", "trace.zip", "console.txt"} {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || info.Size() == 0 {
			t.Errorf("%s was not saved: %v", name, err)
		}
	}
}
