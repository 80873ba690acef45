package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"portal/models"
	"portal/models/modelstest"
)

// api sends JSON with a key to the API and returns the status and the body of the response.
func (i *instance) api(t *testing.T, method, path, key, body string) (status int, responseBody string) {
	t.Helper()
	return i.send(t, method, path, key, "application/json", body)
}

// send is [instance.api] for any type of body.
func (i *instance) send(t *testing.T, method, path, key, contentType, body string) (status int, responseBody string) {
	t.Helper()
	request := modelstest.Value(http.NewRequestWithContext(t.Context(), method, i.URL+path, strings.NewReader(body)))(t)
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", contentType)
	response := modelstest.Value(http.DefaultClient.Do(request))(t)
	defer response.Body.Close()
	content := modelstest.Value(io.ReadAll(response.Body))(t)
	return response.StatusCode, string(content)
}

// accepts checks that an instance accepts the key.
func (i *instance) accepts(t *testing.T, key string) {
	t.Helper()
	if status, body := i.api(t, http.MethodGet, "/api/agents", key, ""); status != http.StatusOK {
		t.Errorf("the key is refused: %d %s", status, body)
	}
}

func TestServeBothDatabases(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		account := createAccount(t, modelstest.Open(t, url, models.Options{}))
		i := start(t, []string{"DATABASE_URL=" + url, testSecret, anyPort})
		i.accepts(t, account.secret)
		for _, path := range []string{"/healthz", "/login", "/openapi.json"} {
			if got := status(i.URL + path); got != http.StatusOK {
				t.Errorf("%s: %d", path, got)
			}
		}
		i.stop(t)
		if out := i.stdout.String(); out != "" {
			t.Errorf("serve wrote %q to standard output", out)
		}
	})
}

func TestServeWithoutConfigurationCreatesWhatItNeeds(t *testing.T) {
	t.Parallel()
	i := start(t, []string{anyPort})
	for name, mode := range map[string]os.FileMode{"data": 0o700, "data/portal.secret": 0o600} {
		if info, err := os.Stat(filepath.Join(i.Dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: want mode %v, got %v, error %v", name, mode, info, err)
		}
	}
	secret, err := os.ReadFile(filepath.Join(i.Dir, "data", "portal.secret"))
	if err != nil || strings.Contains(i.stderr.String(), strings.TrimSpace(string(secret))) {
		t.Errorf("the log contains the secret, or there is no secret file: %v", err)
	}
	i.stop(t)
}

func TestABadConfigurationStopsTheStart(t *testing.T) {
	t.Parallel()
	command := portalCommand(t, []string{"PORTAL_SECRET=hunter2", "PORTAL_RATE_LIMIT=x", "PORTAL_SECRT=1"})
	output, err := command.CombinedOutput()
	if err == nil || command.ProcessState.ExitCode() != exitInvalid {
		t.Errorf("want exit status %d, got %v", exitInvalid, err)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(lines) != 3 || strings.Contains(string(output), "hunter2") {
		t.Errorf("want three lines without the secret, got %q", lines)
	}
	for i, name := range []string{"PORTAL_SECRT", "PORTAL_RATE_LIMIT", "PORTAL_SECRET"} {
		if !strings.HasPrefix(lines[i], "portal: "+name+": ") {
			t.Errorf("line %d is not about %s: %q", i, name, lines[i])
		}
	}
	if left, _ := os.ReadDir(command.Dir); len(left) > 0 {
		t.Errorf("files were created: %v", left)
	}
}

func TestAnAddressInUseIsReportedInOneLine(t *testing.T) {
	t.Parallel()
	taken := modelstest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	addr := taken.Addr().String()
	portal(t, []string{"PORTAL_ADDR=" + addr}, "", "serve", "--demo").failsWith(t, "PORTAL_ADDR", addr, "in use")
	portal(t, []string{anyPort, "PORTAL_METRICS_ADDR=" + addr}, "").failsWith(t, "PORTAL_METRICS_ADDR", addr, "in use")
}

// issuer returns the issuer of the widget token in a response of the API.
func issuer(t *testing.T, response string) string {
	t.Helper()
	var token struct {
		Value string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(response), &token); err != nil {
		t.Fatalf("%v in %s", err, response)
	}
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token.Value, claims); err != nil {
		t.Fatal(err)
	}
	name := modelstest.Value(claims.GetIssuer())(t)
	return name
}

func TestTheBaseURLDefaultsToTheListenAddress(t *testing.T) {
	t.Parallel()
	serveToken := func(env ...string) (*instance, string) {
		url := modelstest.SQLiteURL(t)
		store := modelstest.Open(t, url, models.Options{})
		account := createAccount(t, store)
		agent := modelstest.Value(store.Agents.Create(t.Context(), account.ID, models.NewAgent{Name: "Reception"}, models.Operator()))(t)
		i := start(t, append(env, "DATABASE_URL="+url, anyPort))
		_, body := i.api(t, http.MethodPost, "/api/widget/token", account.secret, fmt.Sprintf(`{"agentId":%q}`, agent.ID))
		return i, issuer(t, body)
	}
	if i, got := serveToken(); got != i.URL {
		t.Errorf("want the listen address %s, got %s", i.URL, got)
	}
	_, got := serveToken("PORTAL_BASE_URL=https://portal.example.com/")
	if got != "https://portal.example.com" {
		t.Errorf("got %s", got)
	}
}

func TestInstancesThatStartTogetherShareOneSecret(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + modelstest.SQLiteURL(t), anyPort}
	instances := []*instance{launch(t, env), launch(t, env), launch(t, env)}
	keys := map[string]bool{}
	for _, i := range instances {
		i.awaitReady(t)
		_, body := i.api(t, http.MethodGet, "/.well-known/jwks.json", "", "")
		var set struct{ Keys []struct{ Kid string } }
		if err := json.Unmarshal([]byte(body), &set); err != nil || len(set.Keys) != 1 {
			t.Fatalf("got %s, error %v", body, err)
		}
		keys[set.Keys[0].Kid] = true
	}
	if len(keys) != 1 {
		t.Errorf("want one signing key, got %v", keys)
	}
}
