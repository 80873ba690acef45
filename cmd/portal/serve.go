package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"runtime/debug"

	"portal/handlers"
	"portal/handlers/mailer"
	"portal/models"
	"portal/models/secret"
	"portal/models/widget"
)

type serveCommand struct {
	config

	Demo bool `help:"In an empty database, create an account and an agent, and print how to sign in."`
}

// Run serves until ctx ends. It then finishes the running requests, writes the usage counts to the
// database and returns nil.
func (c serveCommand) Run(ctx context.Context, t terminal) error {
	tuneCollector()
	s, err := c.parse()
	if err != nil {
		return err
	}
	s.demo = c.Demo
	logger, flush := newLogger(t.err, s.logLevel)
	defer flush()
	err = serve(ctx, s, t.out, logger)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // stopped before it was ready
	}
	if err == nil {
		logger.InfoContext(ctx, "stopped")
	}
	return err
}

// serve opens the store and the listeners and serves until ctx ends. Before it accepts requests, it
// prints a demo to out.
func serve(ctx context.Context, s settings, out io.Writer, logger *slog.Logger) (err error) {
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
	keyring, err := s.keyring()
	if err != nil {
		return err
	}
	s.logWarnings(ctx, logger)
	tracer, flushSpans, err := newTracer(ctx, s.spans, logger)
	if err != nil {
		return err
	}
	defer flushSpans()
	store, err := models.Open(ctx, s.database.url, models.Options{
		Logger: logger, Tracer: tracer, Keyring: keyring, LiveKit: s.liveKit, Mail: s.mailFrom != nil,
		SessionIdle: s.sessionIdle, SessionMax: s.sessionMax, KeyMaxLifetime: s.keyMaxLifetime,
		SignInLimit: s.signInLimit, PasswordsOff: s.passwordsOff,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(ctx, store)) }()
	baseURL := s.publicURL(listener.Addr())
	if s.demo {
		if err := serveDemo(ctx, store, baseURL, out, logger); err != nil {
			return err
		}
	}
	sender, stopMail, err := s.startMail(ctx, store, baseURL, logger)
	if err != nil {
		return err
	}
	defer stopMail()
	limit, _ := connectionLimit()
	connections := newConnections(limit, limit/2) // behind a proxy, all come from one address
	registry := newRegistry(store, sender, connections)
	site, err := handlers.New(handlers.Deps{
		Store: store, Logger: logger, Registry: registry, Tracer: tracer, Stopping: ctx.Done(),
		BaseURL: baseURL, TrustedProxies: s.trustedProxies,
		CookieKeys: keyring.CookieKeys(), SessionMax: s.sessionMax, Provider: s.provider, PasswordsOff: s.passwordsOff,
		Name: s.name, SupportURL: s.supportURL, SecurityContact: s.securityContact,
		Tokens:  widget.NewTokens(keyring, baseURL.String(), s.widgetTokenTTL, nil, s.widgetTokenAlg...),
		LiveKit: s.liveKit, RateLimit: s.rateLimit, OperatorToken: s.operatorToken, Scanners: s.scanners,
	})
	if err != nil {
		return err
	}
	logger.InfoContext(ctx, "starting", slog.String("version", version), slog.String("url", baseURL.String()))
	servers := []server{newServer("portal", listener, closeWhenStopping(site, ctx.Done()), logger)}
	servers[0].ConnState = connections.change
	if metricsListener != nil {
		servers = append(servers, newServer("metrics", metricsListener, metricsHandler(registry, site), logger))
	}
	return serveUntilDone(ctx, servers, logger)
}

// logWarnings logs a warning for each setting that is valid but may be unintended.
func (s settings) logWarnings(ctx context.Context, logger *slog.Logger) {
	if s.signInLimit != defaultSignInLimit {
		logger.WarnContext(ctx, "PORTAL_TEST_SIGN_IN_LIMIT weakens the protection of passwords; set it only in tests", slog.Int("limit", s.signInLimit))
	}
	if limit, files := connectionLimit(); limit < maxConnections {
		logger.WarnContext(ctx, "the limit of open files is low and bounds the connections; raise it with ulimit -n or LimitNOFILE",
			slog.Uint64("limit", files), slog.Int("connections", limit))
	}
	switch {
	case !s.passwordsOff || s.provider != nil:
	case s.operatorToken == "":
		logger.WarnContext(ctx, "PORTAL_PASSWORD_SIGN_IN is off and there are no OpenID Connect provider and no sign-in links; only users with a passkey can sign in")
	default:
		logger.WarnContext(ctx, "PORTAL_PASSWORD_SIGN_IN is off and there is no OpenID Connect provider; users need a sign-in link or a passkey")
	}
}

// keyring returns the keyring of the secrets. With SQLite and without PORTAL_SECRET, the secret is
// in a file beside the database.
func (s settings) keyring() (secret.Keyring, error) {
	if err := s.database.makeDirectory(); err != nil {
		return secret.Keyring{}, err
	}
	current := s.secret
	if current == "" {
		var err error
		if current, err = fileSecret(s.database.directory); err != nil {
			return secret.Keyring{}, err
		}
	}
	return secret.NewKeyring(current, s.secretPrevious)
}

// Defaults of the garbage collector, which GOGC and GOMEMLIMIT override. Because the live heap of
// an instance is a few megabytes, a busy instance would spend a fifth of its time collecting
// garbage with Go's default of 100 %. The memory limit protects small machines.
const (
	gcPercent   = 400
	memoryLimit = 256 << 20 // bytes
)

func tuneCollector() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryLimit)
	}
}

// startMail starts to send emails, if they are configured. After the end of ctx, stop waits until
// the mail that is being sent has been sent or abandoned. Call it before the store is closed.
func (s settings) startMail(ctx context.Context, store *models.Store, baseURL *url.URL, logger *slog.Logger) (m *mailer.Mailer, stop func(), err error) {
	if s.mailFrom == nil {
		return nil, func() {}, nil
	}
	m, err = mailer.New(mailer.Config{
		Store: store, Server: s.smtp, From: s.mailFrom, Product: s.name, BaseURL: baseURL.String(), Logger: logger,
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Run(ctx)
	}()
	return m, func() { cancel(); <-done }, nil
}
