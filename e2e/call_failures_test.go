package e2e

import (
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/playwright-community/playwright-go"

	"portal/e2e/pages"
	"portal/models/modelstest"
)

// expectFailure presses Talk and checks that the call ends with this alert.
func expectFailure(w pages.Widget, alert string) {
	w.Talk()
	w.ExpectAlert(alert)
	w.ExpectIdle()
}

func TestTheWidgetSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	server, stopServer := silentServer(t)
	site := startWidget(t, portalWith(t, server), referenceBackends[1], server)
	for want, v := range map[string]*visitor{
		`No microphone was found`:             visitWithoutMicrophone(t, site.site),
		`The microphone is blocked`:           visit(t, site.site, inWholeChromium),
		`Another program uses the microphone`: visit(t, site.site),
		`only on pages with HTTPS`:            visit(t, strings.Replace(site.site, "127.0.0.1", "shop.test", 1)),
		`This page may not start calls`:       visit(t, strings.Replace(site.site, "127.0.0.1", "shop.localhost", 1), withMicrophone),
	} {
		v.allowStatus(http.StatusForbidden)
		if strings.HasPrefix(want, "Another") {
			v.addInitScript(t, `navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', 'NotReadableError') }`)
		}
		expectFailure(pages.OpenWidget(v.Tab), want)
	}

	v := site.visit(t, withMicrophone)
	w := pages.OpenWidget(v.Tab)
	modelstest.Must(t, v.context.SetOffline(true))
	expectFailure(w, `No connection`)
	inspect(t, v.Tab).check(t, "the widget page with a failure")
	modelstest.Must(t, v.context.SetOffline(false))
	w.DoubleClick("Talk")
	w.ExpectStatus(`The call has ended`)
	w.ExpectIdle()
	w.Press("Enter")
	w.ExpectStatus(`Connecting`)
	w.ExpectCalling()
	w.ExpectLevel()
	w.Press("Space") // ends the call
	w.ExpectStatus(`The call has ended`)
	w.ExpectIdle()

	portal := site.portal
	for _, failure := range []struct {
		cause func()
		want  string
	}{
		{func() { v.refuseTokenOnce(t) }, `The voice service is busy\. Press Talk again in 1 second\.`},
		{stopServer, `No connection`},
		{func() { portal.stop(t) }, `The voice service is busy\. Press Talk again in 5 seconds\.`},
		{func() { portal.settings.extra = nil; portal.resume(t) }, `The voice service is not set up for calls`},
		{func() { site.customer.removeAgent(t, site.agentID) }, `This agent is no longer available`},
		{func() { site.customer.revokeOnly(t) }, `This site can no longer start calls`},
		{func() { site.useUpTokens(t) }, `Too many calls\. Press Talk again in \d+ seconds?\.`},
		{site.Kill, `No connection`},
	} {
		failure.cause()
		expectFailure(w, failure.want)
	}
	w.ExpectSaid(`^((Waiting for the microphone…|Connecting…|The call has ended\.)(\||$))+$`)
}

// refuseTokenOnce answers the page's next request for a token as a busy backend does.
func (v *visitor) refuseTokenOnce(t *testing.T) {
	t.Helper()
	modelstest.Must(t, v.Page.Route("**/token", func(route playwright.Route) {
		_ = route.Fulfill(playwright.RouteFulfillOptions{
			Status: playwright.Int(http.StatusServiceUnavailable), Headers: map[string]string{"Retry-After": "1"},
			Body: `{"code": "UNAVAILABLE"}`,
		})
	}, 1))
}

// visitWithoutMicrophone opens a tab in a separate browser, which finds no microphone.
func visitWithoutMicrophone(t *testing.T, site string) *visitor {
	t.Helper()
	path, err := exec.LookPath("chromium-headless-shell") // starts faster
	if err != nil {
		path = modelstest.Value(sharedTools())(t).chromium
	}
	return visit(t, site, func(o *options) {
		o.open = func() (playwright.Browser, error) {
			return launch(path, map[string]string{"ALSA_CONFIG_PATH": "/dev/null", "PULSE_SERVER": "none"})
		}
	})
}

// The agent comes late, leaves and crashes, and so does LiveKit.
func TestTheWidgetSaysWhoIsAway(t *testing.T) {
	t.Parallel()
	server := startLiveKit(t)
	site := startWidget(t, portalWith(t, server.URL), referenceBackends[1], server.URL)
	v := site.visit(t, withMicrophone)
	modelstest.Must(t, v.Page.Clock().Install())
	w := pages.OpenWidget(v.Tab)
	w.Talk()
	w.ExpectStatus(`Waiting for the agent`)
	w.SkipToAlertSaying(`The agent did not answer`)
	w.ExpectIdle()

	echo := startEcho(t, server)
	inCall := func() {
		w.ExpectStatus(`You are in the call`)
		w.ExpectVoice()
	}
	w.Talk()
	inCall()
	echo.stop(syscall.SIGTERM)
	w.ExpectAlert(`The agent has left the call`)
	w.ExpectIdle()

	echo = startEcho(t, server)
	w.Talk()
	inCall()
	echo.stop(syscall.SIGKILL)
	w.AwaitEnd()
	w.ExpectAlert(`The agent has left the call`)
	w.ExpectIdle()

	// LiveKit restarts before its agent.
	echo = startEcho(t, server)
	w.Talk()
	inCall()
	echo.stop(syscall.SIGKILL)
	server.Stop()
	w.ExpectStatus(`Connection lost`)
	server = restartLiveKit(t, server)
	w.ExpectStatus(`Waiting for the agent`)
	startEcho(t, server)
	inCall()
	w.ExpectSaid(`You are in the call[^|]*\|Connection lost[^|]*\|Waiting for the agent…\|You are in the call[^|]*$`)

	server.Stop()
	w.ExpectStatus(`Connection lost`)
	w.SkipToAlertSaying(`No connection`)
	w.ExpectIdle()
	restartLiveKit(t, server)
	w.Talk()
	inCall()

	// Chromium ends the microphone when it is blocked during a call.
	modelstest.Must(t, v.context.ClearPermissions())
	w.ExpectAlert(`The microphone has stopped`)
	w.ExpectIdle()
	modelstest.Must(t, v.context.GrantPermissions([]string{"microphone"}))
	portal := site.portal
	portal.stop(t)
	portal.settings.extra = append(portal.settings.extra, "PORTAL_LIVEKIT_API_SECRET="+strings.Repeat("another ", 5))
	portal.resume(t)
	expectFailure(w, `The voice server refused the call`)
}
