package portal_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"portal/models"
	"portal/models/livekit"
	"portal/models/modelstest"
	"portal/models/modelstest/livekitserver"
	"portal/models/modelstest/subprocess"
)

func TestConfirmationShowsTheOpenCalls(t *testing.T) {
	t.Parallel()
	server := modelstest.LiveKit(t)
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{LiveKit: server.Portal()})
	c := s.customer(t)
	key := c.key("busy")
	join := func() { modelstest.Value(server.Join(t.Context(), uuid.New(), key.ID))(t) }
	path := "/api-keys/" + key.ID.String() + "/revocation"
	confirmation := func() element { return c.fragments().get(path).is(http.StatusOK).one("cell", "busy").parent() }

	confirmation().says("No calls are open now.")
	join()
	confirmation().says("1 call is open now. Revoking ends it.")
	join()
	c.get(path).is(http.StatusOK).one("cell", "busy").parent().says("2 calls are open now. Revoking ends them.")
	s.customer(t).get(path).is(http.StatusNotFound)

	c.post(path, nil).redirects("/api-keys")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if page := c.get("/activity?kind=calls.ended").is(http.StatusOK); len(activityItems(page)) == 1 {
			activityItems(page)[0].says(c.email, "ended 2 calls of", "busy", key.Masked())
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the ended calls are not in the activity")
		}
	}
}

func TestConfirmationWithoutAnAnswerOfLiveKit(t *testing.T) {
	t.Parallel()
	address := modelstest.Value(subprocess.FreeAddress())(t)
	away := livekit.New(livekit.Options{
		URL: &url.URL{Scheme: "ws", Host: address}, APIKey: livekitserver.APIKey, APISecret: livekitserver.APISecret,
	})
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{LiveKit: away})
	c := s.customer(t)
	page := c.get("/api-keys/" + c.key("asked").ID.String() + "/revocation").is(http.StatusOK)
	page.one("cell", "asked").parent().says("the number of open calls is unknown")
	page.one("button", "Confirm revoke")
	if strings.Contains(page.body, livekitserver.APISecret) {
		t.Error("the page has the secret")
	}
}
