package portal_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"portal/models"
	"portal/models/database"
	"portal/models/keys"
	"portal/models/livekit"
	"portal/models/modelstest"
	"portal/models/modelstest/livekitserver"
	"portal/models/modelstest/subprocess"
	"portal/models/record"
	"portal/models/value"
)

func TestRevokeAsksInTheRowOrOnAPageOfItsOwn(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key, other := c.key("asked"), c.key("other")
		path := "/api-keys/" + key.ID.String() + "/revocation"

		page := c.get(path).is(http.StatusOK)
		page.one("heading", "Revoke asked")
		page.one("status", "") // a client would not know which of two to wait for
		page.none("table", "")
		page.none("button", "Revoke")
		for _, one := range []answer{page, c.fragments().get(path).is(http.StatusOK)} {
			one.says("takes effect immediately", "can’t be undone")
			one.one("button", "Cancel").with("autofocus", "")
			one.one("button", "Confirm revoke").form().with("method", "post").with("action", path)
			if containsText(one, other.Label) {
				t.Error("it shows another key")
			}
		}
	})
}

// The questions of the page of a key lead back to it, and those of the list to the list.
func TestQuestionsLeadBack(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("asked")
		page := "/api-keys/" + key.ID.String()
		rename := c.get(page).is(http.StatusOK).one("link", "Rename").attr("href")
		for path, back := range map[string]string{
			page + "/revocation": "/api-keys#revoke-" + key.ID.String(), page + "/name": "/api-keys#menu-" + key.ID.String(),
			rename: page, page + "/revocation?back=key": page,
		} {
			c.get(path).is(http.StatusOK).one("button", "Cancel").form().with("action", back)
		}
		back := url.Values{"back": {"key"}, "name": {"renamed"}}
		c.post(page+"/name", back).redirects(page)
		c.get(page).is(http.StatusOK).one("heading", "renamed")
		c.post(page+"/revocation", back).redirects(page)
		revoked := c.get(page).is(http.StatusOK)
		revoked.one("status", "was revoked")
		revoked.says("Revoked")
		revoked.none("button", "Revoke")
		revoked.none("link", "Restrictions")
	})
}

func TestCancelLeadsBackToTheRow(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("kept")
		for query, id := range map[string]string{"": "revoke-", "?focus=menu": "menu-"} {
			id += key.ID.String()
			path := "/api-keys/" + key.ID.String() + query
			row := c.fragments().get(path).is(http.StatusOK)
			row.one("cell", "kept")
			row.byID(id).with("autofocus", "")
			if revoke := row.one("button", "Revoke"); revoke.has("autofocus") != (query == "") {
				t.Error("the wrong button takes the focus")
			}
		}
	})
}

func TestConfirmedRevocationRemovesTheRow(t *testing.T) {
	asCustomer(t, models.Options{}, func(t *testing.T, c customer, v *visitor) {
		c.visitor = v
		first, last := c.key("first"), c.key("last")

		done := c.post("/api-keys/"+first.ID.String()+"/revocation", nil)
		if !v.htmx {
			done.redirects("/api-keys")
			done = c.get("/api-keys")
		}
		said := done.is(http.StatusOK).all("status", "was revoked")
		if len(said) == 0 && !containsText(done, "“first” ("+first.Masked()+") was revoked") {
			t.Error("nothing says that the key was revoked")
		}
		done.none("cell", "first")
		if v.htmx && strings.Contains(done.body, "autofocus") {
			t.Error("an element takes the focus, which may scroll")
		}

		done = c.post("/api-keys/"+last.ID.String()+"/revocation", nil)
		if v.htmx {
			done = refreshed(t, c.visitor, done.is(http.StatusOK))
		} else {
			done = c.get(done.header.Get("Location"))
		}
		done.is(http.StatusOK).says("No API keys yet")
		if active := c.keys(); len(active) != 0 {
			t.Errorf("%d keys are active", len(active))
		}
	})
}

