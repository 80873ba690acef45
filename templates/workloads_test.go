package templates_test

import (
	"os/exec"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"portal/models/workload"
	"portal/templates"
)

// Each example is well-formed, with an audience that needs escapes, and names the key.
func TestWorkloadExamplesParse(t *testing.T) {
	t.Parallel()
	const keyID, audience, tokenURL = "0198c2f4-6e22-7d41-b6a7-90f3c4d8e512", "api://it's ours: #1", "https://portal.example.net/oauth/token"
	for _, platform := range workload.Platforms() {
		whole := ""
		for _, snippet := range templates.WorkloadSnippets(platform.Provider, keyID, audience, tokenURL) {
			whole += snippet.Code()
			if snippet.Language == "bash" {
				checkShell(t, snippet.Code())
				// Version 1 of aws fetches a parameter that begins with http.
				if command, _, isAWS := strings.Cut(snippet.Code(), " --signing-algorithm"); isAWS && !strings.HasSuffix(command, `--audience '["api://it'\''s ours: #1"]'`) {
					t.Errorf("%s: the audience is no list in %s", platform.Name, command)
				}
				continue
			}
			var document any
			if err := yaml.Unmarshal([]byte(snippet.Code()), &document); err != nil {
				t.Errorf("%s: %v", platform.Name, err)
			}
			checkScripts(t, document, audience)
		}
		for _, want := range []string{keyID, tokenURL} {
			if !strings.Contains(whole, want) {
				t.Errorf("%s: no %s in\n%s", platform.Name, want, whole)
			}
		}
	}
}

// checkScripts checks the scripts and audiences of a YAML document.
func checkScripts(t *testing.T, value any, audience string) {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		for name, part := range value {
			if text, ok := part.(string); ok && (name == "aud" || name == "audience") && text != audience {
				t.Errorf("the audience is %q", text)
			} else if ok && name == "run" {
				checkShell(t, text)
			}
			if lines, ok := part.([]any); ok && name == "script" {
				for _, line := range lines {
					checkShell(t, line.(string))
				}
			}
			checkScripts(t, part, audience)
		}
	case []any:
		for _, part := range value {
			checkScripts(t, part, audience)
		}
	}
}

func checkShell(t *testing.T, script string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-n")
	command.Stdin = strings.NewReader(script)
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, output, script)
	}
}
