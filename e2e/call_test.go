package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"portal/e2e/pages"
	"portal/models/modelstest"
	"portal/models/modelstest/livekitserver"
)

// hangUpLimit is the contract's limit for the end of a call after a revocation. Tests allow more
// time, because a busy machine is slow, and log the time that it took.
const hangUpLimit = 5 * time.Second

// A visitor of a customer's page talks to an agent. The audio arrives and comes back. The token
// allows nothing else. The call ends when the customer revokes the key.
func TestRevocationEndsACallInTheBrowser(t *testing.T) {
	t.Parallel()
	server := startLiveKit(t)
	c, owner := startSignedIn(t, ownPortal(t, settings{extra: liveKitSettings(server)}))
	agentID, secret := c.newAgent(t, "Reception"), c.newKey(t, "website")
	echo := startEcho(t, server)
	page := newCallPage(t, c, secret, agentID)
	modelstest.Must(t, page.visitor.context.GrantPermissions([]string{"microphone", "camera"}))
	page.join(page.requestAccess())
	echo.expectAudio(agentID, 50)
	page.expectAudio(50)
	page.expectNoOtherRights(server)

	confirmation := pages.OpenKeys(owner.Tab).Row("website").Revoke()
	confirmation.ExpectSaying("1 call is open now. Revoking ends it.")
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

// expectNoOtherRights checks that the participant token allows a call with audio and nothing else.
func (p *callPage) expectNoOtherRights(server *livekitserver.Server) {
	t, access := p.t, p.access
	t.Helper()
	for name, attempt := range map[string]string{
		"publish the camera":  "room.localParticipant.setCameraEnabled(true)",
		"change the metadata": "room.localParticipant.setMetadata('x')",
		"change its name":     "room.localParticipant.setName('x')",
	} {
		outcome := p.attempt(attempt)
		t.Logf("%s: %s", name, outcome)
		// The error is of the browser, not of LiveKit.
		if outcome == "done" || strings.HasPrefix(outcome, "NotAllowedError") {
			t.Errorf("%s: %s, want an error of LiveKit", name, outcome)
		}
	}
	if outcome := p.attempt("room.localParticipant.publishData(new Uint8Array([1]), { reliable: true })"); outcome != "done" {
		t.Errorf("the participant cannot send data: %s", outcome)
	}
	liveKit := modelstest.NewVisitor(t, "http://"+server.URL.Host)
	modelstest.Must(t, server.CreateRoom(t.Context(), "lobby"))
	for method, body := range map[string]string{
		"ListRooms": `{}`, "CreateRoom": `{"name": "mine"}`, "DeleteRoom": `{"room": "lobby"}`, "ListParticipants": `{"room": "lobby"}`,
		"UpdateRoomMetadata": `{"room": "lobby", "metadata": "x"}`, "SendData": `{"room": "lobby", "data": "eA=="}`,
	} {
		got := liveKit.PostJSON("/twirp/livekit.RoomService/"+method, body, modelstest.Bearer(access.Token))
		if got.StatusCode != http.StatusUnauthorized && got.StatusCode != http.StatusForbidden {
			t.Errorf("%s with a participant token: status %d", method, got.StatusCode)
		}
	}
	for token, want := range map[string]int{
		expireAccess(t, access.Token): http.StatusUnauthorized, access.Token[:len(access.Token)-4] + "AAAA": http.StatusUnauthorized,
		access.Token: http.StatusOK,
	} {
		liveKit.Get("/rtc/validate?access_token=" + url.QueryEscape(token)).Is(want)
	}
}
