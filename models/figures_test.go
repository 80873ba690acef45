package models_test

import (
	"errors"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
	"portal/models/value"
)

func TestFigures(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.Customer(t)
		f.Customer(t)
		revoked, _ := f.Key(t, c)
		f.Revoke(t, revoked)
		for _, expiry := range []time.Duration{-time.Hour, time.Hour, 8 * value.Day} {
			key, _ := f.Key(t, c)
			f.Exec(t, "UPDATE api_keys SET expires_at = ?, lifetime = ? WHERE id = ?", f.Clock.Now().Add(expiry), 30*value.Day, key.ID)
		}
		f.Key(t, c)
		before := modelstest.Value(f.Figures(t.Context()))(t)
		modelstest.Facts(t, before, map[string]bool{
			"accounts":      before.Accounts == 2,
			"active keys":   before.ActiveKeys == 3,
			"expiring keys": before.ExpiringKeys == 1,
			"database size": before.DatabaseSize >= 100<<10,
			"no backup":     before.LastBackup.IsZero(),
		})
		// The clock of the tests differs from PostgreSQL's.
		ahead := time.Duration(0)
		if f.Postgres() {
			ahead = time.Until(f.Clock.Now())
		}
		if difference := (before.ClockAhead - ahead).Abs(); difference > time.Minute {
			t.Errorf("the clock is ahead by %s, want %s", before.ClockAhead, ahead)
		}
		began := f.Clock.Now().Truncate(time.Second)
		f.Exec(t, "INSERT INTO last_backup (began_at) VALUES (?)", began)
		if after := modelstest.Value(f.Figures(t.Context()))(t); !after.LastBackup.Equal(began) {
			t.Errorf("the last backup began at %s, want %s", after.LastBackup, began)
		}
		f.Exec(t, "ALTER TABLE accounts RENAME TO gone")
		if _, err := f.Figures(t.Context()); err == nil || errors.Is(err, value.ErrUnavailable) {
			t.Errorf("without a table: %v", err)
		}
	})
}

func TestBacklog(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		s := f.Open(t, models.Options{Mail: true})
		if none := modelstest.Value(s.Backlog(t.Context()))(t); none != (models.Backlog{}) {
			t.Errorf("of an empty portal: %+v", none)
		}
		c := f.Customer(t)
		now := f.Clock.Now().UTC().Truncate(time.Second)
		for i, since := range []time.Duration{time.Hour, 2 * time.Hour} {
			f.Exec(t, "INSERT INTO outbox (id, kind, recipient, created_at, due_at) VALUES (?, 'password.forgotten', 'ada@example.com', ?, ?)", newID(), now.Add(-since), now)
			endpoint := newID()
			f.Exec(t, "INSERT INTO webhook_endpoints (id, account_id, url, event_groups, secret, key_id, created_at, failing_since) VALUES (?, ?, 'https://hooks.example', '[]', ?, ?, ?, ?)",
				endpoint, c.ID, []byte("sealed"), []byte("12345678"), now, now.Add(-since))
			f.Exec(t, "INSERT INTO webhook_deliveries (endpoint_id, event_id, event, account_id, created_at, due_at) VALUES (?, ?, 'test', ?, ?, ?)",
				endpoint, newID(), c.ID, now.Add(-since), now)
			// Neither waits nor fails.
			f.Exec(t, "INSERT INTO webhook_deliveries (endpoint_id, event_id, event, account_id, created_at) VALUES (?, ?, 'test', ?, ?)",
				endpoint, newID(), c.ID, now.Add(-value.Day))
			if i == 0 {
				f.Exec(t, "UPDATE webhook_endpoints SET disabled_at = ?", now)
			}
		}
		key, _ := f.Key(t, c)
		must(t, f.Calls.Report(t.Context(), modelstest.Joined(f.Agent(t, c), key, 1)))
		waiting := models.Waiting{Count: 2, Since: now.Add(-2 * time.Hour)}
		want := models.Backlog{OpenCalls: 1, Mails: waiting, Deliveries: waiting, Failing: models.Waiting{Count: 1, Since: waiting.Since}}
		got := modelstest.Value(s.Backlog(t.Context()))(t)
		for _, found := range []*models.Waiting{&got.Mails, &got.Deliveries, &got.Failing} {
			found.Since = found.Since.UTC()
		}
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}
