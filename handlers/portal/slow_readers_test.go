package portal_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"portal/models"
	"portal/models/modelstest"
)

// slowReaders is more requests than run at once.
const slowReaders = 260

// stall sends n requests, each after the one before has been answered or waits for its reader, who
// reads nothing before the test ends. It returns how many wait.
func (v *visitor) stall(n int, path string) (waiting int) {
	v.t.Helper()
	request := httptest.NewRequest(http.MethodGet, v.base.String()+path, http.NoBody)
	for _, cookie := range v.Jar.Cookies(v.base) {
		request.AddCookie(cookie)
	}
	end := make(chan struct{})
	var all sync.WaitGroup
	v.t.Cleanup(func() {
		close(end)
		all.Wait()
	})
	for range n {
		waits, done := make(chan struct{}), make(chan struct{})
		w := &stalledWriter{ResponseRecorder: httptest.NewRecorder(), waits: sync.OnceFunc(func() { close(waits) }), end: end}
		all.Go(func() {
			defer close(done)
			v.handler.ServeHTTP(w, request.Clone(request.Context()))
		})
		select {
		case <-waits:
			waiting++
		case <-done:
		}
	}
	return waiting
}

// stalledWriter is a response whose reader reads its errors only.
type stalledWriter struct {
	*httptest.ResponseRecorder

	waits func() // is called when the response waits
	end   <-chan struct{}
}

func (w *stalledWriter) Write(p []byte) (int, error) {
	if w.Code >= http.StatusBadRequest {
		return w.ResponseRecorder.Write(p)
	}
	w.waits()
	<-w.end
	return 0, io.ErrClosedPipe
}

// WriteString implements [io.StringWriter].
func (w *stalledWriter) WriteString(text string) (int, error) { return w.Write([]byte(text)) }

func TestSlowReadersHoldNoSlot(t *testing.T) {
	t.Parallel()
	s := sqliteSite(t, httpBase)
	slow, other, stranger := s.customer(t), s.customer(t), s.visitor(t)
	asset := assetURL.FindStringSubmatch(stranger.get("/docs").body)[1]
	for path, v := range map[string]*visitor{
		"/docs/changelog": stranger, "/docs/errors.md": stranger, asset: stranger, "/login": stranger,
		"/api-keys": slow.visitor, "/activity": slow.visitor,
	} {
		if waiting := v.stall(slowReaders, path); waiting != slowReaders {
			t.Errorf("%s: %d of %d responses wait for their readers", path, waiting, slowReaders)
		}
		other.get("/api-keys").is(http.StatusOK)
		s.visitor(t).signIn(other.email, password).redirects("/api-keys")
	}
}

func TestSlowReadersOfExportsHoldNoSlot(t *testing.T) {
	t.Parallel()
	s := sqliteSite(t, httpBase)
	for range slowReaders / 2 {
		if waiting := s.customer(t).stall(2, "/activity/export"); waiting != 2 {
			t.Fatalf("%d of 2 exports wait for their reader", waiting)
		}
	}
	other := s.customer(t)
	other.get("/api-keys").is(http.StatusOK)
	other.get("/usage/export").is(http.StatusOK)
}

func TestAUserRunsTwoExportsAtATime(t *testing.T) {
	t.Parallel()
	s := newSite(t, modelstest.SQLiteURL(t), httpBase, models.Options{LiveKit: liveKitAway(t)})
	c := s.customer(t)
	c.stall(2, "/activity/export")
	for _, path := range []string{"/activity/export", "/usage/export", "/calls/export"} {
		third := c.get(path).is(http.StatusTooManyRequests)
		third.saysWhenToRetry()
		third.says("Two of your exports are still running")
	}
	s.customer(t).get("/usage/export").is(http.StatusOK)
}
