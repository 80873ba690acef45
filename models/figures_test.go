package models_test

import (
	"errors"
	"testing"
	"time"

	"portal/models"
	"portal/models/modelstest"
)

func TestFigures(t *testing.T) {
	eachDatabase(t, func(t *testing.T, f *fixture) {
		c := f.customer(t)
		f.customer(t)
		revoked, _ := f.key(t, c)
		f.revoke(t, revoked)
		for _, expiry := range []time.Duration{-time.Hour, time.Hour, 8 * models.Day} {
			key, _ := f.key(t, c)
			f.exec(t, "UPDATE api_keys SET expires_at = ?, lifetime = ? WHERE id = ?", f.clock.Now().Add(expiry), 30*models.Day, key.ID)
		}
		f.key(t, c)
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
		if f.postgres() {
			ahead = time.Until(f.clock.Now())
		}
		if difference := (before.ClockAhead - ahead).Abs(); difference > time.Minute {
			t.Errorf("the clock is ahead by %s, want %s", before.ClockAhead, ahead)
		}
		began := f.clock.Now().Truncate(time.Second)
		f.exec(t, "INSERT INTO last_backup (began_at) VALUES (?)", began)
		if after := modelstest.Value(f.Figures(t.Context()))(t); !after.LastBackup.Equal(began) {
			t.Errorf("the last backup began at %s, want %s", after.LastBackup, began)
		}
		f.exec(t, "ALTER TABLE accounts RENAME TO gone")
		if _, err := f.Figures(t.Context()); err == nil || errors.Is(err, models.ErrUnavailable) {
			t.Errorf("without a table: %v", err)
		}
	})
}
