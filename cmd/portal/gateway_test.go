package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"portal/models"
	"portal/models/agents"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/record"
)

// gateway is a gateway of the guide in front of a portal, an API and a voice runtime.
type gateway struct {
	*modelstest.Visitor

	t   *testing.T
	log func() string

	portal  *instance
	store   *models.Store
	account accountWithKey
	agentID uuid.UUID
}

func TestGatewaysOfTheGuide(t *testing.T) {
	t.Parallel()
	for name, launch := range map[string]func(*gateway, string, map[string]string){"nginx.conf": (*gateway).startNginx, "Caddyfile": (*gateway).startCaddy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, launch, guideFiles+name, echoRuntime)
			g.passesIdentity()
			g.keepsIdentityOfCalls()
			g.refuses()
			g.refusesLargeBodies()
			g.takesManyCookies()
			g.connectsWebSockets()
			g.limits()
			g.seesRevocationsAtOnce()
			g.logsNoTokens("/connect", "/v1/calls")
			g.survivesAnOutage()
			g.logsNoTokens("/connect", "/v1/calls")
		})
	}
}

// The command and the configuration are those of the guide.
func TestHAProxyVerifiesES256Tokens(t *testing.T) {
	t.Parallel()
	g := newGateway(t, (*gateway).startHAProxy, "operations/haproxy.cfg", echoRuntime, testSecret, "PORTAL_WIDGET_TOKEN_ALG=ES256")
	s := signer{g.portal, g.account}
	for name, send := range map[string]func(token string) modelstest.Response{
		"HAProxy": func(token string) modelstest.Response {
			return g.Send(http.MethodGet, "/", "", "Authorization: Bearer "+token)
		},
		"HAProxy with a token in a URL": func(token string) modelstest.Response { return g.Send(http.MethodGet, "/?access_token="+token, "") },
	} {
		s.check(t, name, func(token string) (string, error) {
			a := send(token)
			var got received
			if err := json.Unmarshal([]byte(a.Body), &got); err != nil || a.StatusCode != http.StatusOK {
				return "", fmt.Errorf("%d %s: %w", a.StatusCode, a.Body, err)
			}
			return got.Header.Get("X-Agent-Id"), nil
		})
	}
	g.keepsIdentityOfCalls()
	g.connectsWebSockets()
	g.refused(http.StatusUnauthorized, "UNAUTHORIZED", "/connect")
	g.logsNoTokens("/connect")
}

// guideFiles is the directory of the programs and configurations in the guides.
const guideFiles = "../../templates/documentation/snippets/"

// newGateway starts a gateway with a configuration in the repository, and everything behind it.
// runtime starts the voice runtime and returns its address.
func newGateway(t *testing.T, launch func(*gateway, string, map[string]string), file string, runtime func(*testing.T) string, env ...string) *gateway {
	t.Helper()
	databaseURL := modelstest.SQLiteURL(t)
	g := &gateway{Visitor: tlsVisitor(t), t: t, store: modelstest.Open(t, databaseURL, models.Options{})}
	g.account = createAccount(t, g.store)
	g.agentID = g.account.agentID
	g.portal = start(t, slices.Concat(databaseEnv(databaseURL), []string{anyPort, "PORTAL_RATE_LIMIT=1:60"}, env))
	api := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(api.Close)
	launch(g, readFile(t, file), map[string]string{
		"127.0.0.1:8080": strings.TrimPrefix(g.portal.URL, "http://"),
		"127.0.0.1:9000": strings.TrimPrefix(api.URL, "http://"),
		"127.0.0.1:9001": runtime(t),
	})
	return g
}

// tlsVisitor returns a visitor who accepts any certificate.
func tlsVisitor(t *testing.T) *modelstest.Visitor {
	t.Helper()
	v := modelstest.NewVisitor(t, "")
	v.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(v.CloseIdleConnections)
	return v
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	return string(modelstest.Value(os.ReadFile(path))(t))
}

// echoRuntime is a voice runtime that sends back messages.
func echoRuntime(t *testing.T) string {
	t.Helper()
	runtime := httptest.NewServer(http.HandlerFunc(echoWebSocket))
	t.Cleanup(runtime.Close)
	return strings.TrimPrefix(runtime.URL, "http://")
}

// received is a request as it arrives behind the gateway.
type received struct {
	Method, URL string
	Header      http.Header
	Length      int // of the body
}

