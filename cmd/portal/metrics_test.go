package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestMetricsHaveAListenerOfTheirOwn(t *testing.T) {
	t.Parallel()
	i := start(t, []string{anyPort, "PORTAL_METRICS_ADDR=127.0.0.1:0"})
	if got := status(i.URL + "/metrics"); got == http.StatusOK {
		t.Errorf("/metrics on the public address: %d", got)
	}
	response, err := http.Get(i.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go_goroutines", "process_cpu_seconds_total", `route="/readyz"`} {
		if !strings.Contains(string(body), name) {
			t.Errorf("%s is missing", name)
		}
	}
	if got := status(i.metrics + "/healthz"); got != http.StatusNotFound {
		t.Errorf("the metrics listener serves /healthz: status %d", got)
	}
	i.stop(t)
}
