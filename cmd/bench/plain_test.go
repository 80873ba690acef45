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

	length, err := requestToken(t.Context(), address, tokenRequest(newKey(), uuid.NewString()))
	if err != nil || length == 0 {
		t.Errorf("%d bytes, %v", length, err)
	}
	for what, request := range map[string][]byte{
		"no key":   tokenRequest("", uuid.NewString()),
		"no agent": tokenRequest(newKey(), "none"),
	} {
		if _, err := requestToken(t.Context(), address, request); err == nil {
			t.Errorf("%s: got a token", what)
		}
	}
}