// identity returns the values of the identity headers, as a service on CGI or WSGI reads them, with
// the user's id decoded, because HAProxy encodes more characters than the portal.
func (r received) identity() string {
	cgi := http.Header{}
	for name, values := range r.Header {
		for _, value := range values {
			cgi.Add(strings.ReplaceAll(name, "_", "-"), value)
		}
	}
	for i, user := range cgi["X-User-Id"] {
		decoded, err := url.PathUnescape(user)
		if err != nil || strings.ContainsFunc(user, func(r rune) bool { return r <= ' ' || r > '~' }) {
			decoded = "badly encoded: " + user
		}
		cgi["X-User-Id"][i] = decoded
	}
	return fmt.Sprint(cgi["X-Account-Id"], cgi["X-Key-Id"], cgi["X-Agent-Id"], cgi["X-User-Id"])
}

// echo responds with the request.
func echo(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.NewEncoder(w).Encode(received{Method: r.Method, URL: r.URL.String(), Header: r.Header, Length: len(content)})
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// echoWebSocket sends the request as the first message, and then each message that it receives.
// Other requests are answered as echo does.
func echoWebSocket(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		echo(w, r)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	message, err := json.Marshal(received{Method: r.Method, URL: r.URL.String(), Header: r.Header})
	if err != nil {
		return
	}
	for conn.Write(r.Context(), websocket.MessageText, message) == nil {
		if _, message, err = conn.Read(r.Context()); err != nil {
			return
		}
	}
}

// startNginx runs nginx with the example, which needs a certificate.
func (g *gateway) startNginx(example string, addresses map[string]string) {
	g.t.Helper()
	dir, address := g.t.TempDir(), freeAddress(g.t)
	writeCertificate(g.t, dir)
	config := replaceAll(example, addresses)
	config = replaceAll(config, map[string]string{
		"listen 443 ssl": "listen " + address + " ssl", "listen 80;": "listen " + freeAddress(g.t) + ";", "/etc/ssl/voice.example.com": filepath.Join(dir, "certificate"),
		"/var/log/nginx/voice": filepath.Join(dir, "voice"), "/etc/ssl/portal.example.com": filepath.Join(dir, "certificate"),
		"/var/log/nginx/portal": filepath.Join(dir, "portal"),
	})
	// One process, which ends when the test kills it.
	main := "daemon off; master_process off; error_log stderr; pid " + dir + "/pid; events {} http {\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		main += kind + "_temp_path " + filepath.Join(dir, kind) + ";\n"
	}
	path := filepath.Join(dir, "nginx.conf")
	modelstest.Must(g.t, os.WriteFile(path, []byte(main+config+"}\n"), 0o600))
	g.run("https://"+address, exec.Command("nginx", "-p", dir, "-c", path, "-e", "stderr"))
	output := g.log
	g.log = func() string {
		access, _ := os.ReadFile(filepath.Join(dir, "voice.access.log"))
		failures, _ := os.ReadFile(filepath.Join(dir, "voice.error.log"))
		return output() + string(access) + string(failures)
	}
}

// startCaddy runs Caddy with the example, without TLS.
func (g *gateway) startCaddy(example string, addresses map[string]string) {
	g.t.Helper()
	address := freeAddress(g.t)
	config := strings.Replace(replaceAll(example, addresses), "voice.example.com {", "http://"+address+" {", 1)
	g.runCaddy(address, strings.Replace(config, "{\n", "{\n\tadmin off\n", 1))
}

// runCaddy runs Caddy with a configuration that listens on the address.
func (g *gateway) runCaddy(address, config string) {
	g.t.Helper()
	home := g.t.TempDir()
	path := filepath.Join(home, "Caddyfile")
	modelstest.Must(g.t, os.WriteFile(path, []byte(config), 0o600))
	command := exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", path)
	command.Env = []string{"HOME=" + home, "XDG_DATA_HOME=" + home, "XDG_CONFIG_HOME=" + home}
	g.run("http://"+address, command)
}

