package main

import (
	"context"
	"database/sql"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"portal/handlers/mailer"
	"portal/handlers/webhooks"
	"portal/models"
	"portal/models/authn"
	"portal/models/usage"
)

// newRegistry returns a registry with the metrics of the Go runtime, the process, the store, the
// connections and the log. The handlers add those of requests.
func newRegistry(store *models.Store, sender *mailer.Mailer, webhookSender *webhooks.Sender, figures *figures, connections *connections, lines *logQueue) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		storeCollector{store: store, sender: sender, webhooks: webhookSender, figures: figures},
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "portal_connections_closed_total", Help: "Connections closed because there were too many, in all or from one address.",
		}, connections.countClosed),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "portal_log_lines_dropped_total", Help: "Lines of the log that were not read in time, or could not be written.",
		}, lines.countDropped),
	)
	return registry
}

// metricsHandler returns the handler of GET /metrics. It also has the health checks of the site,
// whose listener may be busy. Other requests get 404 or 405.
func metricsHandler(registry *prometheus.Registry, site http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2}))
	mux.Handle("/healthz", site)
	mux.Handle("/readyz", site)
	return mux
}

// sessionsTimeout is the time limit of the queries that /metrics makes.
const sessionsTimeout = time.Second

// figuresInterval is the time between two reads of the figures, which cost the database too much
// for each scrape.
const figuresInterval = 5 * time.Minute

// figures holds what was read last.
type figures struct {
	latest atomic.Pointer[models.Figures] // nil: the database did not answer
}

