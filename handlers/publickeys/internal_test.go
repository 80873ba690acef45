package publickeys

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"portal/models/modelstest"
)

// A fetch that began before a caller came does not show that its key is unknown.
func TestAFetchFromBeforeProvesNothing(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	t.Cleanup(server.Close)
	keys := New(Config[string]{
		URL: server.URL, Parse: func(context.Context, []byte) (map[string]string, error) { return map[string]string{"1": "a key"}, nil },
		Logger: slog.New(slog.DiscardHandler), Now: modelstest.NewClock(time.Now()).Now,
	})
	errs := make(chan error)
	get := func(id string) {
		_, err := keys.Get(t.Context(), id, "a caller")
		errs <- err
	}
	go get("unknown")
	<-asked
	go get("new")
	modelstest.Eventually(t, "both wait", func() bool { return len(keys.waiting) == 2 })
	close(release)
	unknown := 0
	for range 2 {
		err := <-errs
		unconfirmed, ok := errors.AsType[*UnconfirmedError](err)
		switch {
		case ok && unconfirmed.RetryAfter != pause:
			t.Errorf("the next fetch is in %v", unconfirmed.RetryAfter)
		case !ok && errors.Is(err, ErrUnknown):
			unknown++
		}
	}
	if unknown != 1 {
		t.Errorf("%d of the two are unknown", unknown)
	}
}
