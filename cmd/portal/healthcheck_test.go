package main

import (
	"strings"
	"testing"
)

func TestHealthcheckSucceedsOnlyWhileThePortalIsReady(t *testing.T) {
	t.Parallel()
	i := start(t, []string{anyPort})
	env := []string{"PORTAL_ADDR=" + strings.TrimPrefix(i.URL, "http://")}
	for _, name := range []string{"portal-1", "portal-2"} {
		test := readCompose(t, composeSecrets).Services[name].Healthcheck.Test
		if len(test) != 3 || test[0] != "CMD" || test[1] != "/portal" {
			t.Fatalf("%s: want the image's program as the command, got %q", name, test)
		}
		mustPortal(t, env, "", test[2])
	}
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
