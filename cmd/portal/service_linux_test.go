package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"portal/models/modelstest"
)

func TestSystemdAcceptsTheUnit(t *testing.T) {
	t.Parallel()
	unit := filepath.Join(t.TempDir(), "portal.service")
	// systemd-analyze expects a program that exists.
	text := strings.Replace(readFile(t, "operations/portal.service"), "/usr/local/bin/portal", "/bin/sh", 1)
	modelstest.Must(t, os.WriteFile(unit, []byte(text), 0o600))
	output, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(output), "portal.service") {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestNginxTerminatesTLSForThePortal(t *testing.T) {
	t.Parallel()
	i := start(t, append(databaseEnv(modelstest.SQLiteURL(t)), anyPort,
		"PORTAL_BASE_URL=https://portal.example.com", "PORTAL_TRUSTED_PROXIES=127.0.0.1/32"))
	plain := freeAddress(t)
	g := &gateway{Visitor: tlsVisitor(t), t: t, portal: i}
	g.startNginx(readFile(t, "operations/nginx.conf"), map[string]string{
		"127.0.0.1:8080": strings.TrimPrefix(i.URL, "http://"), "listen 80": "listen " + plain,
	})
	page := g.Send(http.MethodGet, "/login", "", "X-Forwarded-For: 192.0.2.99")
	if page.StatusCode != http.StatusOK || page.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%d %v", page.StatusCode, page.Header)
	}
	g.URL = "http://" + plain
	redirect := g.Send(http.MethodGet, "/login?next=/agents", "")
	if redirect.Header.Get("Location") != "https://127.0.0.1/login?next=/agents" {
		t.Errorf("plain HTTP: %d %v", redirect.StatusCode, redirect.Header)
	}
	var line string
	modelstest.Eventually(t, "the request is in the log", func() bool {
		line = i.stderr.LineWith(page.Header.Get("X-Request-Id"))
		return line != ""
	})
	if !strings.Contains(line, `"client":"127.0.0.1"`) {
		t.Errorf("the portal trusts the X-Forwarded-For header of the client: %s", line)
	}
}
