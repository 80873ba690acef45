package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

// One password hash takes 46 MiB and a processor. Many sign-ins at once must neither multiply the
// memory nor block the API.
func TestAFloodOfSignInsIsBoundedAndDoesNotBlockTheAPI(t *testing.T) {
	t.Parallel()
	databaseURL := modelstest.PostgresURL(t)
	account := createAccount(t, modelstest.Open(t, databaseURL, models.Options{}))
	i := startBuilt(t, append(databaseEnv(databaseURL), testSecret, anyPort, "PORTAL_RATE_LIMIT=off"))

	const crowd = 40
	form := url.Values{"email": {testEmail}, "password": {testPassword}}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	statuses := make(chan int, crowd)
	var waiting sync.WaitGroup
	for range crowd {
		waiting.Go(func() {
			response, err := client.PostForm(i.URL+"/login", form)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			statuses <- response.StatusCode
		})
	}
	done := make(chan struct{})
	go func() {
		waiting.Wait()
		close(statuses)
		close(done)
	}()
	for answered, flooded := 0, true; flooded || answered == 0; answered++ {
		if got := i.askAPI(t, account.secret); got != http.StatusOK {
			t.Fatalf("request %d to the API: status %d", answered+1, got)
		}
		select {
		case <-done:
			flooded = false
		default:
		}
	}

	signedIn := 0
	for status := range statuses {
		switch status {
		case http.StatusSeeOther:
			signedIn++
		case http.StatusServiceUnavailable: // it would have waited too long
		default:
			t.Errorf("a sign-in: status %d", status)
		}
	}
	if signedIn == 0 {
		t.Error("no sign-in succeeded")
	}
	if runtime.GOOS == "linux" {
		if peak, limit := peakMemory(t, i.Process.Pid), 400<<20; peak > limit {
			t.Errorf("peak memory is %d MiB, want at most %d", peak>>20, limit>>20)
		}
	}
}

// askAPI returns the status of a request with the key.
func (i *instance) askAPI(t *testing.T, key string) int {
	t.Helper()
	request := modelstest.Value(http.NewRequest(http.MethodGet, i.URL+"/api/agents", http.NoBody))(t)
	request.Header.Set("Authorization", "Bearer "+key)
	response := modelstest.Value(http.DefaultClient.Do(request))(t)
	defer response.Body.Close()
	return response.StatusCode
}

var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peakMemory returns the peak resident memory of a process, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status := modelstest.Value(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(t)
	found := peakLine.FindStringSubmatch(string(status))
	if found == nil {
		t.Fatalf("no VmHWM in %s", strings.TrimSpace(string(status)))
	}
	kilobytes := modelstest.Value(strconv.Atoi(found[1]))(t)
	return kilobytes << 10
}
