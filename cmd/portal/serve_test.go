package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"portal/models"
	"portal/models/modelstest"
)

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

func TestTheBaseURLDefaultsToTheListenAddress(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	account := createAccount(t, modelstest.Open(t, url, models.Options{}))
	issuer := func(i *instance) string {
		claims := jwt.MapClaims{}
		_, _, err := jwt.NewParser().ParseUnverified(i.token(t, account.secret, account.agentID), claims)
		modelstest.Must(t, err)
		return fmt.Sprint(claims["iss"])
	}
	i := start(t, []string{"DATABASE_URL=" + url, anyPort})
	if got := issuer(i); got != i.URL {
		t.Errorf("want the listen address %s, got %s", i.URL, got)
	}
	public := start(t, []string{"PORTAL_BASE_URL=https://portal.example.com/", "DATABASE_URL=" + url, anyPort})
	if got := issuer(public); got != "https://portal.example.com" {
		t.Errorf("got %s", got)
	}
}

// Browsers support passkeys at the name localhost, but not at an IP address.
func TestTheBaseURLOfADemoHasTheNameLocalhost(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"127.0.0.1:0": "http://localhost:8080", "[::1]:0": "http://localhost:8080", ":0": "http://localhost:8080",
		"0.0.0.0:0": "http://0.0.0.0:8080", "127.0.0.2:0": "http://127.0.0.2:8080", "portal.example.com:0": "http://portal.example.com:8080",
	} {
		if got := (settings{addr: addr, demo: true}).publicURL(&net.TCPAddr{Port: 8080}).String(); got != want {
			t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
	public := start(t, []string{anyPort, "PORTAL_BASE_URL=https://portal.example.com"}, "serve", "--demo")
	if out := public.stdout.String(); !strings.HasPrefix(out, "URL:      https://portal.example.com\n") {
		t.Errorf("got %q", out)
	}
}

func TestInstancesThatStartTogetherShareOneSecret(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + modelstest.SQLiteURL(t), anyPort}
	instances := []*instance{launch(t, env), launch(t, env), launch(t, env)}
	keys := map[string]bool{}
	for _, i := range instances {
		i.awaitReady(t)
		keys[i.Get("/.well-known/jwks.json").Find(`"kid":"([^"]+)"`)] = true
	}
	if len(keys) != 1 {
		t.Errorf("want one signing key, got %v", keys)
	}
}
