package portal_test

import (
	"context"
	"net/http"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

// A revocation that times out may have been committed or not.
func TestOutcomeOfRevocationThatTimesOutIsUnknown(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		bothVoices(t, func(t *testing.T, as voice) {
			c := s.customer(t)
			c.visitor = as.of(t, c.visitor)
			key := c.key("perhaps gone")
			path := "/api-keys/" + key.ID.String() + "/revocation"

			release := holdKeys(t, s.databaseURL)
			unknown := c.post(path, nil).is(http.StatusServiceUnavailable)
			release()
			unknown.says("couldn’t confirm that the key was revoked", "try again")
			if unknown.header.Get("Retry-After") == "" {
				t.Error("the answer does not say when to try again")
			}
			check := path + "/outcome"
			if !as.htmx {
				check = unknown.one("link", "Check the key").attr("href")
			}

			active := c.get(check).is(http.StatusOK)
			active.says("the key is still active")
			active.one("button", "Confirm revoke")
			c.revoke(key)
			gone := c.get(check)
			if !as.htmx {
				gone.redirects("/api-keys")
				gone = c.get("/api-keys")
			}
			gone.is(http.StatusOK).says("was revoked", "No API keys yet")
		})
	})
}

// holdKeys locks the keys for writing until release is called.
func holdKeys(t *testing.T, databaseURL string) (release func()) {
	t.Helper()
	hold := "BEGIN; LOCK TABLE api_keys IN SHARE MODE"
	if _, ok := models.SQLitePath(databaseURL); ok {
		hold = "BEGIN IMMEDIATE"
	}
	conn, err := modelstest.OpenDatabase(t, databaseURL).Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(context.Background(), hold); err != nil {
		t.Fatal(err)
	}
	return func() {
		_, _ = conn.ExecContext(context.Background(), "ROLLBACK")
		_ = conn.Close()
	}
}
