package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"portal/e2e/pages"
)

// verifier is an example that verifies the token in its last argument.
type verifier struct {
	name, file string
	command    []string // before the file
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
			c, secret, token, agentID := newToken(t, start(t))
			docs := pages.OpenGuides(visit(t, c.at.URL).Tab)
			forged := token[:len(token)-8] + "AAAAAAAA"
			for _, v := range []verifier{
				{"Verify with Node", "verify.mjs", []string{"node"}},
				{"Verify with Go", "verify.go", []string{"go", "run"}},
				{"Verify with Python", "verify.py", []string{pythonWithJWT(t)}},
			} {
				v.expect(t, docs.Example(v.name), map[string]bool{token: true, forged: false, secret: false}, agentID)
			}
			site := siteWithJose(t, docs.Example("Verify in a browser"))
			expectVerifiedInBrowser(t, site, `verify`, token, forged, agentID+", the signature is wrong")
			expectVerifiedInBrowser(t, site, `async (token) => {
				const { createRemoteJWKSet, jwtVerify } = await import('/jose/index.js')
				const keys = createRemoteJWKSet(new URL('`+c.at.URL+`/.well-known/jwks.json'))
				const expected = { issuer: '`+c.at.URL+`', audience: 'widget', algorithms: ['`+algorithm+`'], typ: 'at+jwt' }
				return (await jwtVerify(token, keys, expected)).payload
			}`, token, forged, agentID+", signature verification failed")
		})
	}
}

// expect runs the example with each token and checks which it accepts.
func (v verifier) expect(t *testing.T, code string, presented map[string]bool, agentID string) {
	t.Helper()
	file := exampleFile(t, v.file, code)
	for token, valid := range presented {
		command := exec.CommandContext(t.Context(), v.command[0], append(v.command[1:], file, token)...)
		command.Env = exampleEnvironment("")
		command.Dir = theRun.root // its go.mod has the libraries of the Go example
		output, err := command.CombinedOutput()
		if valid && (err != nil || strings.TrimSpace(string(output)) != agentID) {
			t.Errorf("%s: error %v\n%s", v.name, err, output)
		}
		if !valid && err == nil {
			t.Errorf("%s takes an invalid token:\n%s", v.name, output)
		}
	}
}

