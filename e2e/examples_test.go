package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"portal/e2e/pages"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

// exampleServer is an example that runs a server: its command, and more environment variables.
type exampleServer struct {
	name, file string
	command    []string
	env        []string
}

var exampleServers = []exampleServer{
	{"Go", "server.go", []string{"go", "run", "server.go"}, nil},
	{"Node", "server.mjs", []string{"node", "server.mjs"}, nil},
	{"Python", "server.py", []string{"python3", "server.py"}, nil},
}

func TestExamplesRunAsCopied(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t), withClipboard)
	pages.OpenIntegrate(v.Tab).ExpectText("You have no agents yet")
	first, agentID, secret := c.newAgent(t, "Front desk"), c.newAgent(t, "Night shift"), c.newKey(t, "example")
	page := pages.OpenIntegrate(v.Tab)
	if code := page.Example("curl"); !strings.Contains(code, first) {
		t.Errorf("the example is not for the first agent by name:\n%s", code)
	}
	page.Focus("combobox", "Examples for")
	page.Choose("Examples for", "Night shift")
	page.ExpectText(agentID)
	page.ExpectFocus("combobox", "Examples for")
	page.ExpectPath("/integrate?agent=" + agentID)
	page.ChooseLanguage("Python")
	page.ExpectNo("region", "curl example")
	if got := v.copied(func() {
		page.Click("Copy Python example")
		page.ExpectStatus(`Copied the Python example`)
	}); got != page.Example("Python") {
		t.Errorf("the clipboard does not hold the example but\n%s", got)
	}

	curl := exec.Command("sh", "-c", page.Example("curl"))
	curl.Env = exampleEnvironment(secret)
	c.expectTokenFor(t, secret, agentID, string(modelstest.Value(curl.Output())(t)))
	var running []runningExample
	for _, server := range exampleServers {
		server.expectNoStart(t, page.Example(server.name), "", "NAS_API_KEY is not set\n")
		example := server.start(t, page.Example(server.name), secret)
		if want := "listening on " + example.site; !example.prints(want) {
			t.Errorf("the %s example does not print %q:\n%s", server.name, want, example.output)
		}
		client := modelstest.NewVisitor(t, example.site)
		c.expectTokenFor(t, secret, agentID, client.Post("/widget-token?page=1", nil).Is(http.StatusOK).Body)
		client.Get("/widget-token?page=1").Is(http.StatusMethodNotAllowed)
		client.Get("/").Is(http.StatusNotFound)
		running = append(running, example)
	}

	backend := modelstest.Value(url.Parse(running[1].site))(t)
	site := customerSite(t, page.Example("Browser"), "/widget-token", httputil.NewSingleHostReverseProxy(backend))
	browser := visit(t, site)
	browser.Open("/")
	got := browser.Evaluate(`async () => { const { token, seconds } = await widgetToken(); return token.split('.').length + ' parts, ' + (seconds > 0) }`)
	if got != "3 parts, true" {
		t.Errorf("the browser example returns %v", got)
	}

	c.revokeOnly(t)
	for _, example := range running {
		refused := modelstest.NewVisitor(t, example.site).Post("/widget-token", nil).Is(http.StatusBadGateway)
		if !example.prints("revoked") || strings.Contains(example.output.String()+refused.Body, secret) {
			t.Errorf("the example does not log why the key was refused, or has the key:\n%s", example.output)
		}
	}
}

func TestPromptForACodingAgentRunsAsCopied(t *testing.T) {
	t.Parallel()
	c, v := startSignedIn(t, sharedPortal(t), withClipboard)
	agentID, secret := c.newAgent(t, "Front desk"), c.newKey(t, "prompt")
	page := pages.OpenIntegrate(v.Tab)
	prompt := v.copied(func() {
		page.Click("Copy prompt for a coding agent")
		page.ExpectStatus(`Copied the prompt`)
	})
	if page.Prompt() != prompt || strings.Contains(prompt, secret) {
		t.Errorf("the prompt on the page is not the copied one, or has the key:\n%s", prompt)
	}
	for _, address := range regexp.MustCompile(c.URL+`(/[a-z/]+\.(?:md|txt))`).FindAllStringSubmatch(prompt, -1) {
		c.Get(address[1]).Is(http.StatusOK)
	}
	var printed []string
	for _, command := range regexp.MustCompile(`(?m)^ +curl .*`).FindAllString(prompt, -1) {
		curl := exec.Command("sh", "-c", command)
		curl.Env = exampleEnvironment(secret)
		printed = append(printed, string(modelstest.Value(curl.Output())(t)))
	}
	if len(printed) != 2 || !strings.Contains(printed[0], `"code":"UNAUTHORIZED"`) {
		t.Fatalf("the commands print %q", printed)
	}
	c.expectTokenFor(t, secret, agentID, printed[1])
}

