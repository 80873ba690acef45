package e2e

import (
	"net/http"
	"strings"
	"testing"

	"portal/e2e/pages"
)

func TestAgentsAreCreatedListedAndRemoved(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		c, v, keys := startSignedIn(t, sharedPortal(t), mode)
		server := backend{site: c.at.URL, key: keys.Add("server")}
		byOperator := c.newAgent(t, "Night shift")

		agents := pages.OpenAgents(v.Tab)
		agents.ExpectCurrent("Agents")
		agents.ExpectListed("Night shift", byOperator)
		agents.Create("Front desk")
		agents.ExpectListed("Front desk", "")
		server.expectServed(t, byOperator)

		agents.StartRemoval("Night shift")
		agents.ExpectTextSaying(`Last token just now`)
		agents.CancelRemoval()
		agents.StartRemoval("Front desk")
		agents.ExpectTextSaying(`No token is on record`)
		agents.CancelRemoval()
		agents.ExpectListed("Night shift", byOperator)
		agents.Remove("Night shift")
		agents.ExpectNotListed("Night shift")
		agents.ExpectListed("Front desk", "")
		if got := server.requestToken(t, byOperator); got.status != http.StatusNotFound || got.Code != "AGENT_NOT_FOUND" {
			t.Errorf("the token request for a removed agent got %+v", got)
		}
		pages.OpenActivity(v.Tab).ExpectInOrder(`(?i)removed.*Night shift|Night shift.*removed`, `(?i)created.*Front desk|Front desk.*created`)
	})
}

func TestAnInvalidAgentNameStaysInTheField(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode profile) {
		_, v, _ := startSignedIn(t, sharedPortal(t), mode)
		v.allowStatus(http.StatusUnprocessableEntity)
		agents := pages.OpenAgents(v.Tab)
		tooLong := strings.Repeat("long ", 20) + "!"
		agents.Create(tooLong)
		agents.ExpectAlert()
		if agents.Name() != tooLong {
			t.Errorf("the field holds %q, want the input", agents.Name())
		}
		agents.Create("Front desk")
		agents.ExpectListed("Front desk", "")
		agents.ExpectNoAlert()
	})
}

func TestAnAgentIDIsCopied(t *testing.T) {
	t.Parallel()
	c, v, _ := startSignedIn(t, sharedPortal(t), withClipboard)
	id := c.newAgent(t, "Front desk")
	agents := pages.OpenAgents(v.Tab)
	holdClipboard(t)
	agents.CopyID("Front desk")
	agents.ExpectStatusSaying(`(?i)copied`)
	if got := v.Clipboard(); got != id {
		t.Errorf("the clipboard holds %q, not the agent's id %q", got, id)
	}
}