// startHAProxy runs HAProxy with the example, without TLS, and with the public key that the guide's
// command writes.
func (g *gateway) startHAProxy(example string, addresses map[string]string) {
	g.t.Helper()
	address, folder := freeAddress(g.t), g.t.TempDir()
	writeKey := shellBlocks(g.t, "operations/gateways.md")["HAProxy"][0]
	bash(g.t, folder, nil, "", strings.ReplaceAll(writeKey, "https://portal.example.com", g.portal.URL))
	config := strings.NewReplacer(":443 ssl crt /etc/haproxy/portal.example.com.pem crt /etc/haproxy/voice.example.com.pem", address,
		":80\n", freeAddress(g.t)+"\n", "/etc/haproxy/portal.pem", filepath.Join(folder, "portal.pem"), "https://portal.example.com", g.portal.URL,
		"  user haproxy\n  group haproxy\n", "").Replace(replaceAll(example, addresses))
	path := filepath.Join(folder, "haproxy.cfg")
	modelstest.Must(g.t, os.WriteFile(path, []byte(config), 0o600))
	g.run("http://"+address, exec.Command("haproxy", "-db", "-f", path))
	for line := range strings.Lines(g.log()) {
		// The second portal.
		if strings.Contains(line, "[WARNING]") && !strings.Contains(line, " is DOWN") {
			g.t.Errorf("HAProxy warns: %s", line)
		}
	}
}

// run starts the gateway's program and waits until it accepts requests.
func (g *gateway) run(url string, command *exec.Cmd) {
	g.t.Helper()
	g.URL = url
	command.Env = append(command.Env, "PATH="+os.Getenv("PATH")+":/usr/sbin")
	if found, err := exec.LookPath("/usr/sbin/" + command.Args[0]); err == nil {
		command.Path, command.Err = found, nil
	}
	g.log = runProgram(g.t, command, func(ctx context.Context) error {
		_, err := g.Try(ctx, http.MethodGet, "/", "")
		return err
	}).String
}

// writeCertificate writes certificate.pem and certificate.key.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "certificate")
	output, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
		"-subj", "/CN=voice.example.com", "-keyout", path+".key", "-out", path+".pem").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

