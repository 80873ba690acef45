package main

import (
	"crypto/tls"
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
	text := strings.Replace(readFile(t, "operations/portal.service"), "/usr/local/bin/portal", "/bin/sh", 1) // a program that exists
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
	g := &gateway{t: t, portal: i, client: &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	g.startNginx(readFile(t, "operations/nginx.conf"), map[string]string{
		"127.0.0.1:8080": strings.TrimPrefix(i.URL, "http://"), "listen 80": "listen " + plain,
	})
	page := g.send(http.MethodGet, "/login", "", "X-Forwarded-For: 192.0.2.99")
	if page.status != http.StatusOK || page.header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%d %v", page.status, page.header)
	}
	g.url = "http://" + plain
	redirect := g.send(http.MethodGet, "/login?next=/agents", "")
	if redirect.header.Get("Location") != "https://127.0.0.1/login?next=/agents" {
		t.Errorf("plain HTTP: %d %v", redirect.status, redirect.header)
	}
	i.stop(t)
	line := i.stderr.LineWith(page.header.Get("X-Request-Id"))
	if !strings.Contains(line, `"client":"127.0.0.1"`) {
		t.Errorf("the portal trusts the X-Forwarded-For header of the client: %s", line)
	}
}