// siteWithJose serves a page with a script, on another origin than the portal's, and the library
// jose at /jose/.
func siteWithJose(t *testing.T, script string) (url string) {
	t.Helper()
	library := http.FileServer(http.Dir(filepath.Join(theRun.root, "node_modules", "jose", "dist", "webapi")))
	site := http.NewServeMux()
	site.Handle("/jose/", http.StripPrefix("/jose", library))
	site.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>Customer</title><link rel="icon" href="data:,"><script>` + script + `</script>`))
	})
	server := httptest.NewServer(site)
	t.Cleanup(server.Close)
	return server.URL
}

// expectVerifiedInBrowser verifies both tokens with a JavaScript function on a page of the site.
func expectVerifiedInBrowser(t *testing.T, site, function, token, forged, want string) {
	t.Helper()
	v := visit(t, site)
	v.Open("/")
	got, err := v.Page.Evaluate(`async ([token, forged]) => {
		const verifyToken = `+function+`
		const refused = await verifyToken(forged).then(() => 'taken', (error) => error.message)
		return (await verifyToken(token)).agent_id + ', ' + refused
	}`, []string{token, forged})
	if err != nil || got != want {
		t.Errorf("the browser returns %v, error %v, want %s", got, err, want)
	}
}

func TestGuidesCommandsRunAsCopied(t *testing.T) {
	t.Parallel()
	c, secret, token, agentID := newToken(t, sharedPortal(t))
	docs := pages.OpenGuides(visit(t, c.at.URL).Tab)
	for name, want := range map[string]string{
		"List agents": `"id":"` + agentID + `"`, "curl": `"access_token"`, "Introspect": `"active":true`,
	} {
		code := strings.ReplaceAll(docs.Example(name), "AGENT_ID", agentID)
		command := exec.CommandContext(t.Context(), "sh", "-c", code)
		command.Env = append(exampleEnvironment(secret), "WIDGET_TOKEN="+token)
		output, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(output), want) {
			t.Errorf("%s: error %v, want %s in\n%s", name, err, want, output)
		}
	}
	// The key is entered when the terminal no longer shows the input.
	terminal := strings.Replace(docs.Example("Terminal"), "; read", "; printf ready; read", 1) + "\n" + `printf '%s' "$NAS_API_KEY" | wc -c`
	if output := inTerminal(t, "sh", terminal, "ready", "nas_secret"); strings.Contains(output, "nas_") || !strings.Contains(output, "10") {
		t.Errorf("the environment example prints\n%s", output)
	}
}

func TestGuidesRenewAndCacheTokens(t *testing.T) {
	t.Parallel()
	docs := pages.OpenGuides(visit(t, sharedPortal(t).URL).Tab)

	renewed := runNode(t, "renew.mjs", docs.Example("Renew in a browser")+`
		const asked = [], used = []
		const stop = keepToken(async () => {
			asked.push(Date.now())
			if (asked.length === 2) throw new Error('away')
			return { access_token: 'token ' + asked.length, expires_in: 1 }
		}, (token) => used.push(token))
		await new Promise((resolve) => setTimeout(resolve, 5000))
		stop()
		const count = asked.length
		await new Promise((resolve) => setTimeout(resolve, 1500))
		console.log(JSON.stringify({ first: asked[1] - asked[0], used: used.slice(0, 2), stopped: asked.length === count }))`)
	var renewal struct {
		First   int
		Used    []string
		Stopped bool
	}
	if err := json.Unmarshal(renewed, &renewal); err != nil {
		t.Fatal(err)
	}
	if renewal.First < 745 || !renewal.Stopped || strings.Join(renewal.Used, ", ") != "token 1, token 3" {
		t.Errorf("renewal %+v, want the second request after 750 to 800 ms and a retry after its failure", renewal)
	}

	cached := runNode(t, "cache.mjs", docs.Example("Cache for each user")+`
		let exchanges = 0
		const exchange = async () => ({ access_token: 'token ' + ++exchanges, expires_in: 1 })
		const both = await Promise.all([tokenFor('a', exchange), tokenFor('a', exchange)])
		await tokenFor('b', exchange)
		await new Promise((resolve) => setTimeout(resolve, 900))
		await tokenFor('a', exchange)
		const failed = await tokenFor('c', async () => { throw new Error('away') }).catch((error) => error.message)
		await tokenFor('c', exchange)
		console.log(both[0].access_token + ', ' + both[1].access_token + ', ' + failed + ', ' + exchanges)`)
	if want := "token 1, token 1, away, 4"; strings.TrimSpace(string(cached)) != want {
		t.Errorf("the cache prints %s, want %s", cached, want)
	}
}

func TestGuidesRetryWaitsAsLongAsAsked(t *testing.T) {
	t.Parallel()
	p := ownPortal(t, settings{extra: []string{"PORTAL_RATE_LIMIT=1:1"}})
	c := p.newCustomer(t)
	v := visit(t, p.URL)
	v.setCookies(t, c.session(t))
	secret := pages.OpenKeys(v.Tab).Add("retry")
	code := pages.OpenGuides(v.Tab).Example("Retry")
	printed := runNode(t, "retry.mjs", code+`
		const ask = (key) => fetchWithRetry(`+strconv.Quote(p.URL+"/api/agents")+`, { headers: { Authorization: 'Bearer ' + key } })
		const refused = await ask('nas_wrong')
		const first = await ask(`+strconv.Quote(secret)+`)
		const began = Date.now()
		const second = await ask(`+strconv.Quote(secret)+`)
		console.log([refused.status, first.status, second.status, Date.now() - began >= 990].join(' '))`)
	if want := "401 200 200 true"; strings.TrimSpace(string(printed)) != want {
		t.Errorf("the example prints %s, want %s", printed, want)
	}
}

// newToken returns a new customer with an agent, a key and a widget token.
func newToken(t *testing.T, p *process) (c customer, secret, token, agentID string) {
	t.Helper()
	c = p.newCustomer(t)
	agentID = c.newAgent(t, "Front desk")
	v := visit(t, c.at.URL)
	v.setCookies(t, c.session(t))
	secret = pages.OpenKeys(v.Tab).Add("guides")
	reply := backend{site: c.at.URL, key: secret}.requestToken(t, agentID)
	if reply.Token == "" {
		t.Fatalf("no token: %+v", reply)
	}
	return c, secret, reply.Token, agentID
}

// exampleFile writes an example into a folder in which Node finds the packages of node_modules.
func exampleFile(t *testing.T, name, code string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Symlink(filepath.Join(theRun.root, "node_modules"), filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, name)
	if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// runNode runs a module and returns its output.
func runNode(t *testing.T, name, code string) []byte {
	t.Helper()
	requireProgram(t, "node", "install Node.js (Debian: apt-get install nodejs)")
	output, err := exec.CommandContext(t.Context(), "node", exampleFile(t, name, code)).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, output)
	}
	return output
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
