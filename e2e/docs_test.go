package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portal/e2e/pages"
	"portal/models/modelstest"
)

const listAgents = "List the account's agents"

func TestDocumentationIsAccessibleAndFits(t *testing.T) {
	t.Parallel()
	v := visit(t, sharedPortal(t).URL, withoutMotion)
	i := inspect(t, v.Tab)
	pages.OpenReference(v.Tab)
	i.check(t, "API reference")
	pages.OpenGuides(v.Tab)
	i.check(t, "guides")
	pages.OpenChangelog(v.Tab)
	i.check(t, "changelog")
}

func TestContentsLeadToSectionsOfEveryPage(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		v := visit(t, sharedPortal(t).URL, mode)
		docs := pages.OpenChangelog(v.Tab)
		docs.Follow(listAgents)
		v.ExpectPath("/docs")
		v.ExpectHeading(listAgents)
		docs.Follow("Verify a widget token")
		v.ExpectPath("/docs/guides")
		if url := v.Page.URL(); !strings.HasSuffix(url, "#verify") {
			t.Errorf("the link leads to %s", url)
		}
	})
}

// The command asks for the key in a terminal without showing it.
func TestCopiedCurlAsksForTheKey(t *testing.T) {
	t.Parallel()
	c := sharedPortal(t).newCustomer(t)
	agentID := c.newAgent(t, "Front desk")
	v := visit(t, c.at.URL, withClipboard)
	v.setCookies(t, c.session(t))
	secret := pages.OpenKeys(v.Tab).Add("curl")
	holdClipboard(t)
	pages.OpenReference(v.Tab).CopyCurl(listAgents)
	command := v.Clipboard()
	for _, shell := range []string{"sh", "bash"} {
		output := inTerminal(t, shell, command, "API key: ", secret)
		if !strings.Contains(output, agentID) || strings.Contains(output, secret) {
			t.Errorf("%s prints\n%s", shell, output)
		}
	}
}

// inTerminal runs command in a shell on a terminal. It enters input after the prompt, and returns
// what the terminal shows.
func inTerminal(t *testing.T, shell, command, prompt, input string) string {
	t.Helper()
	requireProgram(t, "script", "install it (Debian: apt-get install bsdutils)")
	requireProgram(t, shell, "install it")
	file := filepath.Join(t.TempDir(), "command.sh")
	if err := os.WriteFile(file, []byte(command+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	output := &modelstest.LogBuffer{}
	terminal := exec.CommandContext(t.Context(), "script", "--quiet", "--return", "--flush", "--command", shell+" "+file, "/dev/null")
	terminal.Env = exampleEnvironment("")
	terminal.Stdout, terminal.Stderr = output, output
	keyboard, err := terminal.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := terminal.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(output.String(), prompt); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not ask: %s", shell, output)
		}
	}
	if _, err := keyboard.Write([]byte(input + "\n")); err != nil {
		t.Fatal(err)
	}
	if err := terminal.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s", shell, err, output)
	}
	return output.String()
}
