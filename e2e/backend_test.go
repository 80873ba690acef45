package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// backend is a customer's server. It requests widget tokens with an API key.
type backend struct {
	site string
	key  string
}

// reply is the API's response to a token request.
type reply struct {
	status int
	Error  string `json:"error"`
	Code   string `json:"code"`
	Token  string `json:"access_token"`

	LiveKit *access `json:"livekit"`
}

var backendClient = &http.Client{Timeout: time.Minute}

// requestToken requests a widget token for the agent.
func (b backend) requestToken(t *testing.T, agentID string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.site+"/api/widget/token", strings.NewReader(`{"agentId":"`+agentID+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+b.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := backendClient.Do(request)
	if err != nil {
		t.Fatalf("request a widget token: %v", err)
	}
	defer response.Body.Close()
	got := reply{status: response.StatusCode}
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Fatalf("read the response: %v", err)
	}
	return got
}

// expectServed checks that the key works.
func (b backend) expectServed(t *testing.T, agentID string) {
	t.Helper()
	if got := b.requestToken(t, agentID); got.status != http.StatusOK || got.Token == "" {
		t.Errorf("the backend's key does not work: %+v", got)
	}
}

// expectRefused checks that the API refuses the key.
func (b backend) expectRefused(t *testing.T, agentID string) {
	t.Helper()
	if got := b.requestToken(t, agentID); got.status != http.StatusUnauthorized || got.Code != "UNAUTHORIZED" || got.Error == "" {
		t.Errorf("want the backend refused with 401 UNAUTHORIZED, got %+v", got)
	}
}
