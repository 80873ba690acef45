package main

import (
	"errors"
	"strings"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

const otherPassword = "four words of another kind"

func TestResetPasswordEndsEverySession(t *testing.T) {
	t.Parallel()
	modelstest.Databases(t, func(t *testing.T, url string) {
		store := modelstest.Open(t, url, models.Options{})
		createAccount(t, store)
		user := modelstest.Value(store.SignIn.VerifyPassword(t.Context(), testEmail, testPassword, models.Client{Address: "192.0.2.1"}))(t)
		token := modelstest.Value(store.Sessions.Create(t.Context(), user, models.Client{}))(t)

		r := portal(t, databaseEnv(url), otherPassword+"\n", "account", "reset-password", "--email", strings.ToUpper(testEmail))
		if r.status != 0 || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 || strings.Contains(r.stderr, otherPassword) {
			t.Errorf("want one line on standard error without the password, got %+v", r)
		}

		if _, err := store.Sessions.Find(t.Context(), token, models.Client{}); !errors.Is(err, models.ErrSessionNotFound) {
			t.Errorf("a session is still valid: %v", err)
		}
		if _, err := store.SignIn.VerifyPassword(t.Context(), testEmail, testPassword, models.Client{Address: "192.0.2.1"}); !errors.Is(err, models.ErrWrongCredentials) {
			t.Errorf("the old password: %v", err)
		}
		if _, err := store.SignIn.VerifyPassword(t.Context(), testEmail, otherPassword, models.Client{Address: "192.0.2.1"}); err != nil {
			t.Errorf("the new password: %v", err)
		}
	})
}

func TestResetPasswordFails(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	store := modelstest.Open(t, url, models.Options{})
	createAccount(t, store)
	reset := func(password, email string) result {
		return portal(t, databaseEnv(url), password, "account", "reset-password", "--email", email)
	}
	for input, words := range map[string][]string{
		"":                       {"password", "standard input"},
		"\n":                     {"password", "standard input"},
		"short\n":                {"at least 12"},
		"password1234\n":         {"guess"},
		strings.Repeat("x ", 99): {"at most 128"},
		"twelve \xff characters": {"invalid characters"},
	} {
		r := reset(input, testEmail)
		r.failsWith(t, words...)
		if secret := strings.TrimSpace(input); secret != "" && strings.Contains(r.stderr, secret) {
			t.Errorf("standard error contains the password: %s", r.stderr)
		}
	}
	reset(otherPassword, "bob@example.com").failsWith(t, "bob@example.com", "not found")
	portal(t, databaseEnv(url), otherPassword, "account", "reset-password").failsWith(t, "--email")
	portal(t, databaseEnv(url), "", "account", "reset-password", "--email", testEmail, "--password", "x").failsWith(t, "unknown flag --password")
	if _, err := store.SignIn.VerifyPassword(t.Context(), testEmail, testPassword, models.Client{Address: "192.0.2.1"}); err != nil {
		t.Errorf("the password was changed: %v", err)
	}
}
