package main

import (
	"strings"
	"testing"
)

func TestHealthcheckSucceedsOnlyWhileThePortalIsReady(t *testing.T) {
	t.Parallel()
	i := start(t, []string{anyPort})
	env := []string{"PORTAL_ADDR=" + strings.TrimPrefix(i.URL, "http://")}
	mustPortal(t, env, "", "healthcheck")
	i.stop(t)
	portal(t, env, "", "healthcheck").failsWith(t, "refused")
}

func TestHealthcheckReachesAPortalThatListensEverywhere(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"0.0.0.0:8080": "127.0.0.1:8080", ":8080": "localhost:8080", "[::]:80": "localhost:80",
		"127.0.0.1:8080": "127.0.0.1:8080", "portal:80": "portal:80",
	} {
		if got := dialAddress(addr); got != want {
			t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
}