func replaceAll(text string, replacements map[string]string) string {
	var pairs []string
	for old, replacement := range replacements {
		pairs = append(pairs, old, replacement)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// spoofed are headers with which a client tries to choose its identity.
var spoofed = []string{
	"X-Account-Id: spoofed", "X-Key-Id: spoofed", "X-Agent-Id: spoofed", "X-User-Id: spoofed", "x-account-id: spoofed", "X-Original-URI: /?access_token=spoofed",
	"X-Forwarded-Uri: /?access_token=spoofed",
	// CGI and WSGI read these as the headers above.
	"X_Account_Id: spoofed", "X-Key_Id: spoofed", "x_agent-ID: spoofed", "X_User-Id: spoofed",
}

// dropping is a header that names headers which a proxy must remove. It must not remove what the
// gateway has added.
const dropping = "Connection: close, X-Account-Id, X-Key-Id, X-Agent-Id, X-User-Id"

// keepsIdentityOfCalls checks that a client can neither remove nor add identity headers.
func (g *gateway) keepsIdentityOfCalls() {
	g.t.Helper()
	for context, user := range map[string]string{
		"": "", `,"metadata":{"user":"x"}`: "", `,"user":{"id":"a+b@example.com/ é% \"\\<~"}`: "a+b@example.com/ é% \"\\<~",
	} {
		path := "/connect?access_token=" + g.portal.tokenWith(g.t, g.account.secret, g.agentID, context)
		a := g.Send(http.MethodGet, path, "", append(spoofed, dropping, "X-Original-Uri: "+path, "Referer: https://shop.example"+path)...)
		var got received
		a.JSON(&got)
		if want := fmt.Sprintf("[%s] [%s] [%s] [%s]", g.account.ID, g.account.key.ID, g.agentID, user); got.identity() != want {
			g.t.Errorf("%s: the service gets %s, want %s: %d %s", context, got.identity(), want, a.StatusCode, a.Body)
		}
	}
}

// refusesLargeBodies sends more than any gateway of the guide accepts, if it has a limit.
func (g *gateway) refusesLargeBodies() {
	g.t.Helper()
	a := g.Send(http.MethodPost, "/v1/calls", strings.Repeat("b", 11<<20), "Authorization: Bearer "+g.account.secret)
	var fields map[string]any
	if err := json.Unmarshal([]byte(a.Body), &fields); err != nil || a.StatusCode != http.StatusOK && fields["code"] != "PAYLOAD_TOO_LARGE" {
		g.t.Errorf("%d %s", a.StatusCode, a.Body)
	}
}

// takesManyCookies sends more cookies than the portal takes, which the service behind may take.
func (g *gateway) takesManyCookies() {
	g.t.Helper()
	headers := []string{"Authorization: Bearer " + g.account.secret}
	for i := range 4 {
		headers = append(headers, fmt.Sprintf("Cookie: c%d=%s", i, strings.Repeat("x", 6<<10)))
	}
	if a := g.Send(http.MethodGet, "/v1/calls", "", headers...); a.StatusCode != http.StatusOK {
		g.t.Errorf("with 24 KiB of cookies: %d %s", a.StatusCode, a.Body)
	}
}

func (g *gateway) passesIdentity() {
	g.t.Helper()
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, "PROPFIND"} {
		body := strings.Repeat("body", 10_000)
		if method == http.MethodGet {
			body = ""
		}
		a := g.Send(method, "/v1/calls%20now?q=a%2Fb&agentId=7", body, append(spoofed, dropping, "Authorization: Bearer "+g.account.secret)...)
		var got received
		if err := json.Unmarshal([]byte(a.Body), &got); err != nil || a.StatusCode != http.StatusOK {
			g.t.Fatalf("%s: %d %s", method, a.StatusCode, a.Body)
		}
		if want := fmt.Sprintf("[%s] [%s] [] []", g.account.ID, g.account.key.ID); got.identity() != want {
			g.t.Errorf("%s: the API gets %s, want %s", method, got.identity(), want)
		}
		if got.Method != method || got.URL != "/v1/calls%20now?q=a%2Fb&agentId=7" || got.Length != len(body) || len(got.Header["Authorization"]) > 0 {
			g.t.Errorf("the API gets %s %s with %d bytes and %q", got.Method, got.URL, got.Length, got.Header["Authorization"])
		}
	}
}

// refused sends a request and checks the two fields of the response.
func (g *gateway) refused(status int, code, path string, headers ...string) modelstest.Response {
	g.t.Helper()
	a := g.Send(http.MethodPost, path, "body", headers...)
	var fields map[string]string
	err := json.Unmarshal([]byte(a.Body), &fields)
	modelstest.Facts(g.t, fmt.Sprintf("%s: %d %s, want %d %s", path, a.StatusCode, a.Body, status, code), map[string]bool{
		"JSON":       err == nil,
		"status":     a.StatusCode == status,
		"code":       fields["code"] == code,
		"message":    fields["error"] != "",
		"two fields": len(fields) == 2,
	})
	if got := a.Header.Values("Cache-Control"); len(got) != 1 || got[0] != "no-store" {
		g.t.Errorf("%s: Cache-Control %q", path, got)
	}
	got := a.Header.Values("WWW-Authenticate")
	if status == http.StatusUnauthorized && (len(got) != 1 || !strings.HasPrefix(got[0], `Bearer realm="api"`)) {
		g.t.Errorf("%s: WWW-Authenticate %q", path, got)
	}
	return a
}

func (g *gateway) refuses() {
	g.t.Helper()
	_, reports, err := g.store.Keys.Generate(g.t.Context(), g.account.ID,
		keys.NewKey{Label: "reports", FormID: uuid.New(), Access: keys.AccessReports}, record.Operator())
	modelstest.Must(g.t, err)
	g.refused(http.StatusForbidden, "ACCESS_NOT_ALLOWED", "/v1/calls", "Authorization: Bearer "+reports)
	token := g.portal.token(g.t, g.account.secret, g.agentID)
	for _, r := range []struct {
		path    string
		headers []string
	}{
		{"/v1/calls", spoofed},
		{"/v1/calls", []string{"Authorization: Bearer nas_x"}},
		{"/v1/calls", []string{"Authorization: Bearer " + token}},
		{"/connect", append(spoofed, "Connection: Upgrade", "Upgrade: websocket")},
		{"/connect?access_token=x", nil},
		{"/connect?access_token=" + g.account.secret, nil},
		{"/connect", []string{"Authorization: Bearer " + g.account.secret}},
	} {
		g.refused(http.StatusUnauthorized, "UNAUTHORIZED", r.path, r.headers...)
	}
	for _, path := range []string{"/api/authorize", "/authorize-key", "/authorize-widget", "/widget/authorize", "/", "/v2/calls", "/connect/other"} {
		if a := g.Send(http.MethodGet, path, "", "Authorization: Bearer "+g.account.secret); a.StatusCode != http.StatusNotFound {
			g.t.Errorf("%s: %d %s, want 404", path, a.StatusCode, a.Body)
		}
	}
}

// dial opens a WebSocket. On failure it returns the status.
func (g *gateway) dial(token string) (conn *websocket.Conn, status int) {
	g.t.Helper()
	header := http.Header{}
	for _, spoof := range spoofed {
		name, value, _ := strings.Cut(spoof, ": ")
		header.Set(name, value)
	}
	conn, response, err := websocket.Dial(g.t.Context(), g.URL+"/connect?room=7&access_token="+token, //nolint:bodyclose // Dial closes it
		&websocket.DialOptions{HTTPClient: g.Client, HTTPHeader: header})
	if err != nil && response == nil {
		g.t.Fatal(err)
	}
	return conn, response.StatusCode
}

func (g *gateway) connectsWebSockets() {
	g.t.Helper()
	conn, status := g.dial(g.portal.token(g.t, g.account.secret, g.agentID))
	if status != http.StatusSwitchingProtocols {
		g.t.Fatalf("status %d", status)
	}
	defer func() { _ = conn.CloseNow() }()
	_, message, err := conn.Read(g.t.Context())
	var got received
	if err != nil || json.Unmarshal(message, &got) != nil {
		g.t.Fatalf("%v: %s", err, message)
	}
	if want := fmt.Sprintf("[%s] [%s] [%s] []", g.account.ID, g.account.key.ID, g.agentID); got.identity() != want {
		g.t.Errorf("the runtime gets %s, want %s", got.identity(), want)
	}
	if got.URL != "/connect" || strings.Contains(fmt.Sprint(got.Header), "eyJ") {
		g.t.Errorf("the runtime gets the token: %s %v", got.URL, got.Header)
	}
	modelstest.Must(g.t, conn.Write(g.t.Context(), websocket.MessageText, []byte("hello")))
	if _, message, err = conn.Read(g.t.Context()); err != nil || string(message) != "hello" {
		g.t.Errorf("the message returns as %q, %v", message, err)
	}
}

func (g *gateway) limits() {
	g.t.Helper()
	form := keys.NewKey{Label: "busy", FormID: uuid.New()}
	_, secret, err := g.store.Keys.Generate(g.t.Context(), g.account.ID, form, record.Operator())
	modelstest.Must(g.t, err)
	for range 200 {
		a := g.Send(http.MethodGet, "/v1/calls", "", "Authorization: Bearer "+secret)
		if a.StatusCode == http.StatusOK {
			continue
		}
		if a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") != "1" || !strings.Contains(a.Body, `"RATE_LIMITED"`) {
			g.t.Errorf("%d %v %s", a.StatusCode, a.Header, a.Body)
		}
		return
	}
	g.t.Error("no request was limited")
}