// revokeOnly revokes the customer's only key, by HTTP.
func (c customer) revokeOnly(t *testing.T) {
	t.Helper()
	c.Post(c.Get("/api-keys").Find(`action="(/api-keys/[0-9a-f-]+/revocation)"`), nil).Is(http.StatusSeeOther)
}

// expectTokenFor checks that the response has a valid token for the agent.
func (c customer) expectTokenFor(t *testing.T, key, agentID, response string) {
	t.Helper()
	var issued struct {
		AccessToken string `json:"access_token"`
	}
	modelstest.Must(t, json.Unmarshal([]byte(response), &issued))
	form := url.Values{"token": {issued.AccessToken}}
	answer := c.Post("/api/widget/introspect", form, modelstest.Bearer(key)).Is(http.StatusOK).Body
	if !strings.Contains(answer, `"active":true`) || !strings.Contains(answer, agentID) {
		t.Errorf("the token is %s, want an active one for %s", answer, agentID)
	}
}

// customerSite serves a page with a script, on another origin than the portal's, and a handler at a
// path.
func customerSite(t *testing.T, script, path string, handler http.Handler) (url string) {
	t.Helper()
	routes := http.NewServeMux()
	routes.Handle(path, handler)
	routes.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>Customer</title><link rel="icon" href="data:,"><script>` + script + `</script>`))
	})
	site := httptest.NewServer(routes)
	t.Cleanup(site.Close)
	return site.URL
}

func TestGuidesVerifyATokenAsCopied(t *testing.T) {
	t.Parallel()
	for algorithm, start := range map[string]func(*testing.T) *process{
		"EdDSA": sharedPortal,
		"ES256": func(t *testing.T) *process {
			t.Helper()
			return ownPortal(t, settings{extra: []string{"PORTAL_WIDGET_TOKEN_ALG=ES256"}})
		},
	} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			c := start(t).newCustomer(t)
			agentID, secret := c.newAgent(t, "Front desk"), c.newKey(t, "guides")
			token := c.expectServed(t, secret, agentID)
			forged := token[:len(token)-8] + "AAAAAAAA"
			// The tests of the program run the Go example.
			for name, command := range map[string][]string{"Node": {"node", "verify.mjs"}, "Python": {pythonWithJWT(t), "verify.py"}} {
				file := exampleFile(t, command[1], c.example("/docs/gateway", "Verify with "+name))
				for presented, valid := range map[string]bool{token: true, forged: false} {
					verify := exec.CommandContext(t.Context(), command[0], file, presented)
					verify.Env = exampleEnvironment("")
					output, err := verify.CombinedOutput()
					if valid != (err == nil) || valid && strings.TrimSpace(string(output)) != agentID {
						t.Errorf("%s: valid %t, error %v\n%s", name, valid, err, output)
					}
				}
			}
			jose := http.StripPrefix("/jose", http.FileServer(http.Dir(filepath.Join(root, "node_modules", "jose", "dist", "webapi"))))
			v := visit(t, customerSite(t, c.example("/docs/gateway", "Verify in a browser"), "/jose/", jose))
			v.Open("/")
			for function, want := range map[string]string{`verify`: "the signature is wrong", `async (token) => {
				const { createRemoteJWKSet, jwtVerify } = await import('/jose/index.js')
				const keys = createRemoteJWKSet(new URL('` + c.URL + `/.well-known/jwks.json'))
				const expected = { issuer: '` + c.URL + `', audience: 'widget', algorithms: ['` + algorithm + `'], typ: 'at+jwt' }
				return (await jwtVerify(token, keys, expected)).payload
			}`: "signature verification failed"} {
				got := modelstest.Value(v.Page.Evaluate(`async ([token, forged]) => {
					const verifyToken = `+function+`
					const refused = await verifyToken(forged).then(() => 'taken', (error) => error.message)
					return (await verifyToken(token)).agent_id + ', ' + refused
				}`, []string{token, forged}))(t)
				if got != agentID+", "+want {
					t.Errorf("the browser returns %v, want %s", got, want)
				}
			}
		})
	}
}

func TestGuidesCommandsRunAsCopied(t *testing.T) {
	t.Parallel()
	c := ownPortal(t, settings{extra: []string{"PORTAL_RATE_LIMIT=1:1"}}).newCustomer(t)
	agentID, secret := c.newAgent(t, "Front desk"), c.newKey(t, "guides")
	token := c.expectServed(t, secret, agentID)
	for name, test := range map[string]struct{ path, want string }{
		"List agents": {"/docs", `"id":"` + agentID + `"`}, "curl": {"/docs", `"access_token"`},
		"Introspect": {"/docs/guides", `"active":true`}, "A token for a user": {"/docs/guides", `"expires_in":300`},
	} {
		command := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(c.example(test.path, name), "AGENT_ID", agentID))
		command.Env = append(exampleEnvironment(c.newKey(t, name)), "WIDGET_TOKEN="+token)
		output, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(output), test.want) {
			t.Errorf("%s: error %v, want %s in\n%s", name, err, test.want, output)
		}
	}
	// The key is entered when the terminal no longer shows the input.
	terminal := strings.Replace(c.example("/docs", "Terminal"), "; read", "; printf ready; read", 1) + "\n" + `printf '%s' "$NAS_API_KEY" | wc -c`
	if output := inTerminal(t, "sh", terminal, "ready", "nas_secret"); strings.Contains(output, "nas_") || !strings.Contains(output, "10") {
		t.Errorf("the environment example prints\n%s", output)
	}
	retried := runNode(t, "retry.mjs", c.example("/docs/guides", "Retry")+`
		const ask = (key) => fetchWithRetry(`+strconv.Quote(c.URL+"/api/agents")+`, { headers: { Authorization: 'Bearer ' + key } })
		const refused = await ask('nas_wrong')
		const first = await ask(`+strconv.Quote(secret)+`)
		const began = Date.now()
		const second = await ask(`+strconv.Quote(secret)+`)
		console.log([refused.status, first.status, second.status, Date.now() - began >= 990].join(' '))`)
	if want := "401 200 200 true"; retried != want {
		t.Errorf("the example prints %s, want %s", retried, want)
	}
	var requests atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader([]int{http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusOK}[requests.Add(1)-1])
	}))
	defer proxy.Close()
	repeated := runNode(t, "proxy.mjs", c.example("/docs/guides", "Retry")+`
		console.log((await fetchWithRetry(`+strconv.Quote(proxy.URL)+`, {})).status)`)
	if repeated != "200" {
		t.Errorf("behind a proxy the example returns %s", repeated)
	}
}

func TestGuidesRenewAndCacheTokens(t *testing.T) {
	t.Parallel()
	c := sharedPortal(t).newCustomer(t)
	// The second request comes after 750 to 800 ms, and a retry after its failure.
	renewed := runNode(t, "renew.mjs", c.example("/docs/guides", "Renew in a browser")+`
		const asked = [], used = []
		const stop = keepToken(async () => {
			asked.push(Date.now())
			if (asked.length === 2) throw new Error('away')
			return { access_token: 'token ' + asked.length, expires_in: 1 }
		}, (token) => used.push(token))
		while (used.length < 2) await new Promise((resolve) => setTimeout(resolve, 10))
		stop()
		const count = asked.length
		await new Promise((resolve) => setTimeout(resolve, 1500))
		console.log([asked[1] - asked[0] >= 745, used.slice(0, 2), asked.length === count].join(', '))`)
	if want := "true, token 1,token 3, true"; renewed != want {
		t.Errorf("the example prints %s, want %s", renewed, want)
	}
	cached := runNode(t, "cache.mjs", c.example("/docs/guides", "Cache for each user")+`
		let exchanges = 0
		const exchange = async () => ({ access_token: 'token ' + ++exchanges, expires_in: 1 })
		const both = await Promise.all([tokenFor('a', exchange), tokenFor('a', exchange)])
		await tokenFor('b', exchange)
		await new Promise((resolve) => setTimeout(resolve, 900))
		await tokenFor('a', exchange)
		const failed = await tokenFor('c', async () => { throw new Error('away') }).catch((error) => error.message)
		await tokenFor('c', exchange)
		console.log(both[0].access_token + ', ' + both[1].access_token + ', ' + failed + ', ' + exchanges)`)
	if want := "token 1, token 1, away, 4"; cached != want {
		t.Errorf("the cache prints %s, want %s", cached, want)
	}
}

// exampleFile writes an example into a folder in which Node finds the packages of node_modules.
func exampleFile(t *testing.T, name, code string) string {
	t.Helper()
	folder := t.TempDir()
	modelstest.Must(t, os.Symlink(filepath.Join(root, "node_modules"), filepath.Join(folder, "node_modules")))
	modelstest.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(code), 0o600))
	return filepath.Join(folder, name)
}

// runNode runs a module and returns its output.
func runNode(t *testing.T, name, code string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "node", exampleFile(t, name, code)).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, output)
	}
	return strings.TrimSpace(string(output))
}

// pythonWithJWT returns a Python that has PyJWT. Debian's packages are for its own Python only.
func pythonWithJWT(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import jwt, cryptography").Run() == nil {
			return python
		}
	}
	t.Fatal("PyJWT is missing: install it (Debian: apt-get install python3-jwt python3-cryptography)")
	return ""
}

// inTerminal runs command in a shell on a terminal. It enters input after the prompt, and returns
// what the terminal shows.
func inTerminal(t *testing.T, shell, command, prompt, input string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "command.sh")
	modelstest.Must(t, os.WriteFile(file, []byte(command+"\n"), 0o600))
	output := &modelstest.LogBuffer{}
	terminal := exec.CommandContext(t.Context(), "script", "--quiet", "--return", "--flush", "--command", shell+" "+file, "/dev/null")
	terminal.Env = exampleEnvironment("")
	terminal.Stdout, terminal.Stderr = output, output
	keyboard := modelstest.Value(terminal.StdinPipe())(t)
	modelstest.Must(t, terminal.Start())
	modelstest.Eventually(t, shell+" asks", func() bool { return strings.Contains(output.String(), prompt) })
	modelstest.Value(keyboard.Write([]byte(input + "\n")))(t)
	if err := terminal.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s", shell, err, output)
	}
	return output.String()
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
		response, err := http.Get(e.site + "/")
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

// expectNoStart checks that the example prints this and fails, without the key in its output.
func (s exampleServer) expectNoStart(t *testing.T, code, key, want string) {
	t.Helper()
	e := s.run(t, code, key)
	if err := e.AwaitExit(time.Minute); err == nil || !e.prints(want) || strings.Contains(e.output.String(), "Traceback") ||
		strings.Contains(e.output.String(), "secret") {
		t.Errorf("the %s example without a key: %v\n%s", s.name, err, e.output)
	}
}

// run starts the example. It is killed at the end of the test.
func (s exampleServer) run(t *testing.T, code, key string) runningExample {
	t.Helper()
	address := modelstest.Value(subprocess.FreeAddress())(t)
	folder := t.TempDir()
	modelstest.Must(t, os.WriteFile(filepath.Join(folder, s.file), []byte(code), 0o600))
	output := &modelstest.LogBuffer{}
	command := exec.Command(s.command[0], s.command[1:]...)
	command.Dir = folder
	command.Env = append(exampleEnvironment(key), "PORT="+address[strings.LastIndex(address, ":")+1:])
	command.Env = append(command.Env, s.env...)
	command.Stdout, command.Stderr = output, output
	// go run has a child, which is the server.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child, err := subprocess.Start(command)
	if err != nil {
		t.Fatalf("start the %s example (is %s installed?): %v", s.name, s.command[0], err)
	}
	t.Cleanup(func() {
		select {
		case <-child.Exited():
		default:
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
			<-child.Exited()
		}
	})
	return runningExample{Child: child, site: "http://" + address, folder: folder, output: output}
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
