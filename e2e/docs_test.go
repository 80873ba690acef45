package e2e

import (
	"net/http"
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
	docs := pages.OpenReference(v.Tab)
	docs.TryIt(listAgents)
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

func TestSearchFindsOperationsGuidesAndCodes(t *testing.T) {
	t.Parallel()
	v := visit(t, sharedPortal(t).URL)
	docs := pages.OpenReference(v.Tab)
	v.Press("/")
	docs.Search("widget introspect")
	docs.ExpectFound("1 result", "Ask whether a widget token is active")
	docs.ExpectNotFound(listAgents)
	docs.Search("429")
	docs.ExpectFound("2 results", "RATE_LIMITED")
	docs.Search("nothing like it")
	docs.ExpectFound("No results", "")
	docs.Search("jitter")
	docs.ExpectFound("1 result", "Renew early and cache")
	v.Press("Enter")
	v.ExpectPath("/docs/guides")
}

func TestTryItSendsTheKeyToTheAPIOnly(t *testing.T) {
	t.Parallel()
	c := sharedPortal(t).newCustomer(t)
	agentID := c.newAgent(t, "Front desk")
	v := visit(t, c.at.URL)
	v.setCookies(t, c.session(t))
	secret := pages.OpenKeys(v.Tab).Add("try it")
	v.allowStatus(http.StatusUnauthorized)
	docs := pages.OpenReference(v.Tab)

	try := docs.TryIt(listAgents)
	try.Key("nas_wrong")
	if text := try.Send(listAgents, "401"); !strings.Contains(text, "UNAUTHORIZED") || !strings.Contains(text, "WWW-Authenticate") {
		t.Errorf("the response is %s", text)
	}
	try.Key(secret)
	if text := try.Send(listAgents, "200"); !strings.Contains(text, agentID) {
		t.Errorf("the response is %s", text)
	}
	const exchange = "Exchange the API key for a widget token"
	token := docs.TryIt(exchange)
	token.Key(secret)
	token.Body(`{"agentId": "` + agentID + `"}`)
	if text := token.Send(exchange, "200"); !strings.Contains(text, "access_token") {
		t.Errorf("the response is %s", text)
	}
	if n := v.count(http.MethodGet, "/api/agents", http.StatusOK); n != 1 {
		t.Errorf("the API got %d requests with the key, want 1", n)
	}
	if strings.Contains(v.Page.URL(), "nas_") {
		t.Errorf("the URL has the key: %s", v.Page.URL())
	}
	v.ExpectEmptyStorage()

	try.Close()
	try.Open()
	try.ExpectNoKey()
	v.Reload()
	docs.TryIt(exchange).ExpectNoKey()
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
