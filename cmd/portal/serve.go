package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"portal/handlers"
	"portal/handlers/mailer"
	"portal/handlers/webhooks"
	"portal/models"
	"portal/models/secret"
	endpoints "portal/models/webhooks"
	"portal/models/widget"
)

type serveCommand struct {
	Demo bool `help:"In an empty database, create an account and an agent, and print how to sign in."`
}

// Help lists the settings below the flags.
func (serveCommand) Help() string {
	var help strings.Builder
	help.WriteString("The settings are environment variables. An empty one is not set.\n\n")
	group := forTests
	for _, row := range table(new(settings)) {
		if row.group == forTests {
			continue
		}
		if row.group != group {
			group = row.group
			help.WriteString(strings.ToUpper(group) + "\n\n")
		}
		fmt.Fprintf(&help, "%s: %s\n\n", row.name, row.text())
	}
	return help.String()
}

// Run serves until ctx ends. It then finishes the running requests, writes the usage counts to the
// database and returns nil.
func (c serveCommand) Run(ctx context.Context, t terminal) error {
	tuneCollector(ctx)
	s, err := readSettings()
	if err != nil {
		return err
	}
	s.demo = c.Demo
	logger, flush := newLogger(t.err, s.logLevel)
	defer flush()
	err = serve(ctx, s, t, logger)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // stopped before it was ready
	}
	if err == nil {
		logger.InfoContext(ctx, "stopped")
	}
	return err
}

