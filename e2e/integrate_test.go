package e2e

import (
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
)

// exampleServer is how an example that is a server is run, and how to get what runs it.
type exampleServer struct {
	name, file string
	command    []string
	missing    string
}

var exampleServers = []exampleServer{
	{"Go", "server.go", []string{"go", "run", "server.go"}, "install Go (https://go.dev/dl)"},
	{"Node", "server.mjs", []string{"node", "server.mjs"}, "install Node.js (Debian: apt-get install nodejs)"},
	{"Python", "server.py", []string{"python3", "server.py"}, "install it (Debian: apt-get install python3)"},
}

func TestExamplesRunAsTheyAreCopied(t *testing.T) {
	t.Parallel()
	c := sharedPortal(t).newCustomer(t)
	agentID := c.newAgent(t, "Front desk")
	v := visit(t, c.at.URL, withClipboard)
	v.keep(t, c.session(t))
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
		t.Errorf("the clipboard holds\n%s\nand not the example", v.Clipboard())
	}

	t.Run("curl", func(t *testing.T) {
		requireProgram(t, "curl", "install it (Debian: apt-get install curl)")
		command := exec.Command("sh", "-c", examples["curl"])
		command.Env = exampleEnvironment(secret)
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("it fails: %v\n%s", err, output)
		}
		expectToken(t, c.at.URL, secret, agentID, output)
	})
	running := map[string]runningExample{}
	for _, server := range exampleServers {
		example := server.start(t, examples[server.name], secret)
		running[server.name] = example
		if want := "listening on " + example.site; !example.says(want) {
			t.Errorf("the %s example does not say %q:\n%s", server.name, want, example.said)
		}
		status, body := askExample(t, example.site)
		if status != http.StatusOK {
			t.Errorf("the %s example answers %d: %s", server.name, status, body)
			continue
		}
		expectToken(t, c.at.URL, secret, agentID, body)
	}
	customersPage(t, running["Node"].site, examples["Browser"])

	if _, err := c.at.operator(secret, "key", "revoke", "--key", "-"); err != nil {
		t.Fatal(err)
	}
	for name, example := range running {
		if status, body := askExample(t, example.site); status != http.StatusBadGateway || strings.Contains(string(body), "access_token") {
			t.Errorf("with a revoked key the %s example answers %d: %s", name, status, body)
		}
		if !example.says("revoked") || strings.Contains(example.said.String(), secret) {
			t.Errorf("the %s example does not log why the key was refused, or logs the key:\n%s", name, example.said)
		}
	}
}

func TestExamplesDoNotStartWithoutAKey(t *testing.T) {
	t.Parallel()
	_, v, keys := arrive(t, sharedPortal(t))
	keys.Follow("Integrate")
	page := pages.OpenIntegrate(v.Tab)
	for _, server := range exampleServers {
		page.Choose(server.name)
		_, said, exited := server.run(t, page.Example(server.name), "")
		select {
		case err := <-exited:
			if err == nil {
				t.Errorf("the %s example ends as if all were well", server.name)
			}
		case <-time.After(time.Minute):
			t.Errorf("the %s example goes on", server.name)
		}
		if said := said.String(); !strings.Contains(said, "NAS_API_KEY is not set\n") || strings.Contains(said, "Traceback") {
			t.Errorf("the %s example says\n%s", server.name, said)
		}
	}
}

func TestExamplesAreForTheAgentThatIsChosen(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, keys := arrive(t, sharedPortal(t), mode)
		keys.Follow("Integrate")
		v.ExpectTextSaying("You have no agent yet")
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

// runningExample is an example that serves.
type runningExample struct {
	site string   // its address
	said *logBook // on standard output and standard error
}

// says waits for what the example prints: it comes through a pipe.
func (e runningExample) says(text string) bool {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(e.said.String(), text) {
			return true
		}
	}
	return false
}

// start runs the example with the key in its environment until it serves.
func (s exampleServer) start(t *testing.T, code, key string) runningExample {
	t.Helper()
	address, said, exited := s.run(t, code, key)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		select {
		case <-exited:
			t.Fatalf("the %s example ended instead of serving:\n%s", s.name, said)
		default:
		}
		response, err := formClient.Get("http://" + address + "/")
		if err == nil {
			_ = response.Body.Close()
			return runningExample{"http://" + address, said}
		}
	}
	t.Fatalf("the %s example does not serve:\n%s", s.name, said)
	return runningExample{}
}

// run runs the example until the test ends, unless it ends by itself before.
func (s exampleServer) run(t *testing.T, code, key string) (address string, said *logBook, exited <-chan error) {
	t.Helper()
	requireProgram(t, s.command[0], s.missing)
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, s.file), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	said = &logBook{}
	command := exec.Command(s.command[0], s.command[1:]...)
	command.Dir = folder
	command.Env = append(exampleEnvironment(key), "PORT="+address[strings.LastIndex(address, ":")+1:])
	command.Stdout, command.Stderr = said, said
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run has a child, which is the server
	if err := command.Start(); err != nil {
		t.Fatalf("start the %s example: %v", s.name, err)
	}
	ended, gone := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- command.Wait()
		close(gone)
	}()
	t.Cleanup(func() {
		select {
		case <-gone:
		default:
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
			<-gone
		}
	})
	return address, said, ended
}

func askExample(t *testing.T, site string) (status int, body []byte) {
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

// expectToken makes sure that the answer holds a token for the agent that is good.
func expectToken(t *testing.T, site, key, agentID string, answer []byte) {
	t.Helper()
	var issued struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(answer, &issued); err != nil {
		t.Fatalf("the answer is not JSON: %v\n%s", err, answer)
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

// customersPage is a page of the customer's own, with the browser's example in it and the server's example behind it.
func customersPage(t *testing.T, server, code string) {
	t.Helper()
	behind, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	routes := http.NewServeMux()
	routes.Handle("/widget-token", httputil.NewSingleHostReverseProxy(behind))
	routes.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>Customer</title><link rel="icon" href="data:,"><script>` + code + `</script>`))
	})
	site := httptest.NewServer(routes)
	t.Cleanup(site.Close)
	v := visit(t, site.URL)
	v.Open("/")
	got, err := v.Page.Evaluate(`async () => { const { token, seconds } = await widgetToken(); return token.split('.').length + ' parts, ' + (seconds > 0) }`)
	if err != nil || got != "3 parts, true" {
		t.Errorf("in a browser the example gives %v: %v", got, err)
	}
}

func requireProgram(t *testing.T, program, remedy string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("%s is missing: %s", program, remedy)
	}
}

// exampleEnvironment is what a customer's server runs in, without a key if it is empty.
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
