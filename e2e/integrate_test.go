package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"portal/e2e/pages"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

// exampleServer is an example that runs a server: its command, and how to install the command if it
// is missing.
type exampleServer struct {
	name, file string
	command    []string
	missing    string
	env        []string // more environment variables
}

var exampleServers = []exampleServer{
	{"Go", "server.go", []string{"go", "run", "server.go"}, "install Go (https://go.dev/dl)", nil},
	{"Node", "server.mjs", []string{"node", "server.mjs"}, "install Node.js (Debian: apt-get install nodejs)", nil},
	{"Python", "server.py", []string{"python3", "server.py"}, "install it (Debian: apt-get install python3)", nil},
}

func TestExamplesRunAsCopied(t *testing.T) {
	t.Parallel()
	c := sharedPortal(t).newCustomer(t)
	agentID := c.newAgent(t, "Front desk")
	v := visit(t, c.at.URL, withClipboard)
	v.setCookies(t, c.session(t))
	reveal := pages.OpenKeys(v.Tab).Generate("example")
	secret := reveal.Key()

	page := pages.OpenIntegrate(v.Tab)
	examples := map[string]string{"curl": page.Example("curl"), "Browser": page.Example("Browser")}
	page.ExpectHidden("Go")
	for _, server := range exampleServers {
		page.Choose(server.name)
		examples[server.name] = page.Example(server.name)
		page.ExpectHidden("curl")
	}
	holdClipboard(t)
	page.Copy("Python")
	page.ExpectStatusSaying(`Copied the Python example`)
	if v.Clipboard() != examples["Python"] {
		t.Errorf("the clipboard does not hold the example but\n%s", v.Clipboard())
	}

	t.Run("curl", func(t *testing.T) {
		requireProgram(t, "curl", "install it (Debian: apt-get install curl)")
		command := exec.Command("sh", "-c", examples["curl"])
		command.Env = exampleEnvironment(secret)
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("the example fails: %v\n%s", err, output)
		}
		expectToken(t, c.at.URL, secret, agentID, output)
	})
	running := map[string]runningExample{}
	for _, server := range exampleServers {
		example := server.start(t, examples[server.name], secret)
		running[server.name] = example
		if want := "listening on " + example.site; !example.prints(want) {
			t.Errorf("the %s example does not print %q:\n%s", server.name, want, example.output)
		}
		status, body := requestFromExample(t, example.site)
		if status != http.StatusOK {
			t.Errorf("the %s example returns %d: %s", server.name, status, body)
			continue
		}
		expectToken(t, c.at.URL, secret, agentID, body)
	}
	expectTokenInBrowser(t, running["Node"].site, examples["Browser"])

	if _, err := c.at.operator(secret, "key", "revoke", "--key", "-"); err != nil {
		t.Fatal(err)
	}
	for name, example := range running {
		if status, body := requestFromExample(t, example.site); status != http.StatusBadGateway || strings.Contains(string(body), "access_token") {
			t.Errorf("with a revoked key the %s example returns %d: %s", name, status, body)
		}
		if !example.prints("revoked") || strings.Contains(example.output.String(), secret) {
			t.Errorf("the %s example does not log why the key was refused, or logs the key:\n%s", name, example.output)
		}
	}
}

func TestExamplesDoNotStartWithoutAKey(t *testing.T) {
	t.Parallel()
	_, v, keys := startSignedIn(t, sharedPortal(t))
	keys.Follow("Integrate")
	page := pages.OpenIntegrate(v.Tab)
	for _, server := range exampleServers {
		page.Choose(server.name)
		example := server.run(t, page.Example(server.name), "")
		select {
		case <-example.Exited():
			if example.ProcessState.Success() {
				t.Errorf("the %s example exits with status 0", server.name)
			}
		case <-time.After(time.Minute):
			t.Errorf("the %s example does not exit", server.name)
		}
		output := example.output.String()
		if !strings.Contains(output, "NAS_API_KEY is not set\n") || strings.Contains(output, "Traceback") {
			t.Errorf("the output of the %s example:\n%s", server.name, output)
		}
	}
}

