package main

import (
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"portal/models"
	"portal/models/agents"
	"portal/models/modelstest"
	"portal/models/record"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	database := modelstest.SQLiteURL(t)
	store := modelstest.Open(t, database, models.Options{})
	account := createAccount(t, store)
	agent := modelstest.Value(store.Agents.Create(t.Context(), account.ID, agents.NewAgent{Name: "Reception"}, record.Operator()))(t)
	i := start(t, append(databaseEnv(database), anyPort, "PORTAL_METRICS_ADDR=127.0.0.1:0", "PORTAL_TEST_SIGN_IN_LIMIT=1",
		"PORTAL_SMTP_URL=smtp://127.0.0.1:1", "PORTAL_MAIL_FROM=portal@example.com",
		"PORTAL_LIVEKIT_URL=ws://127.0.0.1:1", "PORTAL_LIVEKIT_API_KEY=key",
		"PORTAL_LIVEKIT_API_SECRET="+strings.Repeat("secret", 6)))
	for _, key := range []string{account.secret, account.secret, "", "nas_x"} {
		i.Get("/api/agents", "Authorization: "+strings.TrimSpace("Bearer "+key))
	}
	i.Get("/widget/authorize", modelstest.Bearer("no.token."))
	i.Get("/widget/authorize?agentId=x", modelstest.Bearer(i.token(t, account.secret, agent.ID)))
	i.Post("/livekit/webhook", nil).Is(http.StatusUnauthorized)
	for range 2 {
		i.Post("/login", url.Values{"email": {testEmail}, "password": {"a wrong password"}})
	}
	monitor := modelstest.NewVisitor(t, i.metrics)
	var metrics string
	modelstest.Eventually(t, "the figures have been read", func() bool {
		metrics = monitor.Get("/metrics").Body
		return strings.Contains(metrics, "portal_accounts ")
	})
	t.Run("have a listener of their own", func(*testing.T) {
		i.Get("/metrics").Is(http.StatusNotFound)
		monitor.Get("/login").Is(http.StatusNotFound)
	})
	t.Run("count", func(t *testing.T) {
		for _, want := range []string{
			`portal_authentication_batch_size_bucket{le="1"} `, `portal_api_refusals_total{reason="missing"} 1`,
			`portal_sign_in_failures_total{reason="wrong"} 1`, `portal_sign_in_failures_total{reason="limited"} 1`,
			`portal_database_connections_max{pool="api"} 3`, `portal_http_requests_total{code="UNAUTHORIZED",method="GET",route="/api/agents",status="401"} 2`,
			`portal_api_refusals_total{reason="malformed"} 1`, `portal_api_refusals_total{reason="token_invalid"} 1`,
			`portal_api_refusals_total{reason="agent"} 1`, `portal_http_overload_refusals_total 0`, `portal_api_refusals_total{reason="unavailable"} 0`,
			`portal_sessions 0`, `portal_database_up 1`, `portal_accounts 1`, `portal_active_keys 1`, `portal_expiring_keys 0`, `portal_database_size_bytes `,
			`portal_clock_difference_seconds 0`, `portal_last_backup_timestamp_seconds 0`, `portal_mails_waiting 0`, `portal_calls_open 0`, `portal_livekit_events_total{result="refused"} 1`, `portal_livekit_events_total{result="recorded"} 0`,
			`portal_livekit_events_total{result="ignored"} 0`, `portal_livekit_events_total{result="failed"} 0`, `portal_call_round_failures_total `, `portal_mails_dropped_total{reason="overflow"} 0`, `portal_log_lines_dropped_total 0`, `portal_build_info{`, `go_goroutines `, `process_cpu_seconds_total `, `route="/login"`,
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
			// JSON is YAML too.
			modelstest.Must(t, yaml.Unmarshal([]byte(readFile(t, file)), &content))
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

func TestMetricsShowThatTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	cluster := modelstest.OwnCluster(t)
	i := start(t, append(databaseEnv(cluster.URL("postgres")), anyPort, testSecret, "PORTAL_METRICS_ADDR=127.0.0.1:0"))
	monitor := modelstest.NewVisitor(t, i.metrics)
	modelstest.Must(t, cluster.Halt())
	away := monitor.Get("/metrics").Is(http.StatusOK).Body
	if !strings.Contains(away, "\nportal_database_up 0\n") || strings.Contains(away, "\nportal_sessions ") {
		t.Errorf("the metrics are %s", away)
	}
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

// ruleTests are tests of promtool for the alert rules, by the interval at which Prometheus
// evaluates them. To evaluate the rules of two days every 15 s would take ten seconds of CPU.
var ruleTests = map[string]string{
	"15s": `
  - name: the database is away and nobody uses the portal
    interval: 15s
    input_series:
      - series: 'up{job="portal", instance="one"}'
        values: 1x20
      - series: 'portal_database_up{job="portal", instance="one"}'
        values: 1x7 0x12
    alert_rule_test:
      - {eval_time: 2m, alertname: PortalDatabaseUnavailable}
      - {eval_time: 2m, alertname: PortalDown}
      - eval_time: 4m
        alertname: PortalDatabaseUnavailable
        exp_alerts: [{exp_labels: {severity: critical, job: portal, instance: one}}]
  - name: rounds of calls fail, and then none runs
    interval: 15s
    input_series:
      - series: 'portal_call_round_failures_total{job="portal", instance="one"}'
        values: 0x7 1+1x32 33x80
      - series: 'portal_call_list_timestamp_seconds{job="portal", instance="one"}'
        values: 0+15x48 720x72
    alert_rule_test:
      - {eval_time: 2m, alertname: PortalCallsNotEnded}
      - eval_time: 6m
        alertname: PortalCallsNotEnded
        exp_alerts: [{exp_labels: {severity: critical, job: portal, instance: one}}]
      - {eval_time: 13m, alertname: PortalCallsNotEnded}
      - eval_time: 18m
        alertname: PortalCallsNotEnded
        exp_alerts: [{exp_labels: {severity: critical, job: portal, instance: one}}]
  - name: Prometheus reads the metrics once a minute, as it does by default
    interval: 1m
    input_series:
      - series: 'portal_authentication_failures_total{job="portal", instance="one"}'
        values: 0+5x15
      - series: 'portal_http_overload_refusals_total{job="portal", instance="two"}'
        values: 0+600x15
    alert_rule_test:
      - eval_time: 10m
        alertname: PortalDatabaseUnavailable
        exp_alerts: [{exp_labels: {severity: critical, job: portal, instance: one}}]
      - eval_time: 10m
        alertname: PortalOverloaded
        exp_alerts: [{exp_labels: {severity: warning, job: portal, instance: two}}]
`,
	"5m": `
  - name: the backup of the first night is the last, and the clock of one instance differs
    interval: 5m
    input_series:
      - series: 'portal_last_backup_timestamp_seconds{job="portal", instance="one"}'
        values: 0x20 7200x600
      - series: 'portal_clock_difference_seconds{job="portal", instance="one"}'
        values: -7x600
      - series: 'portal_clock_difference_seconds{job="portal", instance="two"}'
        values: -3x600
    alert_rule_test:
      - {eval_time: 37h, alertname: PortalBackupOld}
      - eval_time: 40h
        alertname: PortalBackupOld
        exp_alerts: [{exp_labels: {severity: warning}}]
      - eval_time: 1h
        alertname: PortalClockDiffers
        exp_alerts: [{exp_labels: {severity: warning, job: portal, instance: one}}]
  - name: there is no backup
    interval: 5m
    input_series:
      - series: 'portal_last_backup_timestamp_seconds{job="portal", instance="one"}'
        values: 0x600
    alert_rule_test:
      - eval_time: 40h
        alertname: PortalBackupOld
        exp_alerts: [{exp_labels: {severity: warning}}]
`,
}

func TestAlertsFire(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	// promtool compares the annotations too.
	rules := regexp.MustCompile(`(?m)^        annotations:\n(          .*\n)+`).ReplaceAllString(readFile(t, "operations/alerts.yml"), "")
	writeFile(t, filepath.Join(folder, "alerts.yml"), rules)
	for interval, tests := range ruleTests {
		file := filepath.Join(folder, interval+".yml")
		writeFile(t, file, "rule_files: [alerts.yml]\nevaluation_interval: "+interval+"\ntests:"+tests)
		if output, err := exec.Command("promtool", "test", "rules", file).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
	}
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
