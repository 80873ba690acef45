package main

import (
	"crypto/ed25519"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestPlainHandlerHasTheSameInterface(t *testing.T) {
	server := httptest.NewServer(plainHandler(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), nil))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")

	length, err := checkToken(t.Context(), address, apiKey{secret: newKey(), agentID: uuid.NewString()})
	if err != nil || length == 0 {
		t.Errorf("%d bytes, %v", length, err)
	}
	for what, key := range map[string]apiKey{
		"no key":   {agentID: uuid.NewString()},
		"no agent": {secret: newKey(), agentID: "none"},
	} {
		if _, err := checkToken(t.Context(), address, key); err == nil {
			t.Errorf("%s: got a token", what)
		}
	}
}
