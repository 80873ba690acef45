package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// backend is a customer's server: it holds an API key and asks for widget tokens with it.
type backend struct {
	site string
	key  string
}

// reply is what the API told a backend.
type reply struct {
	status int
	Error  string `json:"error"`
	Code   string `json:"code"`
	Token  string `json:"access_token"`
}

var backendClient = &http.Client{Timeout: 10 * time.Second}

// askForToken asks for a widget token of the agent.
func (b backend) askForToken(t *testing.T, agentID string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.site+"/api/widget/token", strings.NewReader(`{"agentId":"`+agentID+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+b.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := backendClient.Do(request)
	if err != nil {
		t.Fatalf("ask for a widget token: %v", err)
	}
	defer response.Body.Close()
	answer := reply{status: response.StatusCode}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	return answer
}

// expectServed makes sure that the key works.
func (b backend) expectServed(t *testing.T, agentID string) {
	t.Helper()
	if got := b.askForToken(t, agentID); got.status != http.StatusOK || got.Token == "" {
		t.Errorf("the backend's key does not work: %+v", got)
	}
}

// expectRefused makes sure that the key does not work.
func (b backend) expectRefused(t *testing.T, agentID string) {
	t.Helper()
	if got := b.askForToken(t, agentID); got.status != http.StatusUnauthorized || got.Code != "UNAUTHORIZED" || got.Error == "" {
		t.Errorf("want the backend refused with 401 UNAUTHORIZED, got %+v", got)
	}
}
