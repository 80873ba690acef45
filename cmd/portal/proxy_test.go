package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

// startProxy runs the proxy of compose.yaml in front of two instances, and returns its URL.
func startProxy(t *testing.T, file composeFile, instances ...string) (url string) {
	t.Helper()
	address := freeAddress(t)
	replacer := strings.NewReplacer(":8080 {", "http://"+address+" {",
		"portal-1:8080", instances[0], "portal-2:8080", instances[1],
		"persist_config off", "") // Debian's Caddy is too old for this option
	path := filepath.Join(t.TempDir(), "Caddyfile")
	modelstest.Must(t, os.WriteFile(path, []byte(replacer.Replace(file.Configs["proxy"].Content)), 0o600))
	command := exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", path)
	home := t.TempDir()
	command.Env = []string{"HOME=" + home, "XDG_DATA_HOME=" + home, "XDG_CONFIG_HOME=" + home}
	log := &modelstest.LogBuffer{}
	command.Stdout, command.Stderr = log, log
	proxy := modelstest.Value(subprocess.Start(command))(t)
	t.Cleanup(proxy.Kill)
	url = "http://" + address
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	err := proxy.AwaitReady(ctx, func(context.Context) error {
		if got := status(url + "/readyz"); got != http.StatusOK {
			return fmt.Errorf("/readyz: status %d", got)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v: %s", err, log)
	}
	return url
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address := modelstest.Value(subprocess.FreeAddress())(t)
	return address
}

func TestNoRequestFailsWhileInstancesRestartOneByOne(t *testing.T) {
	t.Parallel()
	databaseURL := modelstest.PostgresURL(t)
	addresses := []string{freeAddress(t), freeAddress(t)}
	env := []string{"DATABASE_URL=" + databaseURL, testSecret, "PORTAL_BASE_URL=http://portal.test"}
	var instances []*instance
	for _, address := range addresses {
		instances = append(instances, start(t, append(env, "PORTAL_ADDR="+address)))
	}
	proxy := startProxy(t, readCompose(t, composeSecrets), addresses...)

	stop := make(chan struct{})
	var clients sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got := status(proxy + "/login")
				mu.Lock()
				statuses[got]++
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	for i := range instances {
		instances[i].stop(t)
		instances[i] = start(t, append(env, "PORTAL_ADDR="+addresses[i]))
		eventually(t, "the proxy uses the instance again", func() bool {
			return strings.Contains(instances[i].stderr.String(), `"/login"`)
		})
	}
	// A crash gives the proxy no warning.
	instances[0].signal(t, syscall.SIGKILL)
	<-instances[0].Exited()
	time.Sleep(time.Second)
	close(stop)
	clients.Wait()
	if statuses[http.StatusOK] < 100 || len(statuses) != 1 {
		t.Errorf("requests by status: %s", fmt.Sprint(statuses))
	}
}