func (g *gateway) seesRevocationsAtOnce() {
	g.t.Helper()
	removed := modelstest.Value(g.store.Agents.Create(g.t.Context(), g.account.ID,
		agents.NewAgent{Name: "Front desk"}, record.Operator()))(g.t).ID
	token, ended := g.portal.token(g.t, g.account.secret, g.agentID), g.portal.token(g.t, g.account.secret, removed)
	for _, token := range []string{token, ended} {
		conn, status := g.dial(token)
		if status != http.StatusSwitchingProtocols {
			g.t.Fatalf("before: %d", status)
		}
		_ = conn.CloseNow()
	}
	modelstest.Value(g.store.Agents.Remove(g.t.Context(), g.account.ID, removed, record.Operator()))(g.t)
	if _, status := g.dial(ended); status != http.StatusUnauthorized {
		g.t.Errorf("with a removed agent: %d", status)
	}
	modelstest.Value(g.store.Keys.Revoke(g.t.Context(), g.account.ID, g.account.key.ID, "", record.Operator()))(g.t)
	g.refused(http.StatusUnauthorized, "UNAUTHORIZED", "/v1/calls", "Authorization: Bearer "+g.account.secret)
	if _, status := g.dial(token); status != http.StatusUnauthorized {
		g.t.Errorf("with a revoked key: %d", status)
	}
}

func (g *gateway) survivesAnOutage() {
	g.t.Helper()
	g.portal.Kill()
	g.refused(http.StatusServiceUnavailable, "UNAVAILABLE", "/v1/calls", "Authorization: Bearer "+g.account.secret)
	g.refused(http.StatusServiceUnavailable, "UNAVAILABLE", "/connect?access_token=eyJhbGciOiJFZERTQSJ9.eyJhdWQiOiJ3aWRnZXQifQ.c2lnbmF0dXJl")
}

func (g *gateway) logsNoTokens(paths ...string) {
	g.t.Helper()
	log := g.log()
	for _, path := range paths {
		if !strings.Contains(log, path) {
			g.t.Errorf("the log has no request of %s: %s", path, log)
		}
	}
	if found := regexp.MustCompile(`.*(eyJ|nas_[0-9A-Za-z]{10}).*`).FindString(log + g.portal.stderr.String()); found != "" {
		g.t.Errorf("a credential is in the log: %s", found)
	}
}
