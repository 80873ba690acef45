package portal_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"portal/models"
	"portal/models/database"
	"portal/models/modelstest"
)

// A revocation that times out may have been committed or not.
func TestOutcomeOfRevocationThatTimesOutIsUnknown(t *testing.T) {
	onSiteWith(t, models.Options{Timeout: models.Timeout}, func(t *testing.T, s *site) {
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
				t.Error("the response does not say when to try again")
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
			gone.is(http.StatusOK).says("was revoked")
		})
	})
}

// A read shows a revocation that still waits for the synchronous standby. A failover can undo it.
func TestRevocationThatNoStandbyHasIsNotConfirmed(t *testing.T) {
	cluster := modelstest.OwnCluster(t, "synchronous_commit=on")
	s := newSite(t, cluster.URL("postgres"), httpBase, models.Options{Timeout: models.Timeout})
	c := s.customer(t)
	key, spare := c.key("perhaps gone"), c.key("spare")
	path := "/api-keys/" + key.ID.String() + "/revocation"
	setStandby := func(name string) {
		modelstest.Exec(t, s.databaseURL, "ALTER SYSTEM SET synchronous_standby_names = '"+name+"'")
		modelstest.Exec(t, s.databaseURL, "SELECT pg_reload_conf()")
	}
	setStandby("nobody")
	for waits := false; !waits; { // each server process reads the setting at a different time
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := s.store.Keys.Revoke(ctx, c.account.ID, spare.ID, models.Operator())
		waits = errors.Is(err, models.ErrUnavailable)
		cancel()
	}
	// A slow server may cancel the statement before the commit, or show the commit later.
	active := func(k models.Key) bool { return k.ID == key.ID }
	for slices.ContainsFunc(c.keys(), active) {
		c.post(path, nil).is(http.StatusServiceUnavailable)
	}
	for _, read := range []string{path, path + "/outcome", "/api-keys/" + key.ID.String() + "/rotation/revocation"} {
		c.get(read).is(http.StatusServiceUnavailable).says("couldn’t confirm that the key was revoked")
	}
	setStandby("")
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if c.get(path+"/outcome").status != http.StatusServiceUnavailable {
			break
		}
	}
	c.get(path + "/outcome").redirects("/api-keys")
	c.get("/api-keys").is(http.StatusOK).says("was revoked")
}

// holdKeys locks the keys for writing until release is called.
func holdKeys(t *testing.T, databaseURL string) (release func()) {
	t.Helper()
	hold := "BEGIN; LOCK TABLE api_keys IN SHARE MODE"
	if _, ok := database.SQLitePath(databaseURL); ok {
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