func TestRevokingARevokedKeySaysSo(t *testing.T) {
	onSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key := c.key("gone")
		c.revoke(key)
		path := "/api-keys/" + key.ID.String()
		for _, ask := range []func(v *visitor) answer{
			func(v *visitor) answer { return v.get(path + "/revocation") },
			func(v *visitor) answer { return v.get(path + "/name") },
			func(v *visitor) answer { return v.post(path+"/revocation", nil) },
		} {
			ask(c.visitor).redirects("/api-keys")
			c.get("/api-keys").is(http.StatusOK).one("status", "“gone” ("+key.Masked()+") was already revoked")
			fragment := ask(c.fragments()).is(http.StatusOK)
			fragment.says("was already revoked")
			refreshed(t, c.visitor, fragment)
		}
	})
}

// A revocation that times out may have been committed or not.
func TestOutcomeOfRevocationThatTimesOutIsUnknown(t *testing.T) {
	asCustomer(t, models.Options{Timeout: models.Timeout}, func(t *testing.T, c customer, v *visitor) {
		c.visitor = v
		key := c.key("perhaps gone")
		path := "/api-keys/" + key.ID.String() + "/revocation"

		release := holdKeys(t, c.databaseURL)
		unknown := c.post(path, nil).is(http.StatusServiceUnavailable)
		release()
		unknown.says("couldn’t confirm that the key was revoked", "try again")
		unknown.saysWhenToRetry()
		check := path + "/outcome"
		if !v.htmx {
			check = unknown.one("link", "Check the key").attr("href")
		}

		active := c.get(check).is(http.StatusOK)
		active.says("the key is still active")
		active.one("button", "Confirm revoke")
		c.revoke(key)
		gone := c.get(check)
		if !v.htmx {
			gone.redirects("/api-keys")
			gone = c.get("/api-keys")
		}
		gone.is(http.StatusOK).says("was revoked")
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
		_, err := s.store.Keys.Revoke(ctx, c.account.ID, spare.ID, "", record.Operator())
		waits = errors.Is(err, value.ErrUnavailable)
		cancel()
	}
	// A slow server may cancel the statement before the commit, or show the commit later.
	active := func(k keys.Key) bool { return k.ID == key.ID }
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
	conn := modelstest.Value(modelstest.OpenDatabase(t, databaseURL).Conn(context.Background()))(t)
	modelstest.Value(conn.ExecContext(context.Background(), hold))(t)
	return func() {
		_, _ = conn.ExecContext(context.Background(), "ROLLBACK")
		_ = conn.Close()
	}
}

func TestConfirmationShowsTheOpenCalls(t *testing.T) {
	onVoiceSite(t, func(t *testing.T, s *site) {
		c := s.customer(t)
		key, agent := c.key("busy"), c.agent("Front desk")
		path := "/api-keys/" + key.ID.String() + "/revocation"
		confirmation := func() element { return c.fragments().get(path).is(http.StatusOK).one("cell", "busy").parent() }
		confirmation().says("the number of open calls is unknown")
		modelstest.Exec(t, s.databaseURL, "UPDATE call_rounds SET listed_at = '2999-01-01 00:00:00+00:00'")
		confirmation().says("No calls are open now.")
		c.call(agent, key, time.Second, 0)
		confirmation().says("1 call is open now. Revoking ends it.")
		c.call(agent, key, time.Second, 0)
		c.get(path).is(http.StatusOK).says("2 calls are open now. Revoking ends them.")
		s.customer(t).get(path).is(http.StatusNotFound)
	})
}

// liveKitAway returns a LiveKit server that does not answer.
func liveKitAway(t *testing.T) *livekit.Server {
	t.Helper()
	address := modelstest.Value(subprocess.FreeAddress())(t)
	return livekit.New(livekit.Options{
		URL: &url.URL{Scheme: "ws", Host: address}, APIKey: livekitserver.APIKey, APISecret: livekitserver.APISecret,
	})
}

func TestConfirmationWithoutAnAnswerOfLiveKit(t *testing.T) {
	t.Parallel()
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{LiveKit: liveKitAway(t)})
	c := s.customer(t)
	page := c.get("/api-keys/" + c.key("asked").ID.String() + "/revocation").is(http.StatusOK)
	page.says("the number of open calls is unknown")
	page.one("button", "Confirm revoke")
	if strings.Contains(page.body, livekitserver.APISecret) {
		t.Error("the page has the secret")
	}
}
