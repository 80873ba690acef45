package main

import (
	"context"
	"errors"
	"log/slog"

	"portal/handlers"
	"portal/models"
)

type serveCommand struct {
	config

	Demo bool `help:"In an empty database make an account and an agent, and print what is needed to sign in."`
}

// Run serves until ctx ends, finishes the requests under way, writes what is in memory, and returns nil.
func (c serveCommand) Run(ctx context.Context, t terminal) error {
	s, err := c.settings()
	if err != nil {
		return err
	}
	tuneCollector()
	logger, flush := newLogger(t.err)
	defer flush()
	err = serve(ctx, s, logger, func(store *models.Store) error {
		if !c.Demo {
			return nil
		}
		return seedDemo(ctx, store, t.out, logger)
	})
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // asked to stop before it had begun
	}
	if err == nil {
		logger.InfoContext(ctx, "stopped")
	}
	return err
}

// serve connects the pieces and runs them until ctx ends. It calls prepare before the first request is answered.
func serve(ctx context.Context, s settings, logger *slog.Logger, prepare func(*models.Store) error) (err error) {
	// The addresses come first: a second portal started by mistake ends here, before it has touched anything.
	listeners, err := listen(ctx, s)
	if err != nil {
		return err
	}
	defer listeners.close()
	keyring, err := s.keyring()
	if err != nil {
		return err
	}
	store, err := models.Open(ctx, s.database.url, models.Options{
		Logger: logger, SessionIdle: s.sessionIdle, SessionMax: s.sessionMax,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(ctx, store)) }()
	if err := prepare(store); err != nil {
		return err
	}
	baseURL := s.publicURL(listeners.site.Addr())
	registry := newRegistry()
	site, err := handlers.New(handlers.Deps{
		Store:          store,
		Tokens:         models.NewWidgetTokens(keyring, baseURL.String(), s.widgetTokenTTL, nil),
		CookieKeys:     keyring.CookieKeys(),
		BaseURL:        baseURL,
		TrustedProxies: s.trustedProxies,
		RateLimit:      s.rateLimit,
		Logger:         logger,
		Registry:       registry,
		SessionMax:     s.sessionMax,
		Stopping:       ctx.Done(),
	})
	if err != nil {
		return err
	}
	logger.InfoContext(ctx, "starting", slog.String("version", version), slog.String("url", baseURL.String()))
	servers := []server{newServer("portal", listeners.site, site, logger)}
	if listeners.metrics != nil {
		servers = append(servers, newServer("metrics", listeners.metrics, metricsHandler(registry), logger))
	}
	return serveUntilDone(ctx, servers)
}

// keyring holds the keys that are derived from the secrets. With SQLite and no PORTAL_SECRET the secret is kept beside
// the database.
func (s settings) keyring() (models.Keyring, error) {
	if err := s.database.makeDirectory(); err != nil {
		return models.Keyring{}, err
	}
	secret := s.secret
	if secret == "" {
		var err error
		if secret, err = fileSecret(s.database.directory); err != nil {
			return models.Keyring{}, err
		}
	}
	return models.NewKeyring(secret, s.secretPrevious)
}
