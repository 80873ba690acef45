package main

import (
	"net"
	"sync"
	"testing"

	"github.com/google/uuid"

	"portal/handlers/mailer/mailertest"
	"portal/models"
	"portal/models/keys"
	"portal/models/modelstest"
	"portal/models/people"
	"portal/models/record"
)

// hang accepts connections at the address and never answers. It returns its port, a channel that is
// closed with the first connection, and a function that stops it.
func hang(t *testing.T) (port string, called <-chan struct{}, stop func()) {
	t.Helper()
	listener := modelstest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	first := make(chan struct{})
	var once sync.Once
	go func() {
		var open []net.Conn
		defer func() {
			for _, connection := range open {
				_ = connection.Close()
			}
		}()
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			open = append(open, connection)
			once.Do(func() { close(first) })
		}
	}()
	stop = func() { _ = listener.Close() }
	t.Cleanup(stop)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	modelstest.Must(t, err)
	return port, first, stop
}

// A stop loses no mail that waits, and does not wait for a mail server that hangs.
func TestAStopLosesNoMail(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		port, called, stop := hang(t)
		env := []string{
			"DATABASE_URL=" + url, testSecret, anyPort,
			"PORTAL_SMTP_URL=smtp://127.0.0.1:" + port, "PORTAL_MAIL_FROM=portal@example.com",
		}
		store := modelstest.Open(t, url, models.Options{Mail: true})
		owner := people.NewAccount{Name: "Acme", Email: "ada@example.com", Password: "correct horse battery staple"}
		account := modelstest.Value(store.Accounts.Create(t.Context(), owner))(t)
		const mails = 5
		for range mails {
			_, _, err := store.Keys.Generate(t.Context(), account.ID, keys.NewKey{Label: "prod", FormID: uuid.New()}, record.Operator())
			modelstest.Must(t, err)
		}
		i := start(t, env)
		<-called // the server has one mail's connection, and four mails wait
		i.stop(t)
		if n, err := store.Outbox.Waiting(t.Context()); err != nil || n != mails {
			t.Fatalf("%d mails wait, want %d, %v", n, mails, err)
		}
		stop()
		server := mailertest.Start(t, "--port", port)
		// The lease takes two minutes.
		modelstest.Exec(t, url, "UPDATE outbox SET due_at = created_at")
		start(t, env)
		ids := map[string]bool{}
		for _, mail := range server.Await(mails) {
			ids[mail.ID()] = true
		}
		if len(ids) != mails {
			t.Errorf("%d different mails, want %d", len(ids), mails)
		}
	})
}
