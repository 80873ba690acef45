package livekitserver

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"

	"portal/models/livekit"
)

// Link is the network between a portal and a server.
type Link struct {
	proxy *httptest.Server
	cut   atomic.Bool // no request arrives
	hold  atomic.Bool // the next request waits
	held  chan func()
}

// Link returns a link to the server. The caller must close it.
func (s *Server) Link() *Link {
	l := &Link{held: make(chan func(), 1)}
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.URL.Host})
	l.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.cut.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if l.hold.CompareAndSwap(true, false) {
			released := make(chan struct{})
			l.held <- func() { close(released) }
			select {
			case <-released:
			case <-r.Context().Done():
			}
		}
		forward.ServeHTTP(w, r)
	}))
	return l
}

// Close ends the link.
func (l *Link) Close() { l.proxy.Close() }

// Portal returns the server as a portal reaches it over the link.
func (l *Link) Portal() *livekit.Server {
	return portal(&url.URL{Scheme: "ws", Host: strings.TrimPrefix(l.proxy.URL, "http://")})
}

// Cut stops or resumes the traffic.
func (l *Link) Cut(cut bool) { l.cut.Store(cut) }

// HoldNext makes the next request wait. The channel then gets a function that releases it.
func (l *Link) HoldNext() <-chan func() {
	l.hold.Store(true)
	return l.held
}
