package main

import (
	"net/http"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

func TestTheConfiguredRateLimitsAKey(t *testing.T) {
	t.Parallel()
	url := modelstest.SQLiteURL(t)
	account := createAccount(t, modelstest.Open(t, url, models.Options{}))
	i := start(t, append(databaseEnv(url), anyPort, "PORTAL_RATE_LIMIT=1:3"))
	// On a slow machine a few more requests succeed, because the portal uses the real time.
	for range 100 {
		request := modelstest.Value(http.NewRequest(http.MethodGet, i.URL+"/api/agents", http.NoBody))(t)
		request.Header.Set("Authorization", "Bearer "+account.secret)
		response := modelstest.Value(http.DefaultClient.Do(request))(t)
		_ = response.Body.Close()
		if response.StatusCode == http.StatusTooManyRequests {
			if got, want := response.Header.Get("RateLimit-Policy"), `"key";q=3;w=3`; got != want {
				t.Errorf("the policy is %s, want %s", got, want)
			}
			return
		}
	}
	t.Error("no request was limited")
}
