package main

import (
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"portal/models"
	"portal/models/modelstest"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	database := modelstest.SQLiteURL(t)
	store := modelstest.Open(t, database, models.Options{})
	account := createAccount(t, store)
	agent := modelstest.Value(store.Agents.Create(t.Context(), account.ID, models.NewAgent{Name: "Reception"}, models.Operator()))(t)
	i := start(t, append(databaseEnv(database), anyPort, "PORTAL_METRICS_ADDR=127.0.0.1:0",
		"PORTAL_SMTP_URL=smtp://127.0.0.1:1", "PORTAL_MAIL_FROM=portal@example.com",
		"PORTAL_LIVEKIT_URL=ws://127.0.0.1:1", "PORTAL_LIVEKIT_API_KEY=key",
		"PORTAL_LIVEKIT_API_SECRET="+strings.Repeat("secret", 6)))
	for _, key := range []string{account.secret, account.secret, "", "nas_x"} {
		i.Get("/api/agents", "Authorization: "+strings.TrimSpace("Bearer "+key))
	}
	i.Get("/widget/authorize", modelstest.Bearer("no.token."))
	i.Get("/widget/authorize?agentId=x", modelstest.Bearer(i.token(t, account.secret, agent.ID)))
	i.Post("/login", url.Values{"email": {testEmail}, "password": {"a wrong password"}})
	monitor := modelstest.NewVisitor(t, i.metrics)
	metrics := monitor.Get("/metrics").Body
	t.Run("have a listener of their own", func(*testing.T) {
		i.Get("/metrics").Is(http.StatusNotFound)
		monitor.Get("/login").Is(http.StatusNotFound)
	})
	t.Run("count", func(t *testing.T) {
		for _, want := range []string{
			`portal_authentication_batch_size_bucket{le="1"} `, `portal_api_refusals_total{reason="missing"} 1`,
			`portal_sign_in_failures_total{reason="wrong"} 1`, `portal_sign_in_failures_total{reason="limited"} 0`,
			`portal_database_connections_max{pool="api"} 3`, `portal_http_requests_total{code="UNAUTHORIZED",method="GET",route="/api/agents",status="401"} 2`,
			`portal_api_refusals_total{reason="malformed"} 1`, `portal_api_refusals_total{reason="token_invalid"} 1`,
			`portal_api_refusals_total{reason="agent"} 1`, `portal_http_overload_refusals_total 0`, `portal_api_refusals_total{reason="unavailable"} 0`,
			`portal_sessions 0`, `portal_mails_waiting 0`, `portal_hang_up_age_seconds 0`, `portal_hang_up_failures_total 0`, `portal_mails_dropped_total{reason="overflow"} 0`, `portal_build_info{`, `go_goroutines `, `process_cpu_seconds_total `, `route="/login"`,
		} {
			if !strings.Contains(metrics, "\n"+want) && !strings.Contains(metrics, ","+want) {
				t.Errorf("%s is missing", want)
			}
		}
	})
	t.Run("pass promtool", func(t *testing.T) {
		check := exec.Command("promtool", "check", "metrics")
		check.Stdin = strings.NewReader(metrics)
		if output, err := check.CombinedOutput(); err != nil || len(output) > 0 {
			t.Errorf("%v: %s", err, output)
		}
	})
	t.Run("include those of the dashboard and the alerts", func(t *testing.T) {
		name := regexp.MustCompile(`\b(?:portal|go|process)_\w+`)
		label := regexp.MustCompile(`(\w+)(?:=|=~|!=|!~)"`)
		var used []string
		for file, least := range map[string]int{"operations/dashboard.json": 10, "operations/alerts.yml": 5} {
			var content any
			modelstest.Must(t, yaml.Unmarshal([]byte(readFile(t, file)), &content)) // JSON is YAML too
			found := expressions(content)
			if used = append(used, found...); len(found) < least {
				t.Errorf("%s has only %q", file, found)
			}
		}
		for _, expression := range used {
			for _, used := range name.FindAllString(expression, -1) {
				if !regexp.MustCompile(`(?m)^` + used + `[ {]`).MatchString(metrics) {
					t.Errorf("no metric %s: %s", used, expression)
				}
			}
			for _, used := range label.FindAllStringSubmatch(expression, -1) {
				// Prometheus adds these two labels.
				if !slices.Contains([]string{"instance", "job"}, used[1]) && !strings.Contains(metrics, used[1]+`="`) {
					t.Errorf("no label %s: %s", used[1], expression)
				}
			}
		}
	})
}

// expressions returns the PromQL expressions in a value that was read from YAML or JSON.
func expressions(value any) (found []string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			found = append(found, expressions(item)...)
		}
	case map[string]any:
		for name, item := range value {
			if text, ok := item.(string); ok && name == "expr" {
				found = append(found, text)
			}
			found = append(found, expressions(item)...)
		}
	}
	return found
}

func TestPromtoolAcceptsTheOperationsFiles(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"check", "rules", "operations/alerts.yml"}, {"check", "config", "operations/prometheus.yml"},
	} {
		if output, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", args, err, output)
		}
	}
}