// run reads the figures at intervals until ctx ends.
func (f *figures) run(ctx context.Context, store *models.Store) {
	tick := time.Tick(figuresInterval)
	for {
		if found, err := store.Figures(ctx); err == nil {
			f.latest.Store(&found)
		} else {
			f.latest.Store(nil)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// storeCollector reads the state of the store for each scrape.
type storeCollector struct {
	store   *models.Store
	sender  *mailer.Mailer // nil: no emails
	figures *figures

	webhooks *webhooks.Sender // nil: no webhooks
}

// Describe implements [prometheus.Collector]. It describes nothing, because sessions are missing
// while the database does not answer.
func (storeCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c storeCollector) Collect(metrics chan<- prometheus.Metric) {
	send := sender(metrics)
	send.gauge("build_info", "Always 1. The labels are the versions of the portal and of Go.", 1,
		"version", version, "go_version", runtime.Version())
	stats := c.store.Stats()
	send.authentication(stats.Authentication)
	send.usage(stats.Usage)
	send.gauge("password_queue_length", "Attempts that wait for password hashing.", float64(stats.HashQueue))
	const failures = "Passwords refused at sign-in or to confirm a change, by reason; limited means that there were too many wrong ones before."
	send.counter("sign_in_failures_total", failures, float64(stats.RefusedWrong), "reason", "wrong")
	send.counter("sign_in_failures_total", failures, float64(stats.RefusedLimited), "reason", "limited")
	send.counter("sign_in_failures_total", failures, float64(stats.RefusedDisabled), "reason", "disabled")
	send.pool("portal", stats.PortalPool)
	send.pool("api", stats.APIPool)
	ctx, cancel := context.WithTimeout(context.Background(), sessionsTimeout)
	defer cancel()
	count, err := c.store.Sessions.Count(ctx)
	const up = "Whether the database answers: 1 or 0."
	if err == nil {
		send.gauge("database_up", up, 1)
		send.gauge("sessions", "Sessions of users in the database. Missing if the database does not answer.", float64(count))
	} else {
		send.gauge("database_up", up, 0)
	}
	if f := c.figures.latest.Load(); f != nil {
		send.figures(*f)
	}
	if c.sender != nil {
		send.mail(c.sender.Stats(), stats.MailsDropped)
		if count, err := c.store.Outbox.Waiting(ctx); err == nil {
			send.gauge("mails_waiting", "Emails in the outbox, of all instances. Missing if the database does not answer.", float64(count))
		}
	}
	if c.webhooks != nil {
		attempts := c.webhooks.Stats()
		const help = "Attempts to deliver a webhook, by result. A failed one is usually the fault of its receiver."
		send.counter("webhook_attempts_total", help, float64(attempts.Delivered), "result", "delivered")
		send.counter("webhook_attempts_total", help, float64(attempts.Failed), "result", "failed")
		if count, err := c.store.Webhooks.Waiting(ctx); err == nil {
			send.gauge("webhooks_waiting", "Deliveries of webhooks that wait, of all instances. Missing if the database does not answer.", float64(count))
		}
	}
	if c.store.Calls.Enabled() {
		send.counter("call_round_failures_total", "Failed attempts to list or end calls, which are repeated.", float64(stats.CallFailures))
		if listed, err := c.store.Calls.ListedAt(ctx); err == nil {
			const help = "When LiveKit last listed its rooms, at most 30 seconds ago while it answers; 0: never. Missing if the database does not answer."
			send.gauge("call_list_timestamp_seconds", help, float64(max(0, listed.Unix())))
		}
		if open, err := c.store.Calls.CountOpen(ctx); err == nil {
			send.gauge("calls_open", "Calls of visitors, of all instances. Missing if the database does not answer.", float64(open))
		}
	}
}

// sender sends metrics to Prometheus. Labels are names and values in turn.
type sender chan<- prometheus.Metric

func (s sender) counter(name, help string, value float64, labels ...string) {
	description, values := describe(name, help, labels)
	s <- prometheus.MustNewConstMetric(description, prometheus.CounterValue, value, values...)
}

func (s sender) gauge(name, help string, value float64, labels ...string) {
	description, values := describe(name, help, labels)
	s <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, values...)
}

func describe(name, help string, labels []string) (description *prometheus.Desc, values []string) {
	var names []string
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return prometheus.NewDesc("portal_"+name, help, names, nil), values
}

func (s sender) authentication(stats authn.Stats) {
	sizes, statements := map[float64]uint64{}, uint64(0)
	for i, count := range stats.BatchSizes {
		statements += count
		sizes[float64(uint64(1)<<i)] = statements
	}
	description, _ := describe("authentication_batch_size", "API keys that were looked up together.", nil)
	s <- prometheus.MustNewConstHistogram(description, statements, float64(stats.Lookups), sizes)
	s.counter("authentication_statements_total", "Database statements that looked up batches of API keys.", float64(stats.Statements))
	s.counter("authentication_failures_total", "Batches of API keys for which the database did not answer.", float64(stats.Failures))
	s.counter("authentication_epoch_changes_total", "Times that the keys in memory were dropped because access had changed.", float64(stats.EpochChanges))
}

func (s sender) figures(f models.Figures) {
	const missing = " Read every 5 minutes; missing if the database does not answer."
	s.gauge("accounts", "Accounts."+missing, float64(f.Accounts))
	s.gauge("active_keys", "API keys that are neither revoked nor expired."+missing, float64(f.ActiveKeys))
	s.gauge("expiring_keys", "Active API keys that expire within a week."+missing, float64(f.ExpiringKeys))
	s.gauge("database_size_bytes", "Size of the database; of SQLite without its write-ahead log."+missing, float64(f.DatabaseSize))
	s.gauge("clock_difference_seconds", "How far the clock of this machine is ahead of PostgreSQL's."+missing, f.ClockAhead.Seconds())
	began := 0.0 // Prometheus counts in seconds since 1970
	if !f.LastBackup.IsZero() {
		began = float64(f.LastBackup.Unix())
	}
	s.gauge("last_backup_timestamp_seconds", "When the newest backup with portal backup began; 0 if there is none."+missing, began)
}

func (s sender) usage(stats usage.Stats) {
	s.gauge("usage_pending_keys", "API keys whose latest usage is not in the database yet.", float64(stats.Pending))
	s.gauge("usage_flush_lag_seconds", "Age of the oldest usage that is not in the database yet.", stats.Lag.Seconds())
	s.counter("usage_writes_total", "Transactions that wrote usage.", float64(stats.Batches))
	s.counter("usage_written_keys_total", "API keys whose usage these transactions wrote. If it grows more slowly at a steady rate of requests, usage is written less often.", float64(stats.Written))
	s.counter("usage_dropped_requests_total", "Requests that were not counted, because the usage of too many API keys could not be written.", float64(stats.Dropped))
}

func (s sender) mail(stats mailer.Stats, overflow uint64) {
	s.counter("mails_sent_total", "Emails that the SMTP server has accepted.", float64(stats.Sent))
	s.counter("mail_failures_total", "Attempts to send an email that failed and will be repeated.", float64(stats.Failed))
	const dropped = "Emails that will not be sent, by reason: refused by the server or too old, or too many waited."
	s.counter("mails_dropped_total", dropped, float64(stats.Dropped), "reason", "undeliverable")
	s.counter("mails_dropped_total", dropped, float64(overflow), "reason", "overflow")
}

func (s sender) pool(name string, stats sql.DBStats) {
	s.gauge("database_connections_open", "Open connections of the pool.", float64(stats.OpenConnections), "pool", name)
	s.gauge("database_connections_in_use", "Connections of the pool that run a statement.", float64(stats.InUse), "pool", name)
	s.gauge("database_connections_max", "Limit of the pool.", float64(stats.MaxOpenConnections), "pool", name)
	s.counter("database_connection_waits_total", "Requests that had to wait for a connection of the pool.", float64(stats.WaitCount), "pool", name)
	s.counter("database_connection_wait_seconds_total", "Time that requests waited for a connection of the pool.", stats.WaitDuration.Seconds(), "pool", name)
}
