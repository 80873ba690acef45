package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	store := modelstest.Open(t, "sqlite:"+filepath.Join(i.Dir, "data", "portal.db"), models.Options{})
	if empty, err := store.Accounts.Empty(t.Context()); err != nil || !empty {
		t.Errorf("without --demo, serve creates an account: %v", err)
	}
	secret, err := os.ReadFile(filepath.Join(i.Dir, "data", "portal.secret"))
	if err != nil || strings.Contains(i.stderr.String(), strings.TrimSpace(string(secret))) {
		t.Errorf("the log contains the secret, or there is no secret file: %v", err)
	}
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
	for i, name := range []string{"PORTAL_SECRT", "PORTAL_SECRET", "PORTAL_RATE_LIMIT"} {
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
	i := start(t, []string{anyPort})
	if got := i.Get("/.well-known/openid-configuration").Find(`"issuer":"([^"]+)"`); got != i.URL {
		t.Errorf("without a demo the base URL is %s, want the listen address %s", got, i.URL)
	}
	public := start(t, []string{anyPort, "PORTAL_BASE_URL=https://portal.example.com"}, "serve", "--demo")
	if out := public.stdout.String(); !strings.HasPrefix(out, "URL:      https://portal.example.com\n") {
		t.Errorf("got %q", out)
	}
}

func TestHealthcheckSucceedsOnlyWhileThePortalIsReady(t *testing.T) {
	t.Parallel()
	i := start(t, []string{anyPort})
	addr := strings.TrimPrefix(i.URL, "http://")
	_, port, _ := strings.Cut(addr, ":")
	// The last three are those of a portal that listens everywhere.
	for _, addr := range []string{addr, "0.0.0.0:" + port, "[::]:" + port, ":" + port} {
		mustPortal(t, []string{"PORTAL_ADDR=" + addr, "HTTP_PROXY=http://192.0.2.1:1"}, "", "healthcheck")
	}
	i.Kill()
	portal(t, []string{"PORTAL_ADDR=" + addr}, "", "healthcheck").failsWith(t, "refused")
}
