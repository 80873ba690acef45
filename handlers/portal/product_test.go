package portal_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"portal/handlers/handlerstest"
	"portal/models"
	"portal/models/modelstest"
)

func TestProductNameIsOnEveryPage(t *testing.T) {
	s := sqliteSite(t, httpBase)
	deps := handlerstest.Deps(t, s.store, httpBase, nil)
	deps.Name = "Acme & Sons"
	s = &site{s.store, s.databaseURL, handlerstest.New(t, deps), deps.BaseURL}
	visitor, c := s.visitor(t), s.customer(t)
	pages := []answer{visitor.get("/login"), visitor.get("/nothing")}
	for _, path := range []string{"/api-keys", "/agents", "/integrate", "/activity", "/account", "/nothing"} {
		pages = append(pages, c.get(path))
	}
	for _, page := range pages {
		if strings.Contains(page.text(), "Voice Portal") || strings.Count(page.text(), "Acme & Sons") < 2 {
			t.Errorf("the title or the header lacks the name: %s", page.text())
		}
	}
}

func TestForgottenPasswordLeadsToSupport(t *testing.T) {
	s := sqliteSite(t, httpBase)
	s.visitor(t).get("/login").says("Forgot password?", "Ask the person who gave you access.")

	deps := handlerstest.Deps(t, s.store, httpBase, nil)
	deps.SupportURL = "mailto:help@example.com"
	s = &site{s.store, s.databaseURL, handlerstest.New(t, deps), deps.BaseURL}
	page := s.visitor(t).get("/login")
	if got := page.one("link", "Forgot password?").attr("href"); got != "mailto:help@example.com" {
		t.Errorf("it leads to %q", got)
	}
}

func TestSecurityContact(t *testing.T) {
	now := time.Date(2026, time.March, 14, 9, 26, 53, 0, time.UTC)
	store := modelstest.Open(t, modelstest.SQLiteURL(t), models.Options{})
	at := func(base, contact string) answer {
		deps := handlerstest.Deps(t, store, base, func() time.Time { return now })
		deps.SecurityContact = contact
		s := &site{store: store, handler: handlerstest.New(t, deps), base: deps.BaseURL}
		return s.visitor(t).get("/.well-known/security.txt")
	}
	at(httpBase, "").is(http.StatusNotFound)
	for base, canonical := range map[string]string{
		httpBase:                     "",
		"https://portal.example.com": "Canonical: https://portal.example.com/.well-known/security.txt\n",
	} {
		got := at(base, "mailto:security@example.com")
		want := "Contact: mailto:security@example.com\nExpires: 2026-09-10T00:00:00Z\nPreferred-Languages: en\n" + canonical
		if got.status != http.StatusOK || got.body != want || got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%d %s %q, want %q", got.status, got.header.Get("Content-Type"), got.body, want)
		}
	}
}
