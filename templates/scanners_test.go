package templates

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A key with a wrong checksum is found too: a scanner knows only the shape, and the portal answers
// a report of it like one of an unknown key.
func TestGitleaksFindsKeysAndNothingInTheREADME(t *testing.T) {
	t.Parallel()
	scanner, err := filepath.Abs("../bin/tools/gitleaks")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(scanner); err != nil {
		t.Fatal("run `make bin/tools/gitleaks` at the root of the repository: ", err)
	}
	rules, err := filepath.Abs("documentation/snippets/gitleaks.toml")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	// Composed, so that this file has no key.
	const prefix, random = "nas_", "0123456789ABCDEFGHIJKLMNOPQRST"
	key := prefix + random + "49UbFO"
	scan := func(input string, arguments ...string) string {
		t.Helper()
		arguments = append(arguments, "--config", rules, "--no-banner", "--exit-code", "7", "--report-format", "csv", "--report-path", "-")
		command := exec.CommandContext(t.Context(), scanner, arguments...)
		command.Stdin = strings.NewReader(input)
		report, err := command.Output()
		if err != nil && command.ProcessState.ExitCode() != 7 {
			t.Fatalf("%s: %v", arguments, err)
		}
		return string(report)
	}
	tree := t.TempDir()
	for name, content := range map[string]string{
		"leak.env": "NAS_API_KEY=" + key + "\n", "wrong_checksum.js": `const key = "` + prefix + random + "49UbFP\"\n", "README.md": string(readme),
		"short.txt": key[:39] + "\n", "long.txt": key + "A\n", "name.go": "nas_tools(" + random + ")\n",
	} {
		if err := os.WriteFile(filepath.Join(tree, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report := scan("", "dir", tree)
	for _, file := range []string{"leak.env", "wrong_checksum.js"} {
		if !strings.Contains(report, file) {
			t.Errorf("%s is clean", file)
		}
	}
	if found := strings.Count(report, "nas-api-key,"); found != 2 || strings.Count(report, "\n") != 3 {
		t.Errorf("%d keys are found, want 2:\n%s", found, report)
	}
	diff := "diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-NAS_API_KEY=\n+NAS_API_KEY=" + key + "\n"
	if report := scan(diff, "stdin"); !strings.Contains(report, key) {
		t.Errorf("the key in a diff is not found:\n%s", report)
	}
}
