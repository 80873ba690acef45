package e2e

import (
	"testing"

	"portal/e2e/pages"
	"portal/models/modelstest"
	"portal/models/modelstest/subprocess"
)

// With LiveKit's webhooks, calls have an exact start and end, and the reason.
func TestCallsOfABrowserAreExactWithWebhooks(t *testing.T) {
	t.Parallel()
	address := modelstest.Value(subprocess.FreeAddress())(t)
	server := startLiveKit(t, "http://"+address+"/livekit/webhook")
	startEcho(t, server)
	portal := ownPortal(t, settings{address: address, extra: append(liveKitSettings(server), "PORTAL_LIVEKIT_AGENT_NAME=echo")})
	backend := referenceBackends[0]
	backend.env = []string{guest}
	site := startWidget(t, portal, backend, server.URL)
	db := modelstest.OpenDatabase(t, portal.settings.databaseURL)
	expect := func(what, where string, want int64) {
		t.Helper()
		modelstest.Eventually(t, what, func() bool {
			n, err := db.NewSelect().Table("calls").Where(where).Count(t.Context())
			return err == nil && n == want
		})
	}
	w := pages.OpenWidget(site.visit(t, withMicrophone).Tab)
	w.Talk()
	w.ExpectStatus(`You are in the call`)
	expect("the call has begun", "ended_at IS NULL AND exact AND user_id = 'customer-7'", 1)
	w.Press("Space")
	w.ExpectStatus(`The call has ended`)
	expect("the call has ended", "end_reason = 'visitor_left' AND exact", 1)
	expect("a visitor may come back", "NOT final", 1)

	w.Talk()
	w.ExpectStatus(`You are in the call`)
	expect("another call has begun", "ended_at IS NULL AND exact", 1)
	site.customer.revokeOnly(t)
	w.AwaitEnd()
	expect("LiveKit has finished the first room", "end_reason = 'visitor_left' AND final", 1)
	expect("the call has ended by the revocation", "end_reason = 'key_revoked' AND exact AND final", 1)
}
