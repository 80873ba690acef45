package main

import (
	"net/http"
	"testing"

	"portal/models/modelstest"
)

func TestTheConfiguredRateLimitsAKey(t *testing.T) {
	t.Parallel()
	i, account := startWithAccount(t, modelstest.SQLiteURL(t), "PORTAL_RATE_LIMIT=1:3")
	// On a slow machine a few more requests succeed, because the portal uses the real time.
	for range 100 {
		response := i.Get("/api/agents", modelstest.Bearer(account.secret))
		if response.StatusCode == http.StatusTooManyRequests {
			if got, want := response.Header.Get("RateLimit-Policy"), `"key";q=3;w=3`; got != want {
				t.Errorf("the policy is %s, want %s", got, want)
			}
			return
		}
	}
	t.Error("no request was limited")
}
