package main

import (
	"context"
	"log/slog"
	"net/url"

	"portal/handlers/mailer"
	"portal/models"
)

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