func TestExamplesUseTheChosenAgent(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, keys := startSignedIn(t, sharedPortal(t), mode)
		keys.Follow("Integrate")
		v.ExpectTextSaying("You have no agents yet")
		first, second := c.newAgent(t, "Front desk"), c.newAgent(t, "Night shift")
		page := pages.OpenIntegrate(v.Tab)
		if code := page.Example("curl"); !strings.Contains(code, first) {
			t.Errorf("the example is not for the first agent by name:\n%s", code)
		}
		page.ShowFor("Night shift")
		page.Choose("Go")
		if code := page.Example("Go"); !strings.Contains(code, second) {
			t.Errorf("the example is not for the agent that was chosen:\n%s", code)
		}
	})
}

// runningExample is an example server that is ready.
type runningExample struct {
	*subprocess.Child

	site   string                // its URL
	folder string                // its working directory
	output *modelstest.LogBuffer // standard output and standard error
}

// prints reports whether the example prints text within a minute. Output arrives through a
// pipe, with a delay.
func (e runningExample) prints(text string) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(e.output.String(), text) {
			return true
		}
	}
	return false
}

// start runs the example with the key in its environment and returns when it serves.
func (s exampleServer) start(t *testing.T, code, key string) runningExample {
	t.Helper()
	e := s.run(t, code, key)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := e.AwaitReady(ctx, func(context.Context) error {
		response, err := formClient.Get(e.site + "/")
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	})
	if err != nil {
		t.Fatalf("the %s example: %v\n%s", s.name, err, e.output)
	}
	return e
}

// run starts the example. It is killed at the end of the test.
func (s exampleServer) run(t *testing.T, code, key string) runningExample {
	t.Helper()
	requireProgram(t, s.command[0], s.missing)
	address, err := subprocess.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, s.file), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	output := &modelstest.LogBuffer{}
	command := exec.Command(s.command[0], s.command[1:]...)
	command.Dir = folder
	command.Env = append(exampleEnvironment(key), "PORT="+address[strings.LastIndex(address, ":")+1:])
	command.Env = append(command.Env, s.env...)
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run has a child, which is the server
	child, err := subprocess.Start(command)
	if err != nil {
		t.Fatalf("start the %s example: %v", s.name, err)
	}
	t.Cleanup(func() {
		select {
		case <-child.Exited():
		default:
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
			<-child.Exited()
		}
	})
	return runningExample{child, "http://" + address, folder, output}
}

func requestFromExample(t *testing.T, site string) (status int, body []byte) {
	t.Helper()
	response, err := formClient.Post(site+"/widget-token", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

// expectToken checks that body holds a valid token for the agent.
func expectToken(t *testing.T, site, key, agentID string, body []byte) {
	t.Helper()
	var issued struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &issued); err != nil {
		t.Fatalf("the response is not JSON: %v\n%s", err, body)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, site+"/api/widget/introspect",
		strings.NewReader(url.Values{"token": {issued.AccessToken}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := formClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var token struct {
		Active  bool   `json:"active"`
		AgentID string `json:"agent_id"`
	}
	if err := json.NewDecoder(response.Body).Decode(&token); err != nil {
		t.Fatal(err)
	}
	if !token.Active || token.AgentID != agentID {
		t.Errorf("the token is %+v, want an active one for %s", token, agentID)
	}
}

// expectTokenInBrowser opens a page with the browser example and checks that it gets a token from
// the server example.
func expectTokenInBrowser(t *testing.T, server, code string) {
	t.Helper()
	backendURL, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	routes := http.NewServeMux()
	routes.Handle("/widget-token", httputil.NewSingleHostReverseProxy(backendURL))
	routes.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>Customer</title><link rel="icon" href="data:,"><script>` + code + `</script>`))
	})
	site := httptest.NewServer(routes)
	t.Cleanup(site.Close)
	v := visit(t, site.URL)
	v.Open("/")
	got, err := v.Page.Evaluate(`async () => { const { token, seconds } = await widgetToken(); return token.split('.').length + ' parts, ' + (seconds > 0) }`)
	if err != nil || got != "3 parts, true" {
		t.Errorf("the browser example returns %v, error %v", got, err)
	}
}

func requireProgram(t *testing.T, program, remedy string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("%s is missing: %s", program, remedy)
	}
}

// exampleEnvironment returns the environment of an example, with the key unless it is empty.
func exampleEnvironment(key string) []string {
	var env []string
	if key != "" {
		env = append(env, "NAS_API_KEY="+key)
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GOCACHE", "GOROOT"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