// serve opens the store and the listeners and serves until ctx ends. Before it accepts requests, it
// prints a demo to standard output. The logger's lines go to standard error.
func serve(ctx context.Context, s settings, t terminal, logger *slog.Logger) (err error) {
	// Listen first, so that a second portal started by mistake fails before it opens the
	// database.
	listener, err := listen(ctx, "PORTAL_ADDR", s.addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	var metricsListener net.Listener // nil: no metrics
	if s.metricsAddr != "" {
		if metricsListener, err = listen(ctx, "PORTAL_METRICS_ADDR", s.metricsAddr); err != nil {
			return err
		}
		defer metricsListener.Close()
	}
	keyring, isNew, err := s.keyring()
	if err != nil {
		return err
	}
	for _, doubt := range s.doubts() {
		logger.WarnContext(ctx, doubt) //nolint:sloglint // each is a sentence of ours
	}
	tracer, flushSpans, err := newTracer(ctx, s.spans, logger)
	if err != nil {
		return err
	}
	defer flushSpans()
	store, err := models.Open(ctx, s.database.url, models.Options{
		Logger: logger, Tracer: tracer, Keyring: keyring, KeyringIsNew: isNew, LiveKit: s.liveKit, Mail: s.mailFrom != nil,
		SessionIdle: s.sessionIdle, SessionMax: s.sessionMax, KeyMaxLifetime: s.keyMaxLifetime, KeyUnusedLifetime: s.keyUnusedLifetime, Issuers: s.issuers,
		SignInLimit: s.signInLimit, PasswordsOff: s.passwordsOff, RolesFrom: s.rolesFrom(),
		Webhooks: s.webhooks(listener, metricsListener), WebhooksOff: s.webhooksOff,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(ctx, store)) }()
	if err := store.RecordSettings(ctx); err != nil {
		return err
	}
	baseURL := s.publicURL(listener.Addr())
	if s.demo {
		if err := serveDemo(ctx, store, baseURL, t.out, logger); err != nil {
			return err
		}
	}
	sender, stopMail, err := s.startMail(ctx, store, baseURL, logger)
	if err != nil {
		return err
	}
	defer stopMail()
	webhookSender, stopWebhooks := startWebhooks(ctx, store, logger)
	defer stopWebhooks()
	limit, _ := connectionLimit()
	// Behind a proxy, all come from one address.
	connections := newConnections(limit, limit/2, maxUnread)
	figures := &figures{}
	if metricsListener != nil {
		stopFigures := inBackground(ctx, func(ctx context.Context) { figures.run(ctx, store) })
		defer stopFigures()
	}
	registry := newRegistry(store, sender, webhookSender, figures, connections, t.err)
	deps := s.deps(store, keyring, baseURL)
	deps.Logger, deps.Registry, deps.Tracer, deps.Stopping = logger, registry, tracer, ctx.Done()
	site, err := handlers.New(deps)
	if err != nil {
		return err
	}
	stopChecks := inBackground(ctx, func(ctx context.Context) { s.warnOfNeighbors(ctx, logger) })
	defer stopChecks()
	logger.InfoContext(ctx, "starting", slog.String("version", version), slog.String("url", baseURL.String()))
	servers := []server{newServer("portal", connections.listen(listener), closeConnections(site, ctx.Done()), logger)}
	connections.bound(servers[0].Server)
	servers[0].awaitProxies(s.trustedProxies)
	if metricsListener != nil {
		servers = append(servers, newServer("metrics", metricsListener, metricsHandler(registry, site), logger))
	}
	return serveUntilDone(ctx, servers, logger)
}

// deps returns what the settings say about the handlers.
func (s settings) deps(store *models.Store, keyring secret.Keyring, baseURL *url.URL) handlers.Deps {
	return handlers.Deps{
		Store: store, BaseURL: baseURL, TrustedProxies: s.trustedProxies,
		CookieKeys: keyring.CookieKeys(), SessionMax: s.sessionMax, Provider: s.provider, PasswordsOff: s.passwordsOff,
		Name: s.name, Brand: s.brand, Notice: s.notice, SupportURL: s.supportURL, SecurityContact: s.securityContact,
		Tokens:  widget.NewTokens(keyring, baseURL.String(), s.widgetTokenTTL, nil, s.widgetTokenAlg...),
		LiveKit: s.liveKit, RateLimit: s.rateLimit, OperatorToken: s.operatorToken, OperatorTokenPrevious: s.operatorTokenPrevious, GitHubKeysURL: s.gitHubKeysURL,
	}
}

// keyring returns the keyring of the secrets. With SQLite and without PORTAL_SECRET, the secret is
// in a file beside the database, and keyring reports whether it has made the file.
func (s settings) keyring() (keyring secret.Keyring, isNew bool, err error) {
	if err := s.database.makeDirectory(); err != nil {
		return secret.Keyring{}, false, err
	}
	current := s.secret
	if current == "" {
		if current, isNew, err = fileSecret(s.database.directory); err != nil {
			return secret.Keyring{}, false, err
		}
	}
	keyring, err = secret.NewKeyring(current, s.secretPrevious)
	return keyring, isNew, err
}

// rolesFrom returns the issuer of the identities that decide about accounts and roles, or "".
func (s settings) rolesFrom() string {
	if s.provider == nil || !s.provider.Claims {
		return ""
	}
	return s.provider.Issuer
}

// webhooks returns what decides about the addresses of webhooks, which are never those of these
// listeners; nil: webhooks are off.
func (s settings) webhooks(listeners ...net.Listener) *endpoints.Guard {
	if s.webhooksOff {
		return nil
	}
	guard := &endpoints.Guard{Networks: s.webhookNetworks, BaseURL: s.publicURL(listeners[0].Addr())}
	for _, listener := range listeners {
		if listener == nil {
			continue
		}
		if address, ok := listener.Addr().(*net.TCPAddr); ok {
			guard.Own = append(guard.Own, address.AddrPort())
		}
	}
	return guard
}

// startWebhooks starts to send webhooks unless they are off. Call stop before the store is closed.
func startWebhooks(ctx context.Context, store *models.Store, logger *slog.Logger) (sender *webhooks.Sender, stop func()) {
	if !store.Webhooks.Enabled() {
		return nil, func() {}
	}
	sender = webhooks.New(store, logger, nil)
	return sender, inBackground(ctx, sender.Run)
}

// startMail starts to send emails, if they are configured. After the end of ctx, stop waits until
// the mail that is being sent has been sent or abandoned. Call it before the store is closed.
func (s settings) startMail(ctx context.Context, store *models.Store, baseURL *url.URL, logger *slog.Logger) (m *mailer.Mailer, stop func(), err error) {
	if s.mailFrom == nil {
		return nil, func() {}, nil
	}
	m, err = mailer.New(mailer.Config{
		Store: store, Server: s.smtp, From: s.mailFrom, Product: s.name, Brand: s.brand, BaseURL: baseURL.String(), Logger: logger,
		SupportURL: s.supportURL,
	})
	if err != nil {
		return nil, nil, err
	}
	return m, inBackground(ctx, m.Run), nil
}

// inBackground starts work, whose context ends with ctx. The returned function ends it too, and
// waits until work has returned.
func inBackground(ctx context.Context, work func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		work(ctx)
	}()
	return func() { cancel(); <-done }
}
