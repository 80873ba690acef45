package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
)

func TestSystemdAcceptsTheUnits(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	verify := []string{"verify", "--man=no"}
	files := append(modelstest.Value(filepath.Glob("operations/*.service"))(t), modelstest.Value(filepath.Glob("operations/*.timer"))(t)...)
	if len(files) != 3 {
		t.Errorf("the units are %q", files)
	}
	for _, file := range files {
		unit, text := filepath.Join(folder, filepath.Base(file)), readFile(t, file)
		// systemd-analyze expects a program that exists.
		text = strings.Replace(text, "/usr/local/bin/portal", "/bin/sh", 1)
		modelstest.Must(t, os.WriteFile(unit, []byte(text), 0o600))
		verify = append(verify, unit)
	}
	output, err := exec.Command("systemd-analyze", verify...).CombinedOutput()
	if err != nil || strings.Contains(string(output), "portal") {
		t.Errorf("%v\n%s", err, output)
	}
	for file, want := range map[string]string{
		// Local time has no 2:15 on the day on which summer time begins in much of Europe and America.
		"operations/portal-backup.timer": `(?m)^OnCalendar=.* UTC$`,
		// journald would drop lines of errors among those of many requests.
		"operations/portal.service": `(?m)^LogRateLimitIntervalSec=0$`,
	} {
		if !regexp.MustCompile(want).MatchString(readFile(t, file)) {
			t.Errorf("%s does not match %s", file, want)
		}
	}
}

// Otherwise systemd gives up after five starts in 10 s, and PostgreSQL may come later.
func TestNoDocumentedUnitLimitsTheStarts(t *testing.T) {
	t.Parallel()
	restarts := 0
	for _, file := range slices.Concat(operationsGuide(t), modelstest.Value(filepath.Glob("operations/*.service"))(t),
		[]string{"../../README.md", "../../SECURITY.md"}) {
		// Each unit of a document begins with this section.
		for _, unit := range strings.Split(readFile(t, file), "[Unit]")[1:] {
			if !regexp.MustCompile(`(?m)^ *Restart=`).MatchString(unit) {
				continue
			}
			restarts++
			if before, _, _ := strings.Cut(unit, "[Service]"); !regexp.MustCompile(`(?m)^ *StartLimitIntervalSec=0$`).MatchString(before) {
				t.Errorf("a unit in %s limits the starts", file)
			}
		}
	}
	if restarts == 0 {
		t.Error("no unit is restarted")
	}
}

// The commands are those of the systemd unit and of the CronJob.
func TestNightlyBackupsKeepTheNewest(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/portal (.*) /var/lib/portal/backups$`).FindStringSubmatch(readFile(t, "operations/portal-backup.service"))
	job := regexp.MustCompile(`args: \[(.*), /backups\]`).FindStringSubmatch(readFile(t, "operations/kubernetes/backup.yaml"))
	for name, args := range map[string][]string{"systemd": strings.Fields(command[1]), "Kubernetes": strings.Split(job[1], ", ")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			modelstest.Databases(t, func(t *testing.T, url string) {
				folder, began := t.TempDir(), time.Now().Truncate(time.Second)
				var want []string
				for day := range 20 {
					old := fmt.Sprintf("portal-202011%02dT021500Z.backup", day+1)
					writeFile(t, filepath.Join(folder, old), "")
					if day > 6 {
						want = append(want, old)
					}
				}
				writeFile(t, filepath.Join(folder, "portal-before-upgrade.backup"), "")
				mustPortal(t, databaseEnv(url), "", append(args, folder)...)
				figures := modelstest.Value(modelstest.Open(t, url, models.Options{}).Figures(t.Context()))(t)
				if figures.LastBackup.Before(began) {
					t.Errorf("the last backup in the database is %s, want it after %s", figures.LastBackup, began)
				}
				var kept []string
				for _, entry := range modelstest.Value(os.ReadDir(folder))(t) {
					kept = append(kept, entry.Name())
				}
				if len(kept) != 15 || !slices.Equal(kept[:13], want) || kept[14] != "portal-before-upgrade.backup" {
					t.Errorf("kept %q", kept)
				}
				mustPortal(t, databaseEnv(url), "", "restore", "--revoke-all-keys", filepath.Join(folder, kept[13]))
			})
		})
	}
}

// The configuration of the gateway is in the same http block, as on one machine.
func TestNginxTerminatesTLSForThePortal(t *testing.T) {
	t.Parallel()
	i := start(t, append(databaseEnv(modelstest.SQLiteURL(t)), anyPort,
		"PORTAL_BASE_URL=https://portal.example.com", "PORTAL_TRUSTED_PROXIES=127.0.0.1/32"))
	plain := freeAddress(t)
	g := &gateway{Visitor: tlsVisitor(t), t: t, portal: i}
	g.startNginx(readFile(t, "operations/nginx.conf")+readFile(t, guideFiles+"nginx.conf"), map[string]string{
		"127.0.0.1:8080": strings.TrimPrefix(i.URL, "http://"), "127.0.0.1:8081": freeAddress(t), "listen 80": "listen " + plain,
	})
	page := g.Send(http.MethodGet, "/login", "", "X-Forwarded-For: 192.0.2.99")
	if page.StatusCode != http.StatusOK || page.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%d %v", page.StatusCode, page.Header)
	}
	site := g.URL
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

	g.URL = site
	large := g.Send(http.MethodPost, "/leaks", strings.Repeat("b", 3<<20)).Is(http.StatusRequestEntityTooLarge)
	i.Kill()
	away := g.refused(http.StatusServiceUnavailable, "UNAVAILABLE", "/api/widget/token")
	if !strings.Contains(large.Body, `"PAYLOAD_TOO_LARGE"`) || away.Header.Get("Retry-After") != "1" {
		t.Errorf("%s, %v", large.Body, away.Header)
	}
}
