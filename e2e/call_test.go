package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"portal/e2e/pages"
	"portal/models/modelstest/livekitserver"
)

// hangUpLimit is the contract's limit for the end of a call after a revocation. Tests allow more
// time, because a busy machine is slow, and log the time that it took.
const hangUpLimit = 5 * time.Second

// A visitor of a customer's page talks to an agent. The audio arrives and comes back. The call ends
// when the customer revokes the key.
func TestRevocationEndsACallInTheBrowser(t *testing.T) {
	t.Parallel()
	server := startLiveKit(t)
	p := ownPortal(t, settings{extra: liveKitSettings(server)})
	c, owner, keys := startSignedIn(t, p)
	agentID, secret := c.newAgent(t, "Reception"), keys.Add("website")
	echo := startEcho(t, server)
	page := newCallPage(t, backend{p.URL, secret}, agentID)

	page.join(page.requestAccess())
	echo.expectAudio(agentID, 50)
	page.expectAudio(50)

	confirmation := pages.OpenKeys(owner.Tab).Row("website").Revoke()
	confirmation.ExpectCalls("1 call is open now. Revoking ends it.")
	confirmation.Confirm()
	revoked := time.Now()
	if reason := page.expectEnd(); reason != "PARTICIPANT_REMOVED" {
		t.Errorf("the call ended with the reason %q", reason)
	}
	t.Logf("the call ended %s after the revocation (limit %s)", time.Since(revoked).Round(10*time.Millisecond), hangUpLimit)

	// The token is still valid for LiveKit, so the page can join again, but not for long.
	page.join(page.access)
	page.expectEnd()
	eventually(t, "the activity of the ended call", func() bool {
		return strings.Contains(strings.Join(pages.OpenActivity(owner.Tab).Entries(), "\n"), "ended 1 call of website")
	})
	pages.OpenActivity(owner.Tab).ExpectInOrder("ended 1 call of website", "revoked the API key website")
	page.expectNothingReceived(secret[4:34], livekitserver.APISecret)
}

func TestParticipantTokenAllowsNothingElse(t *testing.T) {
	t.Parallel()
	server := startLiveKit(t)
	p := ownPortal(t, settings{extra: liveKitSettings(server)})
	c, _, keys := startSignedIn(t, p)
	agentID := c.newAgent(t, "Reception")
	page := newCallPage(t, backend{p.URL, keys.Add("website")}, agentID)
	if err := page.visitor.context.GrantPermissions([]string{"microphone", "camera"}); err != nil {
		t.Fatal(err)
	}
	access := page.requestAccess()
	page.join(access)

	for name, attempt := range map[string]string{
		"publish the camera":  "room.localParticipant.setCameraEnabled(true)",
		"change the metadata": "room.localParticipant.setMetadata('x')",
		"change its name":     "room.localParticipant.setName('x')",
	} {
		outcome := page.attempt(attempt)
		t.Logf("%s: %s", name, outcome)
		if outcome == "done" || strings.HasPrefix(outcome, "NotAllowedError") { // of the browser, not of LiveKit
			t.Errorf("%s: %s, want an error of LiveKit", name, outcome)
		}
	}
	if outcome := page.attempt("room.localParticipant.publishData(new Uint8Array([1]), { reliable: true })"); outcome != "done" {
		t.Errorf("the participant cannot send data: %s", outcome)
	}
	if err := server.CreateRoom(t.Context(), "lobby"); err != nil {
		t.Fatal(err)
	}
	for method, body := range map[string]string{
		"ListRooms": `{}`, "CreateRoom": `{"name": "mine"}`, "DeleteRoom": `{"room": "lobby"}`, "ListParticipants": `{"room": "lobby"}`,
		"UpdateRoomMetadata": `{"room": "lobby", "metadata": "x"}`, "SendData": `{"room": "lobby", "data": "eA=="}`,
	} {
		if status := callRoomService(t, server, access.Token, method, body); status != http.StatusUnauthorized && status != http.StatusForbidden {
			t.Errorf("%s with a participant token: status %d", method, status)
		}
	}
	expired := expireAccess(t, access.Token)
	forged := access.Token[:len(access.Token)-4] + "AAAA"
	for name, token := range map[string]string{"expired": expired, "forged": forged} {
		if status, text := validateToken(t, server, token); status != http.StatusUnauthorized {
			t.Errorf("an %s token: status %d %s", name, status, text)
		}
	}
	if status, text := validateToken(t, server, access.Token); status != http.StatusOK {
		t.Errorf("the token: status %d %s", status, text)
	}
}
